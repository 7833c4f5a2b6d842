"""A view of the past: the tree as it was right after one commit, read-only."""

from __future__ import annotations

from datetime import datetime

from crux_workspace.api.reading import ReadMethods, refuse_version
from crux_workspace.api.runner import Runner
from crux_workspace.engine.reads import TreeReads
from crux_workspace.model.moments import check_moment
from crux_workspace.operations.commits import Resolved, reads_of, resolve_moment
from crux_workspace.operations.space import Space

__all__ = ["WorkspaceView"]


class WorkspaceView(ReadMethods):
    """The tree as of a commit; get one with `Workspace.at`.

    It resolves at its first call and then stays fixed, whatever is written meanwhile.
    """

    def __init__(self, runner: Runner, moment: int | datetime) -> None:
        self._runner = runner
        self._moment = check_moment(moment)
        self._resolved: dict[str, Resolved] = {}

    def __repr__(self) -> str:
        return f"WorkspaceView(id={self._runner.core.workspace_id!r}, moment={self._moment!r})"

    async def _tree(self, space: Space) -> TreeReads:
        partition = space.ports.partition
        resolved = self._resolved.get(partition)
        if resolved is None:
            resolved = await resolve_moment(space, self._moment)
            resolved = self._resolved.setdefault(partition, resolved)
        return await reads_of(space, resolved)

    def _version(self, version: int | None) -> int | None:
        refuse_version(version)
        return None
