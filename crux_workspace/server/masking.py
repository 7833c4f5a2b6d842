"""What a caller with fewer mounts is not told: the far end of a rename, erased names, totals of the namespace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.model.events import WorkspaceChangeEvent
from crux_workspace.model.versions import CommitEntry, VersionEntry
from crux_workspace.mounts.routing import Router
from crux_workspace.server.principals import Principal

__all__ = ["masked_error", "shown", "shown_event"]


def shown(principal: Principal, result: Any) -> Any:  # noqa: ANN401 - any result
    """Return a result without what its reader has no mount for."""
    if not principal.partial:
        return result
    router = principal.workspace._core.router
    if isinstance(result, list):
        told = [shown(principal, each) for each in result]
        return [each for each in told if each is not None]
    if isinstance(result, CommitEntry):
        changes = [told for each in result.changes if (told := _change(router, each)) is not None]
        return replace(result, changes=changes) if changes else None
    if isinstance(result, VersionEntry):
        return result if router.find(result.path) is not None else None
    return result


def shown_event(principal: Principal, event: WorkspaceChangeEvent) -> WorkspaceChangeEvent | None:
    """Return an event without what its reader has no mount for; None when nothing is left."""
    if not principal.partial:
        return event
    told: WorkspaceChangeEvent | None = _change(principal.workspace._core.router, event)
    return told


def _change(router: Router, change: Any) -> Any:  # noqa: ANN401 - a Change or an event
    """A rename over the border is a file that comes, or one that goes."""
    here = change.path[:1] == "/" and router.find(change.path) is not None
    if change.from_path is None:
        return change if here else None
    there = router.find(change.from_path) is not None
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
    return error
