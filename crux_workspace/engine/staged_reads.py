"""What the read verbs see inside a transaction; everything they look at must be unchanged at the commit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from crux_workspace.engine.codec import ArtifactRecord
from crux_workspace.engine.entry import Entry, PastState
from crux_workspace.engine.keys import artifact_key, head_key
from crux_workspace.engine.looks import Listed
from crux_workspace.engine.reads import Children, Identity
from crux_workspace.engine.staged import StagedTree, conflict_of, transaction_conflict
from crux_workspace.model.globs import Glob
from crux_workspace.model.paths import is_below
from crux_workspace.storage.layout import subtree_range
from crux_workspace.storage.records import Contains

__all__ = ["StagedReads"]


class StagedReads:
    """Reads of the tree as of the transaction's start plus its own writes."""

    def __init__(self, tree: StagedTree) -> None:
        self.tree = tree
        self.expired = 0

    async def find(self, path: str, *, bodies: bool = False) -> Entry | None:
        """Return the file at a path."""
        await self.tree.look(path, bodies=bodies, ways=False)
        return self.tree.entry(path)

    async def find_many(self, paths: Sequence[str], *, bodies: bool = False) -> list[Entry | None]:
        """Return the files at some paths."""
        await self.tree.look(*paths, bodies=bodies, ways=False)
        return [self.tree.entry(path) for path in paths]

    async def has(self, path: str) -> bool:
        """Tell whether a file is at a path or below it."""
        return await self.find(path) is not None or await self.tree.has_below(path)

    async def has_below(self, path: str) -> bool:
        """Tell whether a file is below a path."""
        return await self.tree.has_below(path)

    async def children(self, path: str, *, after: str | None, limit: int) -> Children:
        """Return one page of a directory: the page of the past one with the staged files worked in."""
        tree = self.tree
        own = [_child(path, entry) for entry in tree.staged_below(path)]
        directories = frozenset(item for _, item in own if isinstance(item, str))
        tree.look_at(Listed(path, tree.touched_in(path), directories))
        missed = tree.past.expired
        page = await tree.past.children(path, after=after, limit=limit)
        tree.check_kept(path, missed)
        items: dict[str, Entry | str] = {}
        for key, item in page.items:
            if isinstance(item, str):
                if not tree.touched_below(item) or await tree.has_below(item):
                    items[key] = item
            elif not tree.is_touched(item.path):
                items[key] = item
        for key, item in own:
            if (after is None or key > after) and (page.next is None or key <= page.next):
                items.setdefault(key, item)
        return Children(sorted(items.items(), key=lambda pair: pair[0]), page.next)

    async def files(
        self,
        path: str,
        *,
        after: str | None = None,
        bodies: bool = False,
        filter: Contains | None = None,
        within: Glob | None = None,
    ) -> AsyncIterator[Entry]:
        """Iterate over all files below a path."""
        del filter
        async for entry in self.tree.files_below(path, after=after, bodies=bodies, within=within):
            yield entry

    async def artifacts(
        self, path: str, *, after: str | None
    ) -> AsyncIterator[tuple[str, ArtifactRecord, int]]:
        """Iterate over the artifacts at or below a path, by path."""
        async for entry in self._at_or_below(path, after):
            if not entry.is_artifact():
                continue
            staged = self.tree.artifact(artifact_key(entry.path))
            record = staged or await self.tree.past.artifact(entry)
            if record is None:
                raise transaction_conflict([conflict_of(entry.path, entry, None)])
            yield entry.path, record, entry.at

    async def _at_or_below(self, path: str, after: str | None) -> AsyncIterator[Entry]:
        start = None if after is None else head_key(after)
        if path != "/" and (start is None or start < head_key(path)):
            entry = await self.find(path)
            if entry is not None:
                yield entry
                return
        async for entry in self.tree.files_below(path, after=start):
            yield entry

    async def version_state(
        self, file_id: str, version: int, *, bodies: bool = False
    ) -> PastState | None:
        """Return a version of a file that is not its newest."""
        return await self.tree.version_state(file_id, version, bodies=bodies)

    async def versions(self, file_id: str, *, below: int | None) -> AsyncIterator[PastState]:
        """Iterate over the versions of a file that ended before the transaction, newest first."""
        async for state in self.tree.states(file_id, below=below):
            yield state

    async def identity(self, path: str, *, bodies: bool = False) -> Identity:
        """Return which file a path stands for."""
        await self.tree.look(path, bodies=bodies)
        entry, gone = self.tree.entry(path), self.tree.gone(path)
        if entry is not None:
            return Identity(entry, entry, entry.file_id, entry.version)
        if gone is None:
            return Identity(None, None, None, 0)
        return Identity(None, None, gone.gone.file_id, gone.gone.version)


def _child(path: str, entry: Entry) -> tuple[str, Entry | str]:
    """Fold a staged file into the child of the directory that it is, or is below."""
    name = entry.path[1 if path == "/" else len(path) + 1 :]
    assert is_below(entry.path, path)
    if "/" not in name:
        return head_key(entry.path), entry
    directory = entry.path[: len(entry.path) - len(name) + name.index("/")]
    return subtree_range("head", directory)[0], directory
