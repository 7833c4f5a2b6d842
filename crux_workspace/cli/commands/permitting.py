"""``approve`` and ``permissions check|list|revoke``: what agents wait for, and what they may do for good."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crux_workspace.cli.declaring import command, group
from crux_workspace.cli.session import Session, require_default_database
from crux_workspace.cli.settings import DEFAULT_URL
from crux_workspace.errors import InvalidInputError

if TYPE_CHECKING:
    from crux_workspace.agent import Answer, Interrupt, PermissionGate, PermissionStore

__all__ = ["approve", "check", "listed", "revoke"]

_PANEL = "Agents"
permissions_app = group(
    "permissions",
    panel=_PANEL,
    help="Look at what agents may do.\n\nStanding approvals are in .crux/permissions.json, "
    "or with --in-store in the store that --url names.",
    example="crux-workspace permissions list",
)
_File = Annotated[Path, typer.Option("--file", help="File with the standing approvals.")]
_InStore = Annotated[
    bool, typer.Option("--in-store", help="The approvals are in the store, not in a file.")
]
_DEFAULT_FILE = Path(".crux/permissions.json")


@command("approve", panel=_PANEL, example="crux-workspace approve --thread support-7")
async def approve(
    session: Session,
    thread: Annotated[
        str | None, typer.Option(help="Only this thread; every one that waits if left out.")
    ] = None,
    answer: Annotated[
        str | None, typer.Option(help="once, always or deny for all; asked one by one if left out.")
    ] = None,
    file: _File = _DEFAULT_FILE,
    in_store: _InStore = False,
) -> None:
    """Answer what agents wait for: once, always or deny, for all that waits in a thread.

    What waits is in the store that --url names. Without --answer each is shown, and one line of stdin answers it. A thread is answered
    whole or not at all. An always where it is not offered counts once.
    """
    if answer is not None and answer not in ("once", "always", "deny"):
        raise typer.BadParameter("it is once, always or deny.", param_hint="--answer")
    async with _gate(session, file, in_store) as gate:
        threads = [thread] if thread is not None else await gate.waiting_threads()
        told: list[dict[str, Any]] = []
        for name in threads:
            waiting = await gate.pending(name)
            answers = _answers(session, name, waiting, answer)
            decisions = await gate.resume(name, answers) if waiting else []
            for item, decision in zip(waiting, decisions, strict=True):
                told.append({"threadId": name, **decision.to_dict()})
                if not session.out.as_json:
                    session.out.line(f"{name}\t{item.kind}\t{decision.answer}")
    if session.out.as_json:
        session.out.json({"decisions": told})
    elif not told:
        session.out.note("nothing waits")


@command(
    "check",
    panel=_PANEL,
    example="crux-workspace permissions check crux.toml",
    apps=(permissions_app,),
)
def check(
    session: Session,
    policy_file: Annotated[
        Path, typer.Argument(metavar="FILE", help=r"TOML file with a \[permissions] table.")
    ] = Path("crux.toml"),
    tool: Annotated[
        list[str] | None,
        typer.Option(help="A tool there is, or a subagent was granted; repeat it."),
    ] = None,
) -> None:
    """Read the permissions and say which rules are hardly what was meant; exit code 1 when there are any."""
    from crux_workspace.agent import PermissionGate, PermissionPolicy

    if not policy_file.exists():
        raise InvalidInputError(f"There is no file {policy_file}.", hint="Name the TOML file.")
    policy = PermissionPolicy.from_toml(policy_file)
    warnings = PermissionGate(policy, mode="non-interactive").lint(tool or ())
    if session.out.as_json:
        session.out.json({"warnings": [warning.to_dict() for warning in warnings]})
    else:
        rows = [(w.code, w.key, w.rule, w.message) for w in warnings]
        session.out.table(("what", "key", "rule", "why"), rows)
    session.out.flush()
    if warnings:
        raise typer.Exit(1)


@command("list", panel=_PANEL, example="crux-workspace permissions list", apps=(permissions_app,))
async def listed(
    session: Session,
    thread: Annotated[str | None, typer.Option(help="Only those of this thread.")] = None,
    file: _File = _DEFAULT_FILE,
    in_store: _InStore = False,
) -> None:
    """List the standing approvals: id, key, rule, thread."""
    async with _gate(session, file, in_store, needs_store=in_store) as gate:
        grants = await gate.grants(thread)
    if session.out.as_json:
        session.out.json({"grants": [grant.to_dict() for grant in grants]})
    else:
        rows = [(g.grant_id, g.key, g.pattern, g.thread_id or "") for g in grants]
        session.out.table(("id", "key", "rule", "thread"), rows)


@command(
    "revoke",
    panel=_PANEL,
    example="crux-workspace permissions revoke 0c7a600e0ed1dd41",
    apps=(permissions_app,),
)
async def revoke(
    session: Session,
    grant: Annotated[str, typer.Argument(metavar="ID", help="As list shows it.")],
    file: _File = _DEFAULT_FILE,
    in_store: _InStore = False,
) -> None:
    """Take a standing approval back; agents are asked again from then on."""
    async with _gate(session, file, in_store, needs_store=in_store) as gate:
        found = await gate.revoke(grant)
    if not found:
        raise InvalidInputError(
            f"There is no standing approval {grant}.",
            hint="crux-workspace permissions list shows them.",
        )
    if session.out.as_json:
        session.out.json({"revoked": grant})
    else:
        session.out.line(f"revoked {grant}")


@asynccontextmanager
async def _gate(
    session: Session, file: Path, in_store: bool, *, needs_store: bool = True
) -> AsyncIterator[PermissionGate]:
    """Open a gate over the approvals and, where it is needed, over what waits in the store."""
    from crux_workspace.agent import (
        PermissionGate,
        file_permission_store,
        record_permission_store,
    )
    from storage_adapters import open_storage

    if not needs_store:
        yield PermissionGate(store=file_permission_store(file), mode="interactive")
        return
    if session.settings.url is None:
        require_default_database()
    url = DEFAULT_URL if session.settings.url is None else session.settings.url
    storage = await open_storage(url)
    try:
        store: PermissionStore = file_permission_store(file)
        if in_store:
            store = record_permission_store(storage.records)
        yield PermissionGate(store=store, mode="interactive", interrupts=storage.records)
    finally:
        await storage.aclose()


def _answers(
    session: Session, thread: str, waiting: Sequence[Interrupt], answer: str | None
) -> list[Answer]:
    from crux_workspace.agent import Answer

    answers = []
    for item in waiting:
        given: Any = answer
        if given is None:
            given = _asked(session, thread, item)
        answers.append(Answer(item.interrupt_id, given))
    return answers


def _asked(session: Session, thread: str, item: Interrupt) -> str:
    """Show one interrupt and read its answer."""
    offered = ("once", "always", "deny") if item.allow_always else ("once", "deny")
    shown = json.dumps(item.to_dict()["detail"], ensure_ascii=True, indent=2)
    session.out.note(f"{thread}: {item.kind} {item.interrupt_id}\n{shown}\n{', '.join(offered)}?")
    given = sys.stdin.readline().strip().lower()
    if given not in ("once", "always", "deny"):
        raise InvalidInputError(
            f"{given[:20]!r} is no answer; nothing was answered in thread {thread}.",
            hint=f"Answer {' or '.join(offered)}.",
        )
    return given
