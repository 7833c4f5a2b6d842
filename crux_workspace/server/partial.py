"""Reads of a caller who sees a part of the tree, where fewer mounts alone do not tell less: log, history, old versions, URIs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crux_workspace.errors import (
    AccessDeniedError,
    ErrorCode,
    InvalidInputError,
)
from crux_workspace.model.paths import normalise_directory_hint
from crux_workspace.model.versions import CommitEntry, VersionEntry
from crux_workspace.server.masking import shown_commits

if TYPE_CHECKING:
    from crux_workspace.api.facade import Workspace
    from crux_workspace.server.principals import Principal

__all__ = [
    "check_uri",
    "check_versions",
    "refuse_whole",
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
        found += shown_commits(principal, page)
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


def check_versions(principal: Principal, given: dict[str, Any], *, staged: bool) -> None:
    """Refuse to name versions in a transaction to who sees a part of the tree: what it has at a path may be another file there.

    Elsewhere the workspace of such a caller refuses those that a file had where the caller sees nothing.

    Raises:
        AccessDeniedError: A version is named (``PERMISSION_DENIED``).
    """
    if not staged or not principal.partial or "path" not in given:
        return
    if any(given.get(name) is not None for name in ("version", "from_version", "to_version")):
        raise AccessDeniedError(
            "A token that sees a part of the tree names no versions in a transaction.",
            code=ErrorCode.PERMISSION_DENIED,
            details={"path": given["path"]},
            hint="Read or finalize the version outside of the transaction.",
        )


def check_uri(principal: Principal, uri: str) -> None:
    """Refuse a URI that is not told to who sees a part of the tree: theirs name a version of a file, which is judged when it is opened.

    Raises:
        InvalidInputError: It names bytes in the store (``INVALID_ARGUMENT``).
    """
    if principal.partial and not uri.startswith("workspace-inline:"):
        raise InvalidInputError(
            "The URI belongs to no file that the token may see.", details={"option": "uri"}
        )
