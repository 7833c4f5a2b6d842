"""Listing source-backed mounts: a directory page by page as the provider gives it, subtrees and globs from what was gathered."""

from __future__ import annotations

import asyncio
import json
import logging
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any

from crux_workspace.engine.keys import head_key, path_in_key
from crux_workspace.engine.past import PastReads
from crux_workspace.engine.reads import TreeReads
from crux_workspace.errors import ErrorCode, InvalidInputError, StorageError
from crux_workspace.model.files import ListResult, WorkspaceDirectory, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.globs import Glob
from crux_workspace.model.page_cursors import decode_page_cursor, encode_page_cursor
from crux_workspace.model.paths import parent, sort_key
from crux_workspace.mounts.calling import invalid, too_slow
from crux_workspace.mounts.source_listing import child_of, children_of
from crux_workspace.mounts.source_tree import SourceTree
from crux_workspace.operations import sourced
from crux_workspace.operations.space import Space

__all__ = ["files_of_sources", "list_directory", "sparing"]

_log = logging.getLogger("crux_workspace.sources")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a listing of a directory goes on."""

    own: str | None = None
    """The provider's cursor of the page; None is its first."""
    skip: int = 0
    """How many entries of that page were shown."""
    last: str | None = None
    """The directory that was made last of what is deeper; it may go on with the next page."""
    after: str | None = None
    """Of children that were gathered: the last one shown."""


def _position(listing: list[str], cursor: str | None) -> _Place:
    """Return the place that a cursor names.

    Raises:
        InvalidInputError: It is malformed, or of another listing (``INVALID_CURSOR``).
    """
    if cursor is None:
        return _Place()
    try:
        own, skip, last, after = json.loads(decode_page_cursor(listing, cursor))
        if all(part is None or isinstance(part, str) for part in (own, last, after)):
            return _Place(own, max(int(skip), 0), last, after)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InvalidInputError):
            raise
    raise InvalidInputError("The cursor is malformed.", code=ErrorCode.INVALID_CURSOR)


def _cursor(listing: list[str], place: _Place) -> str:
    parts = [place.own, place.skip, place.last, place.after]
    return encode_page_cursor(listing, json.dumps(parts))


async def list_directory(
    space: Space,
    tree: SourceTree,
    path: str,
    *,
    listing: list[str],
    limit: int | None,
    cursor: str | None,
) -> ListResult:
    """Return the children of a directory, a page as the provider gives it; what it gives beyond `limit` comes with the next page.

    A provider that lists everything below is gathered first, so that each child comes once.
    """
    place = _position(listing, cursor)
    if limit is None and cursor is None:
        found = await tree.directory(path)
        return ListResult(_with_nested(space, path, await _or_file(tree, path, found)))
    if place.after is not None:
        children = await _gathered(space, tree, path, goes_on=True)
        return _page_of(children, listing, place.after, limit)
    entries, following = await _provided(tree, path, place, limit)
    if place == _Place() and any(_is_deep(path, entry) for entry in entries):
        whole = None if following is not None else children_of(path, entries)
        children = await _gathered(space, tree, path, goes_on=False, whole=whole)
        return _page_of(children, listing, None, limit)
    if place.own is None:
        entries = await _or_file(tree, path, entries)
        if any(entry.path == path for entry in entries):
            return ListResult([entry for entry in entries if entry.path == path])
        entries = _with_nested(space, path, entries)
    return await _on_from(tree, path, place, entries, following, listing=listing, limit=limit)


async def _on_from(
    tree: SourceTree,
    path: str,
    place: _Place,
    entries: list[WorkspaceEntry],
    following: str | None,
    *,
    listing: list[str],
    limit: int | None,
) -> ListResult:
    """Return what is left of the provider's page at a place; while that is nothing, or all is wanted, of the next ones too."""
    shown: list[WorkspaceEntry] = []
    deadline = tree.deadline()
    seen: set[str | None] = {place.own}
    while True:
        children = [e for e in children_of(path, entries) if e.path != place.last]
        kept = children[place.skip :][:limit]
        shown += kept
        end = place.skip + len(kept)
        if end < len(children):
            tree.recent.keep(_page_key(path, place), (entries, following))
            return ListResult(shown, _cursor(listing, _Place(place.own, end, place.last)))
        if following is None:
            return ListResult(shown)
        deep = [child_of(path, entry.path) for entry in entries if _is_deep(path, entry)]
        place = _Place(following, 0, deep[-1] if deep else place.last)
        if shown and limit is not None:
            return ListResult(shown, _cursor(listing, place))
        if following in seen:
            raise invalid(tree.mount, "list", "a cursor that it gave before")
        if asyncio.get_running_loop().time() > deadline:
            raise too_slow(tree.mount, "list")
        seen.add(following)
        entries, following = await _provided(tree, path, place, limit)


def _page_key(path: str, place: _Place) -> tuple[str, ...]:
    return ("page", path, place.own or "")


async def _provided(
    tree: SourceTree, path: str, place: _Place, limit: int | None
) -> tuple[list[WorkspaceEntry], str | None]:
    """Return a page of the provider, as an earlier call found it if that showed a part of it."""
    known: Any = tree.recent.get(_page_key(path, place)) if place.skip else None
    if known is not None:
        return list(known[0]), known[1]
    return await tree.page(path, None if limit is None else limit + place.skip, place.own)


async def _or_file(
    tree: SourceTree, path: str, entries: list[WorkspaceEntry]
) -> list[WorkspaceEntry]:
    """Return what a listing found; of a provider that does not list a file, the file."""
    if entries or path == tree.mount.path:
        return entries
    file = await tree.stat(path)
    return [] if file is None else [file]


def _with_nested(space: Space, path: str, entries: list[WorkspaceEntry]) -> list[WorkspaceEntry]:
    """Add the directories that mounts below make."""
    known = {entry.path for entry in entries}
    nested: list[WorkspaceEntry] = [
        WorkspaceDirectory(child, space.router.mount_path(child))
        for child in space.router.fixed_children(path)
        if child not in known
    ]
    return sorted([*entries, *nested], key=_key) if nested else entries


def _key(entry: WorkspaceEntry) -> str:
    return sort_key(entry.path)


def _is_deep(path: str, entry: WorkspaceEntry) -> bool:
    return entry.path != path and parent(entry.path) != path


async def _gathered(
    space: Space,
    tree: SourceTree,
    path: str,
    *,
    goes_on: bool,
    whole: list[WorkspaceEntry] | None = None,
) -> list[WorkspaceEntry]:
    """Return all children of a directory; pages of one listing share what the first one found."""
    key = ("children", path)
    known: list[WorkspaceEntry] | None = tree.recent.get(key) if goes_on else None
    if known is None:
        known = _with_nested(space, path, whole or await tree.directory(path))
        tree.recent.keep(key, known)
    return known


def _page_of(
    children: list[WorkspaceEntry], listing: list[str], after: str | None, limit: int | None
) -> ListResult:
    start = 0 if after is None else bisect_right(children, sort_key(after), key=_key)
    kept = children[start:][:limit]
    if start + len(kept) == len(children):
        return ListResult(kept)
    return ListResult(kept, _cursor(listing, _Place(after=kept[-1].path)))


# -- subtrees and globs


@contextmanager
def sparing(tree: SourceTree, failed: dict[str, str] | None) -> Iterator[None]:
    """Note a mount whose source fails, with the code of the error; None lets the error through.

    Yields:
        To the work on the source.
    """
    try:
        yield
    except StorageError as error:
        if failed is None:
            raise
        _log.warning("a mount is left out, for its source failed (%s)", error.code.value)
        failed[tree.mount.path] = error.code.value


async def files_of_sources(
    space: Space,
    reads: TreeReads,
    path: str,
    pattern: Glob | None,
    *,
    after: str | None,
    paged: bool,
    failed: dict[str, str] | None,
) -> Iterator[tuple[str, WorkspaceFile]]:
    """Iterate over the files of the sources in a scope, in order; a view of the past leaves sources out.

    `failed` takes the mounts strictly below the scope whose sources failed; their files are left out as far as they are not known.
    """
    base = path if pattern is None else pattern.base
    own = sourced.source_at(space, reads, base)
    if isinstance(reads, PastReads):
        return iter(())
    trees = [*([] if own is None else [own]), *space.router.sources_within(base)]
    found: list[Iterator[tuple[str, WorkspaceFile]]] = []
    for tree in trees:
        scope = path if pattern is not None else base if tree is own else tree.mount.path
        spared = failed if tree is not own else None
        files: list[WorkspaceFile] = []
        with sparing(tree, spared):
            collected = await tree.gathered(
                scope, glob=pattern is not None, goes_on=after is not None, paged=paged
            )
            files = collected.files
            collected.complete()
        found.append(_behind(files, after))
    return merge(*found, key=lambda item: item[0])


def _behind(files: list[WorkspaceFile], after: str | None) -> Iterator[tuple[str, WorkspaceFile]]:
    start = 0 if after is None else bisect_right(files, sort_key(path_in_key(after)), key=_key)
    return ((head_key(file.path), file) for file in islice(files, start, None))
