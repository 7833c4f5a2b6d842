"""Listing directories, subtrees and globs, of the live tree or of a past one."""

from __future__ import annotations

from collections.abc import AsyncIterator

from crux_workspace.engine.entry import Entry
from crux_workspace.engine.keys import head_key
from crux_workspace.engine.past import PastReads
from crux_workspace.engine.reads import TreeReads, directory_key
from crux_workspace.model.files import ListResult, WorkspaceDirectory, WorkspaceEntry
from crux_workspace.model.globs import Glob, compile_glob, has_glob
from crux_workspace.model.page_cursors import decode_page_cursor, encode_page_cursor
from crux_workspace.operations.reading import whole_number
from crux_workspace.operations.space import Space, slash_refused

__all__ = ["globbed", "list_page"]

_PAGE = 256


async def list_page(
    space: Space,
    reads: TreeReads,
    path: str,
    *,
    directory: bool,
    recursive: bool,
    glob: bool | None,
    limit: int | None,
    cursor: str | None,
) -> ListResult:
    """Return one page of a directory, a subtree or a glob, in code point order, segment by segment."""
    whole_number("limit", limit, least=1)
    moment = str(reads.sequence) if isinstance(reads, PastReads) else "now"
    listing = ["list", space.ports.partition, moment, path, str(recursive), str(glob)]
    after = None if cursor is None else decode_page_cursor(listing, cursor)
    entries: list[tuple[str, WorkspaceEntry]] = []
    more = False
    async for key, entry in _entries(
        space,
        reads,
        path,
        directory=directory,
        recursive=recursive,
        glob=glob,
        after=after,
        page=_PAGE if limit is None else min(limit + 1, _PAGE),
    ):
        if limit is not None and len(entries) == limit:
            more = True
            break
        entries.append((key, entry))
    following = encode_page_cursor(listing, entries[-1][0]) if more else None
    return ListResult([entry for _, entry in entries], following, reads.expired)


async def _entries(
    space: Space,
    reads: TreeReads,
    path: str,
    *,
    directory: bool,
    recursive: bool,
    glob: bool | None,
    after: str | None,
    page: int,
) -> AsyncIterator[tuple[str, WorkspaceEntry]]:
    pattern = await _as_glob(space, reads, path, glob)
    if pattern is not None:
        async for match in globbed(space, reads, pattern, after=after):
            yield head_key(match.path), space.file(match)
        return
    space.router.browsable(path)
    entry = None if path == "/" or space.router.find(path) is None else await reads.find(path)
    if entry is not None:
        if directory:
            raise slash_refused(path)
        if after is None:
            yield head_key(path), space.file(entry)
        return
    if recursive:
        async for below in reads.files(path, after=after):
            if space.router.find(below.path) is not None:
                yield head_key(below.path), space.file(below)
        return
    async for found in _directory(space, reads, path, after=after, page=page):
        yield found


async def _as_glob(space: Space, reads: TreeReads, path: str, glob: bool | None) -> Glob | None:
    """Decide whether a path is a glob: what exists under that very name is meant literally."""
    if glob is False or (glob is None and not has_glob(path)):
        return None
    if glob is None:
        if space.router.is_fixed_directory(path):
            return None
        if await reads.has(path):
            return None
    pattern = compile_glob(path)
    space.router.browsable(pattern.base)
    return pattern


async def globbed(
    space: Space, reads: TreeReads, pattern: Glob, *, after: str | None = None, bodies: bool = False
) -> AsyncIterator[Entry]:
    """Iterate over the files that a glob matches, in order."""
    async for entry in reads.files(pattern.base, after=after, bodies=bodies, within=pattern):
        if pattern.matches(entry.path) and space.router.find(entry.path) is not None:
            yield entry


async def _directory(
    space: Space, reads: TreeReads, path: str, *, after: str | None, page: int
) -> AsyncIterator[tuple[str, WorkspaceEntry]]:
    """Merge what the records say with the directories that mounts make."""
    fixed = [
        (directory_key(child), child)
        for child in space.router.fixed_children(path)
        if after is None or directory_key(child) > after
    ]
    inside = path != "/" and space.router.find(path) is not None
    while True:
        found = await reads.children(path, after=after, limit=page) if inside else None
        items = [] if found is None else found.items
        last = None if found is None else found.next
        for key, item in items:
            while fixed and fixed[0][0] < key:
                yield fixed[0][0], _directory_entry(space, fixed.pop(0)[1])
            if fixed and fixed[0][0] == key:
                fixed.pop(0)
            if isinstance(item, str):
                yield key, _directory_entry(space, item)
            else:
                yield key, space.file(item)
        if last is None:
            break
        after = last
    for key, child in fixed:
        yield key, _directory_entry(space, child)


def _directory_entry(space: Space, path: str) -> WorkspaceDirectory:
    return WorkspaceDirectory(path, space.router.mount_path(path))
