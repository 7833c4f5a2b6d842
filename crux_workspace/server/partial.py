"""Reads of a caller who sees a part of the tree, where fewer mounts alone do not tell less: log, history, old versions, URIs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from crux_workspace.errors import (
    AccessDeniedError,
    ErrorCode,
    InvalidInputError,
    VersionNotFoundError,
)
from crux_workspace.model.artifacts import Artifact
from crux_workspace.model.paths import normalise_directory_hint
from crux_workspace.model.versions import CommitEntry, VersionEntry
from crux_workspace.server.masking import shown

if TYPE_CHECKING:
    from crux_workspace.api.facade import Workspace
    from crux_workspace.server.principals import Principal

__all__ = [
    "artifacts_page",
    "check_uri",
    "check_versions",
    "refuse_whole",
    "visible_artifacts",
    "visible_history",
    "visible_log",
]

_PAGE = 256
_WHOLE = ("usage", "gc", "drop_namespace")


def refuse_whole(principal: Principal, verb: str) -> None:
    """Refuse a verb about the whole namespace to who sees only a part of it.

    Raises:
        AccessDeniedError: The token is restricted to mounts (``PERMISSION_DENIED``).
    """
    if principal.partial and verb in _WHOLE:
        raise AccessDeniedError(
            f"{verb} is about the whole namespace, of which the token sees only a part.",
            code=ErrorCode.PERMISSION_DENIED,
        )


async def visible_log(
    principal: Principal, ws: Workspace, *, path: str | None, limit: int, cursor: str | None
) -> list[CommitEntry]:
    """Return the commits that changed something visible, newest first; as many as asked for, as long as there are any."""
    if path is not None:
        principal.router.browsable(normalise_directory_hint(path)[0])
    found: list[CommitEntry] = []
    while len(found) < limit:
        page = await ws.log(path=path, limit=_PAGE, cursor=cursor)
        found += shown(principal, page)
        if len(page) < _PAGE:
            break
        cursor = page[-1].cursor
    return found[:limit]


async def visible_history(
    principal: Principal, ws: Workspace, path: str, *, limit: int | None, before: int | None
) -> list[VersionEntry]:
    """Return a file's versions down to where it came from outside; what it was there is not told."""
    found: list[VersionEntry] = []
    while limit is None or len(found) < limit:
        page = await ws.history(path, limit=_PAGE, before=before)
        for entry in page:
            if principal.router.find(entry.path) is None:
                return found[:limit]
            found.append(entry)
        if len(page) < _PAGE:
            break
        before = page[-1].version
    return found[:limit]


async def _came(principal: Principal, ws: Workspace, path: str) -> int:
    """Return the newest version that the file had outside of what is visible, or 0."""
    before: int | None = None
    while True:
        page = await ws.history(path, limit=_PAGE, before=before)
        for entry in page:
            if principal.router.find(entry.path) is None:
                return entry.version
        if len(page) < _PAGE:
            return 0
        before = page[-1].version


async def check_versions(
    principal: Principal, ws: Workspace, verb: str, given: dict[str, Any], *, staged: bool = False
) -> None:
    """Refuse versions that a file had where the caller sees nothing; nothing is looked up for callers who see all.

    What a transaction has at a path can be another file than the workspace has there: in one (`staged`) no version is named at all.

    Raises:
        VersionNotFoundError: One is older than the file's coming (``VERSION_NOT_FOUND``).
        AccessDeniedError: An undo or redo that may bring one back, or a version in a transaction (``PERMISSION_DENIED``).
    """
    if not principal.partial or "path" not in given:
        return
    named = [given.get(name) for name in ("version", "from_version", "to_version")]
    wanted = [version for version in named if version is not None]
    if staged and wanted:
        raise AccessDeniedError(
            "A token that sees a part of the tree names no versions in a transaction.",
            code=ErrorCode.PERMISSION_DENIED,
            details={"path": given["path"]},
            hint="Read or finalize the version outside of the transaction.",
        )
    blind = verb == "redo" or (verb == "undo" and not wanted)
    if not wanted and not blind and verb != "diff":
        return
    path = given["path"]
    came = await _came(principal, ws, path)
    if came == 0:
        return
    if blind:
        raise AccessDeniedError(
            f"{path} came from outside of what the token may see; its earlier content stays there.",
            code=ErrorCode.PERMISSION_DENIED,
            details={"path": path},
            hint="Undo to a version of its history here with to_version.",
        )
    if verb == "diff" and given.get("from_version") is None:
        newest = await ws.history(path, limit=1)
        wanted.append((given.get("to_version") or (newest[0].version if newest else 1)) - 1)
    if min(wanted) <= came:
        raise VersionNotFoundError(
            f"{path} has no version {min(wanted)} here.",
            code=ErrorCode.VERSION_NOT_FOUND,
            details={"path": path, "version": min(wanted)},
        )


async def visible_artifacts(
    principal: Principal, ws: Workspace | None, found: list[Artifact]
) -> list[Artifact]:
    """Leave out artifacts that show a version from where the caller sees nothing.

    Without a workspace to look a file's history up in (the past, a transaction) all that show an older version than the head are left out.
    """
    if not principal.partial:
        return found
    return [
        artifact
        for artifact in found
        if artifact.version == artifact.head_version
        or (ws is not None and await _came(principal, ws, artifact.path) < artifact.version)
    ]


async def artifacts_page(
    principal: Principal,
    call: Callable[..., Awaitable[list[Artifact]]],
    given: dict[str, Any],
    *,
    exact: Workspace | None,
) -> list[Artifact]:
    """Return as many visible artifacts as are asked for; `call` takes the arguments of ``artifacts``."""
    limit, after = given.get("limit"), given.get("after")
    found: list[Artifact] = []
    while True:
        page = await call(**{**given, "after": after})
        found += await visible_artifacts(principal, exact, page)
        if limit is None or len(page) < limit or len(found) >= limit:
            return found[:limit]
        after = page[-1].path


async def check_uri(principal: Principal, ws: Workspace, uri: str) -> None:
    """Refuse a URI that is not one of the artifacts that the caller can list.

    Raises:
        InvalidInputError: It belongs to none of them (``INVALID_ARGUMENT``).
    """
    if not principal.partial:
        return
    after: str | None = None
    while True:
        page = await ws.artifacts(limit=_PAGE, after=after)
        same = [artifact for artifact in page if artifact.uri == uri]
        if await visible_artifacts(principal, ws, same):
            return
        if len(page) < _PAGE:
            raise InvalidInputError(
                "The URI belongs to no artifact that the token may see.",
                details={"option": "uri"},
            )
        after = page[-1].path
