"""Listing directories, subtrees and globs, of the live tree or of a past one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from crux_workspace.engine.entry import Entry
from crux_workspace.engine.keys import head_key
from crux_workspace.engine.past import PastReads
from crux_workspace.engine.reads import TreeReads, directory_key
from crux_workspace.model.files import ListResult, WorkspaceDirectory, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.globs import Glob, compile_glob, has_glob
from crux_workspace.model.options import whole_number
from crux_workspace.model.page_cursors import decode_page_cursor, encode_page_cursor
from crux_workspace.operations import sourced, sourced_listing
from crux_workspace.operations.space import Space, slash_refused
from crux_workspace.storage.records import Contains

__all__ = ["globbed", "list_page", "local_files"]

_PAGE = 256


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one page of a listing is to hold."""

    path: str
    directory: bool
    recursive: bool
    glob: bool | None
    after: str | None
    limit: int | None
    failed: dict[str, str] | None
    """Takes the mounts whose sources failed, with the code; None fails with them."""


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
    partial: bool = False,
) -> ListResult:
    """Return one page of a directory, a subtree or a glob, in code point order, segment by segment."""
    whole_number("limit", limit, least=1)
    moment = str(reads.sequence) if isinstance(reads, PastReads) else "now"
    listing = ["list", space.ports.partition, moment, path, str(recursive), str(glob)]
    tree = sourced.source_at(space, reads, path)
    if tree is not None and not recursive and await _as_glob(space, reads, path, glob) is None:
        return await sourced_listing.list_directory(
            space, tree, path, listing=listing, limit=limit, cursor=cursor
        )
    after = None if cursor is None else decode_page_cursor(listing, cursor)
    failed: dict[str, str] = {}
    asked = _Asked(path, directory, recursive, glob, after, limit, failed if partial else None)
    entries: list[tuple[str, WorkspaceEntry]] = []
    more = False
    async for key, entry in _entries(space, reads, asked):
        if limit is not None and len(entries) == limit:
            more = True
            break
        entries.append((key, entry))
    following = encode_page_cursor(listing, entries[-1][0]) if more else None
    return ListResult([entry for _, entry in entries], following, reads.expired, failed)


async def _entries(
    space: Space, reads: TreeReads, asked: _Asked
) -> AsyncIterator[tuple[str, WorkspaceEntry]]:
    path, after = asked.path, asked.after
    pattern = await _as_glob(space, reads, path, asked.glob)
    if pattern is not None:
        matching = _matching(space, reads, pattern, after)
        async for match in _with_sources(space, reads, matching, asked, pattern):
            yield match
        return
    space.router.browsable(path)
    entry = await reads.find(path) if path != "/" and space.router.is_local(path) else None
    if entry is not None:
        if asked.directory:
            raise slash_refused(path)
        if after is None:
            yield head_key(path), space.file(entry)
        return
    if asked.recursive:
        files = _below(space, reads, path, after)
        async for file in _with_sources(space, reads, files, asked, None):
            yield file
        return
    page = _PAGE if asked.limit is None else min(asked.limit + 1, _PAGE)
    async for found in _directory(space, reads, path, after=after, page=page):
        yield found


async def _as_glob(space: Space, reads: TreeReads, path: str, glob: bool | None) -> Glob | None:
    """Decide whether a path is a glob: what exists under that very name is meant literally."""
    if glob is False or (glob is None and not has_glob(path)):
        return None
    if glob is None:
        if space.router.is_fixed_directory(path):
            return None
        tree = sourced.source_at(space, reads, path)
        if tree is not None:
            if await tree.stat(path) is not None:
                return None
        elif await reads.has(path):
            return None
    pattern = compile_glob(path)
    space.router.browsable(pattern.base)
    return pattern


async def globbed(
    space: Space, reads: TreeReads, pattern: Glob, *, after: str | None = None, bodies: bool = False
) -> AsyncIterator[Entry]:
    """Iterate over the files that a glob matches, in order."""
    async for entry in local_files(
        space, reads, pattern.base, after=after, bodies=bodies, within=pattern
    ):
        if pattern.matches(entry.path):
            yield entry


async def _matching(
    space: Space, reads: TreeReads, pattern: Glob, after: str | None
) -> AsyncIterator[tuple[str, WorkspaceFile]]:
    async for match in globbed(space, reads, pattern, after=after):
        yield head_key(match.path), space.file(match)


async def _below(
    space: Space, reads: TreeReads, path: str, after: str | None
) -> AsyncIterator[tuple[str, WorkspaceFile]]:
    async for below in local_files(space, reads, path, after=after):
        yield head_key(below.path), space.file(below)


async def local_files(
    space: Space,
    reads: TreeReads,
    path: str,
    *,
    after: str | None = None,
    bodies: bool = False,
    filter: Contains | None = None,
    within: Glob | None = None,
) -> AsyncIterator[Entry]:
    """Iterate over the files below a path that are kept here, in order; nothing outside of the mounts is read."""
    for scope in space.router.scopes(path):
        async for entry in reads.files(
            scope, after=after, bodies=bodies, filter=filter, within=within
        ):
            if space.router.is_local(entry.path):
                yield entry


async def _with_sources(
    space: Space,
    reads: TreeReads,
    local: AsyncIterator[tuple[str, WorkspaceFile]],
    asked: _Asked,
    pattern: Glob | None,
) -> AsyncIterator[tuple[str, WorkspaceFile]]:
    """Put the files of the sources in the same scope in among those kept here."""
    virtual: Iterator[tuple[str, WorkspaceFile]] = iter(())
    if space.router.has_sources:
        virtual = await sourced_listing.files_of_sources(
            space,
            reads,
            asked.path,
            pattern,
            after=asked.after,
            paged=asked.limit is not None,
            failed=asked.failed,
        )
    waiting = next(virtual, None)
    async for key, file in local:
        while waiting is not None and waiting[0] < key:
            yield waiting
            waiting = next(virtual, None)
        yield key, file
    if waiting is not None:
        yield waiting
    for item in virtual:
        yield item


async def _directory(
    space: Space, reads: TreeReads, path: str, *, after: str | None, page: int
) -> AsyncIterator[tuple[str, WorkspaceEntry]]:
    """Merge what the records say with the directories that mounts make."""
    fixed = [
        (directory_key(child), child)
        for child in space.router.fixed_children(path)
        if after is None or directory_key(child) > after
    ]
    inside = path != "/" and space.router.is_local(path)
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
