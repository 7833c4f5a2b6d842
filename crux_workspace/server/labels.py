"""Which path a path hash stands for, as far as the namespaces tell that a caller may see."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crux_workspace.api.inside import path_label
from crux_workspace.server.masking import shown_commits

if TYPE_CHECKING:
    from crux_workspace.api.facade import Workspace
    from crux_workspace.server.principals import Principal

__all__ = ["Labels"]

_PAGE = 256
_MOST_PATHS = 200_000
_MOST_NAMESPACES = 50
_MOST_KNOWN = 200


@dataclass(slots=True)
class _Known:
    sequence: int = 0
    paths: dict[str, str] = field(default_factory=dict)
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)


class Labels:
    """Paths by their hashes, for each caller and namespace; kept up by what the log says since it was last asked.

    Those of the pairs that were asked for last are kept.
    """

    def __init__(self, most: int = _MOST_KNOWN) -> None:
        self._most = most
        self._known: OrderedDict[tuple[Principal, str], _Known] = OrderedDict()

    async def find(self, principal: Principal, namespaces: list[str]) -> dict[str, str]:
        """Return the paths of the files in some namespaces, by hash.

        Cost:
            The first time all files of each namespace, then the commits since.
        """
        found: dict[str, str] = {}
        for namespace in namespaces[:_MOST_NAMESPACES]:
            known = self._take((principal, namespace))
            async with known.busy:
                await self._refresh(principal, namespace, known)
            found |= known.paths
        return found

    def _take(self, pair: tuple[Principal, str]) -> _Known:
        known = self._known.setdefault(pair, _Known())
        self._known.move_to_end(pair)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return known

    async def _refresh(self, principal: Principal, namespace: str, known: _Known) -> None:
        workspace = principal.workspace.for_namespace(namespace)
        newest = await workspace.log(limit=1)
        if not newest or newest[0].sequence == known.sequence:
            return
        if known.sequence > newest[0].sequence or len(known.paths) >= _MOST_PATHS:
            known.paths.clear()  # another log, or too much of it
            known.sequence = 0
        if known.sequence:
            await self._follow(principal, workspace, known)
        else:
            await self._walk(workspace, known)
        known.sequence = newest[0].sequence

    async def _walk(self, workspace: Workspace, known: _Known) -> None:
        seen = 0
        async for file in workspace.walk("/"):
            await self._learn(workspace, known, file.path)
            seen += 1
            if seen >= _MOST_PATHS:
                return
            if seen % _PAGE == 0:
                await asyncio.sleep(0)

    async def _follow(self, principal: Principal, workspace: Workspace, known: _Known) -> None:
        cursor: str | None = None
        while True:
            page = await workspace.log(limit=_PAGE, cursor=cursor)
            fresh = [entry for entry in page if entry.sequence > known.sequence]
            for entry in shown_commits(principal, fresh):
                for change in entry.changes:
                    for path in filter(None, (change.path, change.from_path)):
                        await self._learn(workspace, known, path)
            if len(fresh) < _PAGE:
                return
            cursor = page[-1].cursor

    async def _learn(self, workspace: Workspace, known: _Known, path: str) -> None:
        hashed = await path_label(workspace, path)
        if hashed is not None:
            known.paths[hashed] = path
