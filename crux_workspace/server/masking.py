"""What a caller with fewer mounts is not told, though it lies on them: the far end of a rename, where a copy came from, totals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from crux_workspace.engine.entry import inline_uri
from crux_workspace.errors import AccessDeniedError, ErrorCode, WorkspaceError
from crux_workspace.model.artifacts import Artifact
from crux_workspace.model.contents import BinaryContent
from crux_workspace.model.events import WorkspaceChangeEvent
from crux_workspace.model.files import ListResult, WorkspaceFile
from crux_workspace.model.versions import CommitEntry
from crux_workspace.mounts.routing import Router
from crux_workspace.server.principals import Principal

if TYPE_CHECKING:
    from crux_workspace.server.calls import Call

__all__ = ["masked_error", "shown", "shown_commits", "shown_event"]


def shown(principal: Principal, result: Any, namespace: str | None) -> Any:  # noqa: ANN401 - any result
    """Return a result without what its reader has no mount for; where bytes lie in a store is told as which version they are.

    Args:
        principal: The reader.
        result: What a verb returned.
        namespace: The namespace it is of, None for a result that is of none.
    """
    if not principal.partial or namespace is None:
        return result
    return _shown(_Reader(principal.router, principal.workspace.id, namespace), result)


def shown_commits(principal: Principal, commits: list[CommitEntry]) -> list[CommitEntry]:
    """Return commits without the changes that their reader has no mount for; one without visible changes is left out."""
    if not principal.partial:
        return commits
    told = [_commit(principal.router, commit) for commit in commits]
    return [commit for commit in told if commit is not None]


class _Reader(NamedTuple):
    router: Router
    workspace_id: str
    namespace: str

    def uri(self, path: str, version: int) -> str:
        return inline_uri(self.workspace_id, self.namespace, path, version)


def _shown(reader: _Reader, result: Any) -> Any:  # noqa: ANN401 - any result
    if isinstance(result, list):
        told = [_shown(reader, each) for each in result]
        return [each for each in told if each is not None]
    if isinstance(result, dict):
        return {name: _shown(reader, each) for name, each in result.items()}
    if isinstance(result, ListResult):
        return replace(result, entries=_shown(reader, result.entries))
    if isinstance(result, CommitEntry):
        return _commit(reader.router, result)
    if isinstance(result, WorkspaceFile | Artifact | BinaryContent):
        return _placed(reader, result)
    return result


def _commit(router: Router, commit: CommitEntry) -> CommitEntry | None:
    changes = [told for each in commit.changes if (told := _change(router, each)) is not None]
    return replace(commit, changes=changes) if changes else None


def _placed(reader: _Reader, result: Any) -> Any:  # noqa: ANN401 - with a path, a version and a URI
    """A file kept here: its bytes are named by its path, which the reader knows, instead of by their place in a store."""
    changed: dict[str, Any] = {}
    if result.uri is not None and reader.router.is_local(result.path):
        changed["uri"] = reader.uri(result.path, result.version)
    if getattr(result, "produced_by", None) is not None:
        changed["produced_by"] = _origin(reader.router, result.produced_by)
    return replace(result, **changed) if changed else result


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


async def masked_error(call: Call, error: WorkspaceError) -> WorkspaceError:
    """Return an error without totals and paths that its reader may not know, and without who made versions that it may not see."""
    principal = call.principal
    if not principal.partial:
        return error
    if error.code == ErrorCode.QUOTA_EXCEEDED:
        details = {k: v for k, v in error.details.items() if k in ("path", "size")}
        return type(error)(
            "The limits of the namespace refuse the change.", code=error.code, details=details
        )
    if error.code == ErrorCode.VERSION_CONFLICT:
        return _retold(error, error.message, await _conflict(call, error.details))
    if error.code == ErrorCode.TRANSACTION_CONFLICT:
        conflicts = [
            await _conflict(call, conflict)
            for conflict in error.details.get("conflicts", [])
            if principal.router.find(str(conflict.get("path"))) is not None
        ]
        return _retold(
            error,
            "The transaction was refused: what it read or wrote changed since it began; nothing was applied.",
            {**error.details, "conflicts": conflicts},
        )
    if isinstance(error, AccessDeniedError) and error.code == ErrorCode.OUTSIDE_MOUNTS:
        return AccessDeniedError(
            "A path is outside what the token may see.",
            code=error.code,
            hint=error.hint,
        )
    return error


def _retold(error: WorkspaceError, message: str, details: dict[str, Any]) -> WorkspaceError:
    return type(error)(
        message, code=error.code, details=details, hint=error.hint, retryable=error.retryable
    )


async def _conflict(call: Call, conflict: dict[str, Any]) -> dict[str, Any]:
    """Leave out what was done last, and who did it, unless the history of the file tells it as well."""
    path, version = str(conflict.get("path")), conflict.get("current_version")
    told = {"last_operation": None, "last_actor": None}
    try:
        known = await call.workspace.history(path, limit=1)
    except WorkspaceError:
        known = []
    if not known or known[0].version != version:
        return conflict | told
    return conflict if call.principal.router.find(known[0].path) is not None else conflict | told
