"""``tx``."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crux_workspace.cli.commands.options import IdempotencyKey
from crux_workspace.cli.content import open_argument
from crux_workspace.cli.declaring import command
from crux_workspace.cli.output import Output
from crux_workspace.cli.reporting import host_failure
from crux_workspace.cli.script import CONTENT_FIELDS, Step, read_script
from crux_workspace.cli.session import Session
from crux_workspace.errors import WorkspaceError

if TYPE_CHECKING:
    from crux_workspace import Replayed, Transaction

__all__ = ["tx"]


class _RolledBack(Exception):
    """Ends a dry run's transaction without a commit."""


@dataclass(slots=True)
class _Outcome:
    """What became of a script."""

    results: list[Any]
    """Of each operation, in order; empty when the commit was made before."""
    commit: Replayed | None = None
    replayed: bool = False
    dry_run: bool = False


@command(
    "tx",
    panel="Files",
    example="""echo '{"op": "write", "path": "/workspace/a.md", "content": "one"}' | crux-workspace tx""",
)
def tx(
    session: Session,
    script: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="JSON lines; - or nothing means stdin."),
    ] = None,
    max_attempts: Annotated[
        int,
        typer.Option(min=1, help="Run the script up to so many times when it meets a conflict."),
    ] = 1,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Run it and roll back; limits and conflicts are not judged."
        ),
    ] = False,
    idempotency_key: IdempotencyKey = None,
) -> Coroutine[Any, Any, None]:
    """Run a script of operations as one transaction: one commit with all of it, or nothing at all.

    Each line is a JSON object: "op" is write, edit, append, set, rename, move, copy, delete, finalize, withdraw, read, list, exists or
    stat, its other names are that method's arguments, such as path, src, dst, if_version. write takes "content" (a string is text, any
    other value is JSON), "content_base64" or "file" (the bytes of a local file; they are binary unless "encoding" is "utf-8").

    The script is checked whole before anything is done; a wrong line is wrong usage (exit code 2). A refused operation, or a conflict
    with somebody else's commit, ends with 1, says where, and leaves nothing applied. Prints a line an operation and at the end the
    commit; with --json each as a JSON object of its own.
    """
    name = None if script is None or str(script) == "-" else script
    if name is not None and not name.is_file():
        raise typer.BadParameter(f"there is no file {name}.", param_hint="FILE")
    with open_argument(None, name) as source:
        steps = read_script(source)
    options = {"max_attempts": max_attempts, "idempotency_key": idempotency_key}
    return _tx(session, steps, options, dry_run=dry_run)


async def _tx(
    session: Session, steps: list[Step], options: dict[str, Any], *, dry_run: bool
) -> None:
    from crux_workspace import Replayed

    outcome = _Outcome([], dry_run=dry_run)
    tries: list[Transaction] = []

    async def run(tx: Transaction) -> list[Any]:
        tries.append(tx)
        outcome.results = [await _applied(tx, step) for step in steps]
        if dry_run:
            raise _RolledBack
        return outcome.results

    answer: list[Any] | Replayed = []
    async with session.workspace() as ws:
        with suppress(_RolledBack):
            answer = await ws.transaction(run, **options)
    if isinstance(answer, Replayed):
        outcome = _Outcome([], answer, replayed=True, dry_run=dry_run)
    elif not dry_run:
        outcome.commit = tries[-1].committed
    (_show_json if session.out.as_json else _show)(session.out, steps, outcome)


async def _applied(tx: Transaction, step: Step) -> Any:  # noqa: ANN401 - whatever the method returns
    """Run one operation.

    Raises:
        WorkspaceError: It was refused; of the same class and code, and the message names the line.
    """
    try:
        return await _call(tx, step)
    except WorkspaceError as error:
        raise _at_line(step, error) from error
    except OSError as error:
        raise _at_line(step, host_failure(error)) from error


async def _call(tx: Transaction, step: Step) -> Any:  # noqa: ANN401 - whatever the method returns
    arguments = step.operation.arguments
    if step.op == "edit" and "edits" in arguments:
        from crux_workspace import Edit

        arguments["edits"] = [
            Edit(each.find, each.replace, each.occurrence, each.replace_all)
            for each in arguments["edits"]
        ]
    if step.op != "write":
        return await getattr(tx, step.op)(**arguments)
    content, _, file = (arguments.pop(name, None) for name in CONTENT_FIELDS)
    if file is None:
        return await tx.write(content=content if step.data is None else step.data, **arguments)
    with open(file, "rb") as opened:  # noqa: ASYNC230, PTH123 - a local file; its reading is not
        return await tx.write(content=opened, **arguments)


def _at_line(step: Step, error: WorkspaceError) -> WorkspaceError:
    return type(error)(
        f"Line {step.line} ({step.op}): {error.message}",
        code=error.code,
        details={**error.details, "line": step.line},
        hint=error.hint,
        retryable=error.retryable,
    )


def _show(out: Output, steps: list[Step], outcome: _Outcome) -> None:
    for step, result in zip(steps, outcome.results, strict=False):
        out.line(f"{step.op} {_short(step, result)}")
    commit = outcome.commit
    if commit is not None:
        word = "committed before:" if outcome.replayed else "commit"
        out.line(f"{word} {commit.sequence} {commit.commit}")
    else:
        out.line("rolled back" if outcome.dry_run else "nothing to commit")


def _short(step: Step, result: Any) -> str:  # noqa: ANN401 - of any operation
    """Say what an operation gave: ``path@vN`` where there is a file."""
    asked = str(step.operation.arguments.get("path", "/"))
    if isinstance(result, bool):
        return f"{asked} {'yes' if result else 'no'}"
    if hasattr(result, "entries"):
        return f"{asked} {len(result.entries)} entries"
    if result is None:
        return asked if step.op == "delete" else f"{asked} no file"
    version = getattr(result, "version", None)
    return f"{result.path}/" if version is None else f"{result.path}@v{version}"


def _show_json(out: Output, steps: list[Step], outcome: _Outcome) -> None:
    for step, result in zip(steps, outcome.results, strict=False):
        plain = result.to_dict() if hasattr(result, "to_dict") else result
        out.json_line({"line": step.line, "op": step.op, "result": plain})
    commit = None if outcome.commit is None else outcome.commit.to_dict()
    ending = {"result": commit, "replayed": outcome.replayed, "dry_run": outcome.dry_run}
    out.json_line({"op": "commit", **ending})
