"""Commands over a versioned workspace: check out, run, commit what changed as one transaction."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crux_workspace.agent.files.contract import FsContext
from crux_workspace.agent.permissions.rules import EMPTY_RULES, RuleSet
from crux_workspace.agent.permissions.wrapping import PathUse, refuse_denied
from crux_workspace.agent.shells.checkout import Checkout, Difference, difference
from crux_workspace.agent.shells.contract import ShellResult
from crux_workspace.agent.shells.local import LocalShell
from crux_workspace.errors import ErrorCode, InvalidInputError, LimitExceededError
from crux_workspace.model.clocks import random_id
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.jsontext import parse

__all__ = ["WorkspaceShell"]

_MOST_BYTES = 1 << 30
_MOST_FILES = 100_000
_ACTOR_CHARS = 120
_CONSEQUENCE = ", so nothing that the command changed was taken over"


class WorkspaceShell:
    """Runs a command in a scratch folder with the workspace's files as of one commit, and commits what it changed.

    The commit's verb is ``runBash`` and its actor ``runBash: <command>``; `undo_commit` takes the command back. Any exit code
    commits; a timeout, a cancelled call, a conflict and a change of a path that may not be written commit nothing. Files that may not be
    read are not there. Links and special files that the command leaves behind are refused and told.
    """

    def __init__(self, ws: Any, shell: LocalShell) -> None:  # noqa: ANN401 - a Workspace
        self._ws = ws
        self._shell = shell

    def __repr__(self) -> str:
        return f"WorkspaceShell({self._shell!r})"

    async def run_command(
        self,
        command: str,
        ctx: FsContext,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ShellResult:
        """See `Shell.run_command`.

        Raises:
            ConflictError: Somebody else changed a file that the command changed (``VERSION_CONFLICT``, ``TRANSACTION_CONFLICT``);
                nothing was committed.
            PermissionDeniedError: It changed a path that a rule denies (``PERMISSION_DENIED``); nothing was committed.
            LimitExceededError: The workspace is too large to be checked out.
        """
        scratch = await asyncio.to_thread(tempfile.mkdtemp, prefix="crux-checkout-")
        try:
            checkout = await self._check_out(Path(scratch), ctx.root, await _denied(ctx))
            folder = str(checkout.scratch)
            ran = await self._shell.run_in(folder, command, shown_as=ctx.root, cwd=cwd, env=env)
            if ran.timed_out:
                return ran
            found = await asyncio.to_thread(difference, checkout)
            refuse_denied(await _denied(ctx), _uses(found, checkout), _CONSEQUENCE)
            commit = await self._commit(found, checkout, command) if found.is_any else None
            return ShellResult(
                ran.stdout,
                ran.stderr + _told(found),
                ran.exit_code,
                ran.truncated,
                commit=commit,
                refused=tuple(found.refused),
            )
        finally:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True))

    async def _check_out(self, scratch: Path, root: str, denied: RuleSet) -> Checkout:
        newest = await self._ws.log(limit=1)
        view = self._ws.at(newest[0].sequence if newest else 0)
        checkout = await asyncio.to_thread(Checkout, scratch, root)
        total = 0
        async for file in view.walk(root):
            if not isinstance(file, WorkspaceFile):
                continue
            if denied.path("readFile", file.path, folded=True) is not None:
                checkout.withheld[checkout.name_of(file)] = file
                continue
            total += file.size
            if total > _MOST_BYTES or len(checkout.files) >= _MOST_FILES:
                raise LimitExceededError(
                    "The workspace is too large to be checked out for a command.",
                    code=ErrorCode.QUOTA_EXCEEDED,
                    details={"limit": _MOST_BYTES, "used": total},
                    hint="Work with the file tools, or have the workspace narrowed to what the command needs.",
                )
            data = await _bytes_of(view, file)
            await asyncio.to_thread(checkout.put, file, data)
        return checkout

    async def _commit(self, found: Difference, checkout: Checkout, command: str) -> str | None:
        acting = self._ws.acting_as(_actor(command))
        async with acting.transaction() as tx:
            tx.verb = "runBash"
            for name in found.deleted:
                await tx.delete(checkout.path_of(name), if_version=checkout.files[name].file)
            await _rename_all(tx, checkout, dict(found.renamed))
            for name, origin in found.changed:
                await _write(tx, checkout, name, origin)
        return tx.committed.commit if tx.committed is not None else None


async def _denied(ctx: FsContext) -> RuleSet:
    return EMPTY_RULES if ctx.denied is None else await ctx.denied()


def _uses(found: Difference, checkout: Checkout) -> Iterator[PathUse]:
    """Yield what the changes touch, as the file tools would: of a rename both ends."""
    for old, new in found.renamed:
        yield PathUse(("readFile", "writeFile"), checkout.path_of(old), False)
        yield PathUse(("writeFile",), checkout.path_of(new), False)
    for name in (*found.deleted, *(name for name, _ in found.changed)):
        yield PathUse(("writeFile",), checkout.path_of(name), False)


async def _rename_all(tx: Any, checkout: Checkout, waiting: dict[str, str]) -> None:  # noqa: ANN401
    """Rename files, each when its place is free; of those that stand in each other's way one steps aside first."""
    expected: dict[str, WorkspaceFile] = {old: checkout.files[old].file for old in waiting}
    while waiting:
        free = (
            old
            for old, new in waiting.items()
            if not any(_in_the_way(other, new) for other in waiting)
        )
        old = next(free, None)
        if old is None:
            old = next(iter(waiting))
            new = aside = f".moving-{random_id()}"
            waiting[aside] = waiting.pop(old)
        else:
            new = waiting.pop(old)
        await tx.rename(
            checkout.path_of(old), checkout.path_of(new), if_version=expected.pop(old, None)
        )


def _in_the_way(other: str, new: str) -> bool:
    """Tell whether a file that has not been moved yet is above, or below, where one is to go."""
    return new.startswith(f"{other}/") or other.startswith(f"{new}/")


async def _bytes_of(view: Any, file: WorkspaceFile) -> bytes:  # noqa: ANN401 - a view
    if file.content_kind == "json":
        text: str = await view.read_text(file.path)
        return text.encode()
    data: bytes = await view.read_bytes(file.path)
    return data


async def _write(tx: Any, checkout: Checkout, name: str, origin: str | None) -> None:  # noqa: ANN401
    """Write one changed file; an existing one keeps its kind, and the MIME type and metadata that it has by now."""
    path = checkout.path_of(name)
    data = await asyncio.to_thread(checkout.read, name)
    if origin is None:
        await tx.write(path, _content(data, None), if_version=checkout.withheld.get(name, 0))
        return
    file = checkout.files[origin].file
    current: WorkspaceFile = await tx.stat(path) or file
    options: dict[str, Any] = {"metadata": current.metadata}
    content = _content(data, file.content_kind)
    if isinstance(content, str) == (file.content_kind == "text"):
        options["mime_type"] = current.mime_type
    if origin == name:
        options["if_version"] = file
    await tx.write(path, content, **options)


def _content(data: bytes, kind: str | None) -> Any:  # noqa: ANN401 - any content
    if kind == "binary":
        return data
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return data
    if kind == "json":
        try:
            return parse(data)
        except InvalidInputError:
            return text
    return data if "\x00" in text and kind is None else text


def _actor(command: str) -> str:
    shown = "".join(char if char.isprintable() else " " for char in command).strip()
    if len(shown) > _ACTOR_CHARS:
        shown = f"{shown[:_ACTOR_CHARS]}…"
    try:
        shown.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(
            "A command must be text without lone surrogates.", details={"option": "command"}
        ) from None
    return f"runBash: {shown}"


def _told(found: Difference) -> str:
    if not found.refused:
        return ""
    names = ", ".join(found.refused[:10])
    return f"\nnot taken over, because they are links or special files: {names}"
