"""A view of the past over HTTP: the tree as it was right after one commit, read-only."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from crux_workspace.errors import InvalidInputError
from crux_workspace.http import decoding
from crux_workspace.http.calling import Caller
from crux_workspace.http.reading import HttpReads
from crux_workspace.model.moments import at_ms, check_moment
from crux_workspace.model.versions import CommitEntry

__all__ = ["HttpView"]

_commits = decoding.several(CommitEntry)


class HttpView(HttpReads):
    """The tree as of a commit; get one with `HttpWorkspace.at`. It resolves at its first call and then stays fixed."""

    def __init__(self, caller: Caller, moment: int | datetime) -> None:
        self._caller = caller
        self._moment = check_moment(moment)
        self._fixed: dict[str | None, str] = {}

    def __repr__(self) -> str:
        return f"HttpView(base_url={self._caller.core.connection.base!r}, moment={self._moment!r})"

    def _version(self, version: int | None) -> int | None:
        if version is not None:
            raise InvalidInputError(
                "A view of the past shows each file as it was; read older versions from the workspace.",
                details={"option": "version"},
            )
        return None

    async def _tree(self, namespace: str | None) -> dict[str, Any]:
        if isinstance(self._moment, int):
            return {"at": self._moment}
        resolved = await self._caller.namespace(namespace)
        if resolved not in self._fixed:
            self._fixed[resolved] = await self._fix(self._moment, namespace)
        return {"at": self._fixed[resolved]}

    async def _fix(self, moment: datetime, namespace: str | None) -> str:
        """Return what keeps meaning the same commit: a time that is past, else the newest commit there is."""
        newest = await self._caller.ask("log", {"limit": 1}, namespace, _commits)
        if newest and newest[0].at <= at_ms(moment):
            return str(newest[0].sequence)
        return moment.isoformat()
