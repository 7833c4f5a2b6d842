"""What a caller with fewer mounts is not told, though it lies on them: the far end of a rename, where a copy came from, totals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crux_workspace.errors import AccessDeniedError, ErrorCode, WorkspaceError
from crux_workspace.model.artifacts import Artifact
from crux_workspace.model.events import WorkspaceChangeEvent
from crux_workspace.model.files import ListResult, WorkspaceFile
from crux_workspace.model.versions import CommitEntry
from crux_workspace.mounts.routing import Router
from crux_workspace.server.principals import Principal

__all__ = ["masked_error", "shown", "shown_event"]


def shown(principal: Principal, result: Any) -> Any:  # noqa: ANN401 - any result
    """Return a result without what its reader has no mount for; a commit without visible changes is None."""
    return _shown(principal.router, result) if principal.partial else result


def _shown(router: Router, result: Any) -> Any:  # noqa: ANN401 - any result
    if isinstance(result, list):
        told = [_shown(router, each) for each in result]
        return [each for each in told if each is not None]
    if isinstance(result, ListResult):
        return replace(result, entries=_shown(router, result.entries))
    if isinstance(result, CommitEntry):
        changes = [told for each in result.changes if (told := _change(router, each)) is not None]
        return replace(result, changes=changes) if changes else None
    if isinstance(result, WorkspaceFile | Artifact) and result.produced_by is not None:
        return replace(result, produced_by=_origin(router, result.produced_by))
    return result


def _origin(router: Router, produced_by: dict[str, Any]) -> dict[str, Any]:
    """A source is told as ``<path>@<revision>``."""
    sources = [
        source
        for source in produced_by.get("sources", [])
        if isinstance(source, str) and router.find(source.rpartition("@")[0]) is not None
    ]
    return produced_by | {"sources": sources}


def shown_event(principal: Principal, event: WorkspaceChangeEvent) -> WorkspaceChangeEvent | None:
    """Return an event without what its reader has no mount for; None when nothing is left."""
    if not principal.partial:
        return event
    told: WorkspaceChangeEvent | None = _change(principal.router, event)
    return told


def _change(router: Router, change: Any) -> Any:  # noqa: ANN401 - a Change or an event
    """A rename over the border is a file that comes, or one that goes; an erased name may have been anywhere."""
    here = change.path[:1] == "/" and router.find(change.path) is not None
    if change.from_path is None:
        return change if here else None
    there = change.from_path[:1] == "/" and router.find(change.from_path) is not None
    if here and there:
        return change
    if here:
        return replace(change, type="create", from_path=None)
    return replace(change, type="delete", path=change.from_path, from_path=None) if there else None


def masked_error(principal: Principal, error: WorkspaceError) -> WorkspaceError:
    """Return an error without totals and paths that its reader may not know."""
    if not principal.partial:
        return error
    if error.code == ErrorCode.QUOTA_EXCEEDED:
        details = {k: v for k, v in error.details.items() if k in ("path", "size")}
        return type(error)(
            "The limits of the namespace refuse the change.", code=error.code, details=details
        )
    if error.code == ErrorCode.TRANSACTION_CONFLICT:
        conflicts = [
            conflict
            for conflict in error.details.get("conflicts", [])
            if principal.router.find(str(conflict.get("path"))) is not None
        ]
        return type(error)(
            "The transaction was refused: what it read or wrote changed since it began; nothing was applied.",
            code=error.code,
            details={**error.details, "conflicts": conflicts},
            hint=error.hint,
            retryable=True,
        )
    if isinstance(error, AccessDeniedError) and error.code == ErrorCode.OUTSIDE_MOUNTS:
        return AccessDeniedError(
            "A path is outside what the token may see.",
            code=error.code,
            hint=error.hint,
        )
    return error
