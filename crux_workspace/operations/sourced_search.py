"""Searching source-backed mounts: by the provider, or by listing and reading."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace

from crux_workspace.model.contents import BinaryContent
from crux_workspace.model.lines import split_lines
from crux_workspace.model.matching import GrepMatch, Query
from crux_workspace.mounts.source_tree import SourceTree
from crux_workspace.operations.sourced import text_of_content

__all__ = ["SourceSearch", "grep"]


@dataclass(frozen=True, slots=True)
class SourceSearch:
    """What to search for, as the provider is told and compiled."""

    text: str
    query: Query
    ignore_case: bool
    regex: bool
    context_lines: int


async def grep(
    tree: SourceTree, search: SourceSearch, *, path: str | None, limit: int
) -> tuple[list[GrepMatch], bool]:
    """Return up to `limit` matches in a scope, and whether some were left out."""
    if not tree.has("grep"):
        return await _search(tree, search, path, limit)
    matches, truncated = await tree.grep(
        search.text,
        path=path,
        ignore_case=search.ignore_case,
        regex=search.regex,
        max_results=limit,
    )
    if search.context_lines:
        matches = await _with_context(tree, matches, search.context_lines)
    return matches, truncated


async def _search(
    tree: SourceTree, search: SourceSearch, path: str | None, limit: int
) -> tuple[list[GrepMatch], bool]:
    """Search by listing and reading, for a provider without a search of its own."""
    paths, truncated = await tree.searchable(path)
    matches: list[GrepMatch] = []
    async with aclosing(tree.texts(paths)) as contents:
        async for content in contents:
            if isinstance(content, BinaryContent):
                continue
            text = text_of_content(content, "is not searched")
            matches += await asyncio.to_thread(
                search.query.search,
                text,
                path=content.path,
                limit=limit + 1 - len(matches),
                context_lines=search.context_lines,
            )
            if len(matches) > limit:
                return matches[:limit], True
    return matches, truncated


async def _with_context(
    tree: SourceTree, matches: list[GrepMatch], context_lines: int
) -> list[GrepMatch]:
    """Fill in the lines around matches of a provider whose search knows no context."""
    lines: dict[str, list[str]] = {}
    paths = list(dict.fromkeys(match.path for match in matches))
    async with aclosing(tree.texts(paths)) as contents:
        async for content in contents:
            if not isinstance(content, BinaryContent):
                text = text_of_content(content, "is not searched")
                lines[content.path] = [line.rstrip("\r\n")[:2_000] for line in split_lines(text)]
    return [
        replace(
            match,
            before=tuple(around[max(0, match.line - 1 - context_lines) : match.line - 1]),
            after=tuple(around[match.line : match.line + context_lines]),
        )
        if (around := lines.get(match.path)) is not None
        else match
        for match in matches
    ]
