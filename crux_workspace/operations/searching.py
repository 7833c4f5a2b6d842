"""Searching text and JSON, line by line, in bounded pieces that never hold the event loop for long."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

from crux_workspace.engine.content import stored, text_of
from crux_workspace.engine.entry import Entry
from crux_workspace.engine.past import PastReads
from crux_workspace.engine.reads import TreeReads
from crux_workspace.model.globs import compile_glob, has_glob
from crux_workspace.model.matching import GrepMatch, Query, compile_query
from crux_workspace.model.searches import GrepResult
from crux_workspace.mounts.source_tree import SourceTree
from crux_workspace.operations import sourced
from crux_workspace.operations.listing import globbed
from crux_workspace.operations.reading import whole_number
from crux_workspace.operations.sourced_search import SourceSearch
from crux_workspace.operations.sourced_search import grep as grep_source
from crux_workspace.operations.space import Space, slash_refused
from crux_workspace.storage.records import Contains

__all__ = ["grep"]

_TURN_BYTES = 1 << 18
"""Bytes searched in one go; beyond it the work goes to a thread."""

_ONE_TOKEN = re.compile(r"[^\s,:\[\]{}\"\\]+").fullmatch
"""A needle without white space, structure, quotes and escapes reads the same in stored and in pretty JSON."""


async def grep(
    space: Space,
    reads: TreeReads,
    query: str,
    *,
    path: str | None,
    directory: bool,
    ignore_case: bool,
    regex: bool,
    max_results: int,
    context_lines: int,
) -> GrepResult:
    """Search a file, a directory, a glob or everything."""
    whole_number("max_results", max_results, least=1)
    whole_number("context_lines", context_lines)
    compiled = compile_query(query, ignore_case=ignore_case, regex=regex)
    limit = max_results + 1
    matches: list[GrepMatch] = []
    batch: list[tuple[Entry, bytes]] = []
    waiting = 0

    async def flush() -> None:
        nonlocal waiting
        if batch:
            found = await _search(compiled, list(batch), limit - len(matches), context_lines)
            matches.extend(found)
        batch.clear()
        waiting = 0

    async for entry in _scope(space, reads, compiled, path, directory=directory):
        if entry.head.kind == "b":
            continue
        batch.append((entry, await stored(space.ports, entry.path, entry.head, entry.body)))
        waiting += entry.head.size
        if waiting >= _TURN_BYTES:
            await flush()
        if len(matches) >= limit:
            break
    await flush()
    search = SourceSearch(query, compiled, ignore_case, regex, context_lines)
    truncated = len(matches) > max_results
    for tree, scope in _source_scopes(space, reads, path):
        if truncated:
            break
        found, cut = await grep_source(
            tree, search, path=scope, limit=max(max_results - len(matches), 1)
        )
        matches += found
        truncated = cut or len(matches) > max_results
    return GrepResult(matches[:max_results], truncated, reads.expired)


def _source_scopes(
    space: Space, reads: TreeReads, path: str | None
) -> list[tuple[SourceTree, str | None]]:
    """Return the sources that a search covers, each with what to search there; None is all of it."""
    if not space.router.has_sources:
        return []
    wanted = "/" if path is None else path
    own = sourced.source_at(space, reads, wanted)
    if isinstance(reads, PastReads):
        return []
    base, glob = wanted, None
    if has_glob(wanted):
        base, glob = compile_glob(wanted).base, wanted
        own = space.router.source(base)
    scopes: list[tuple[SourceTree, str | None]] = []
    if own is not None:
        scopes.append((own, glob if glob is not None else None if base == own.mount.path else base))
    return [*scopes, *((tree, glob) for tree in space.router.sources_within(base))]


async def _scope(
    space: Space, reads: TreeReads, query: Query, path: str | None, *, directory: bool
) -> AsyncIterator[Entry]:
    """Iterate over the files to search, bodies included."""
    wanted = "/" if path is None else path
    space_root = wanted == "/"
    if not space_root and not directory and space.router.is_local(wanted):
        entry = await reads.find(wanted, bodies=True)
        if entry is not None:
            yield entry
            return
    elif directory and not space_root and await reads.find(wanted) is not None:
        raise slash_refused(wanted)
    if has_glob(wanted) and not await reads.has_below(wanted):
        pattern = compile_glob(wanted)
        space.router.browsable(pattern.base)
        async for match in globbed(space, reads, pattern, bodies=True):
            yield match
        return
    space.router.browsable(wanted)
    needle = query.needle
    exact = needle is not None and _ONE_TOKEN(needle.decode()) is not None
    hint = Contains(needle) if exact and needle is not None else None
    async for entry in reads.files(wanted, bodies=True, filter=hint):
        if space.router.is_local(entry.path):
            yield entry


async def _search(
    query: Query, files: list[tuple[Entry, bytes]], limit: int, context_lines: int
) -> list[GrepMatch]:
    """Search some files; more than a little work, or a slow expression, goes to a thread."""
    size = sum(len(data) for _, data in files)
    if size < _TURN_BYTES // 8 and query.needle is not None:
        return _matches(query, files, limit, context_lines)
    return await asyncio.to_thread(_matches, query, files, limit, context_lines)


def _matches(
    query: Query, files: list[tuple[Entry, bytes]], limit: int, context_lines: int
) -> list[GrepMatch]:
    matches: list[GrepMatch] = []
    for entry, data in files:
        if len(matches) >= limit:
            break
        text = text_of(entry.path, entry.head, data)
        matches += query.search(
            text, path=entry.path, limit=limit - len(matches), context_lines=context_lines
        )
    return matches
