"""Searching text and JSON, line by line, in bounded pieces that never hold the event loop for long."""

from __future__ import annotations

import asyncio
import codecs
import re
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from crux_workspace.engine.content import stored, text_of
from crux_workspace.engine.entry import Entry
from crux_workspace.engine.parts import corrupt, stream_parts
from crux_workspace.engine.past import PastReads
from crux_workspace.engine.reads import TreeReads
from crux_workspace.model.globs import compile_glob, has_glob
from crux_workspace.model.line_search import LineSearch
from crux_workspace.model.matching import GrepMatch, Query, compile_query
from crux_workspace.model.options import needed_number
from crux_workspace.model.searches import GrepResult
from crux_workspace.mounts.source_tree import SourceTree
from crux_workspace.operations import sourced
from crux_workspace.operations.listing import globbed
from crux_workspace.operations.sourced_listing import sparing
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
    partial: bool = False,
) -> GrepResult:
    """Search a file, a directory, a glob or everything."""
    needed_number("max_results", max_results)
    needed_number("context_lines", context_lines, least=0)
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
        if entry.head.kind == "t" and entry.head.size > _TURN_BYTES and not entry.head.is_inline:
            await flush()
            lacking = limit - len(matches)
            matches += await _search_stream(space, compiled, entry, lacking, context_lines)
        else:
            batch.append((entry, await stored(space.ports, entry.path, entry.head, entry.body)))
            waiting += entry.head.size
            if waiting >= _TURN_BYTES:
                await flush()
        if len(matches) >= limit:
            break
    await flush()
    search = SourceSearch(query, compiled, ignore_case, regex, context_lines)
    truncated = len(matches) > max_results
    failed: dict[str, str] = {}
    for tree, scope, is_own in _source_scopes(space, reads, path):
        if truncated:
            break
        most = max(max_results - len(matches), 1)
        with sparing(tree, failed if partial and not is_own else None):
            found, cut = await grep_source(tree, search, path=scope, limit=most)
            matches += found
            truncated = cut or len(matches) > max_results
    return GrepResult(matches[:max_results], truncated, reads.expired, failed)


def _source_scopes(
    space: Space, reads: TreeReads, path: str | None
) -> list[tuple[SourceTree, str | None, bool]]:
    """Return the sources that a search covers, each with what to search there, None for all, and whether the scope lies in it."""
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
    scopes: list[tuple[SourceTree, str | None, bool]] = []
    if own is not None:
        where = glob if glob is not None else None if base == own.mount.path else base
        scopes.append((own, where, True))
    return [*scopes, *((tree, glob, False) for tree in space.router.sources_within(base))]


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
        return _matches(query, files, limit, context_lines, None)
    async with _stopping() as stop:
        return await asyncio.to_thread(_matches, query, files, limit, context_lines, stop)


@asynccontextmanager
async def _stopping() -> AsyncIterator[threading.Event]:
    """Tell a thread when the caller does not wait for it any more."""
    stop = threading.Event()
    try:
        yield stop
    finally:
        stop.set()


def _matches(
    query: Query,
    files: list[tuple[Entry, bytes]],
    limit: int,
    context_lines: int,
    stop: threading.Event | None,
) -> list[GrepMatch]:
    matches: list[GrepMatch] = []
    for entry, data in files:
        if len(matches) >= limit:
            break
        text = text_of(entry.path, entry.head, data)
        matches += query.search(
            text,
            path=entry.path,
            limit=limit - len(matches),
            context_lines=context_lines,
            stop=stop,
        )
    return matches


async def _search_stream(
    space: Space, query: Query, entry: Entry, limit: int, context_lines: int
) -> list[GrepMatch]:
    """Search a text in the asset store as it comes, in memory that does not grow with it."""
    if limit == 0:
        return []
    decoder = codecs.getincrementaldecoder("utf-8")()
    async with _stopping() as stop:
        search = LineSearch(
            query, path=entry.path, limit=limit, context_lines=context_lines, stop=stop
        )

        def take(chunk: bytes, *, last: bool) -> None:
            search.feed(decoder.decode(chunk, last))
            if last:
                search.end()

        async with aclosing(stream_parts(space.ports, entry.path, entry.head)) as chunks:
            async for chunk in chunks:
                await _taken(entry, take, chunk, last=False)
                if search.is_done:
                    return search.matches
        await _taken(entry, take, b"", last=True)
        return search.matches


async def _taken(entry: Entry, take: Callable[..., None], chunk: bytes, *, last: bool) -> None:
    try:
        await asyncio.to_thread(take, chunk, last=last)
    except UnicodeDecodeError as error:
        raise corrupt(entry.path, "its bytes are not what was written") from error
