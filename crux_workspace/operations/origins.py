"""What a file was before it came to where a part of the tree shows it: its versions from outside are not told of.

A workspace that has all mounts of its files asks nothing here; a narrowed one looks a file's history up by the file's id, in the call
that opens the version or brings it back, so that another file at the same path changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from crux_workspace.engine.codec import ArtifactRecord
from crux_workspace.engine.entry import Entry, PastState
from crux_workspace.engine.reads import LiveReads, TreeReads
from crux_workspace.engine.tree import LiveTree
from crux_workspace.errors import AccessDeniedError, ErrorCode, VersionNotFoundError
from crux_workspace.mounts.routing import Router

__all__ = ["check_opened", "check_restored", "may_show"]


async def _newest_outside(
    router: Router, newest: Entry | None, older: AsyncIterator[PastState]
) -> int:
    """Return the newest version that a file had outside of the mounts, or 0.

    Args:
        router: The mounts.
        newest: The file's head, None when it was deleted.
        older: Its ended versions, newest first; read as far as needed.

    Cost:
        pages of the file's history.
    """
    if newest is not None and router.find(newest.version_path) is None:
        return newest.version
    async for state in older:
        if router.find(state.state.version_path or "/") is None:
            return state.version
    return 0


async def check_opened(
    router: Router, path: str, version: int, newest: Entry | None, older: AsyncIterator[PastState]
) -> None:
    """Refuse to open a version that a file had outside of the mounts, or before that; the newest one is shown anyway.

    Raises:
        VersionNotFoundError: It is one (``VERSION_NOT_FOUND``).
    """
    if not router.is_part or (newest is not None and newest.version == version):
        return
    if version <= await _newest_outside(router, newest, older):
        raise VersionNotFoundError(
            f"{path} has no version {version} here.",
            code=ErrorCode.VERSION_NOT_FOUND,
            details={"path": path, "version": version},
        )


async def check_restored(
    router: Router, tree: LiveTree, path: str, file_id: str, version: int
) -> None:
    """Refuse to bring back, or to publish, a version that a file had outside of the mounts.

    Raises:
        AccessDeniedError: It is one (``PERMISSION_DENIED``).
    """
    live = tree.entry(path)
    if not router.is_part or (live is not None and live.version == version):
        return
    older = tree.states(file_id, page=64)
    if version <= await _newest_outside(router, live or tree.expired(path), older):
        raise AccessDeniedError(
            f"{path} came from outside of what may be seen here; its earlier content stays there.",
            code=ErrorCode.PERMISSION_DENIED,
            details={"path": path},
            hint="Name a version of its history here.",
        )


async def may_show(router: Router, reads: TreeReads, artifact: ArtifactRecord) -> bool:
    """Tell whether the version that an artifact shows is one that its file had inside of the mounts.

    In the past and in a transaction only the newest one is told of, whose place is known.
    """
    if artifact.version == artifact.head_version:
        return True
    if not isinstance(reads, LiveReads):
        return False
    older = reads.versions(artifact.file_id, below=None)
    return artifact.version > await _newest_outside(router, None, older)
