"""list and walk: order, globs, pages."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import ErrorCode
from crux_workspace.testing.workspace import refused

PATHS = (
    "/outputs/r.md",
    "/workspace/a/1.md",
    "/workspace/a/b/2.md",
    "/workspace/a-b",
    "/workspace/a.txt",
    "/workspace/z.md",
)


@pytest.fixture
async def tree(ws: Workspace) -> Workspace:
    for path in PATHS[::-1]:
        await ws.write(path, path)
    return ws


def paths(result: Any) -> list[str]:
    return [entry.path for entry in result]


async def test_immediate_children_with_directories_synthesised(tree: Workspace) -> None:
    result = await tree.list("/workspace")
    assert [(entry.path, entry.kind) for entry in result] == [
        ("/workspace/a", "directory"),
        ("/workspace/a-b", "file"),
        ("/workspace/a.txt", "file"),
        ("/workspace/z.md", "file"),
    ]
    assert result.cursor is None
    assert len(result) == 4
    assert paths(await tree.list("/workspace/")) == paths(result)


async def test_the_root_lists_the_mounts_even_when_empty(ws: Workspace) -> None:
    assert [(e.path, e.kind) for e in await ws.list()] == [
        ("/outputs", "directory"),
        ("/workspace", "directory"),
    ]


async def test_recursive_lists_all_files_segment_by_segment(tree: Workspace) -> None:
    assert tuple(paths(await tree.list(recursive=True))) == PATHS
    assert paths(await tree.list("/workspace/a", recursive=True)) == [
        "/workspace/a/1.md",
        "/workspace/a/b/2.md",
    ]


async def test_listing_a_file_gives_that_file(tree: Workspace) -> None:
    assert paths(await tree.list("/workspace/z.md")) == ["/workspace/z.md"]


async def test_a_missing_directory_is_empty(tree: Workspace) -> None:
    assert paths(await tree.list("/workspace/none")) == []
    assert paths(await tree.list("/workspace/none", recursive=True)) == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("/workspace/*.md", ["/workspace/z.md"]),
        ("/workspace/**/*.md", ["/workspace/a/1.md", "/workspace/a/b/2.md", "/workspace/z.md"]),
        (
            "/**/?.md",
            ["/outputs/r.md", "/workspace/a/1.md", "/workspace/a/b/2.md", "/workspace/z.md"],
        ),
        ("/workspace/a[-.]*", ["/workspace/a-b", "/workspace/a.txt"]),
        ("/{outputs,workspace}/[rz].md", ["/outputs/r.md", "/workspace/z.md"]),
        ("/workspace/a/*", ["/workspace/a/1.md"]),
        ("/workspace/none/*", []),
    ],
)
async def test_globs_match_files(tree: Workspace, pattern: str, expected: list[str]) -> None:
    assert paths(await tree.list(pattern)) == expected


async def test_a_path_that_exists_is_literal_unless_glob_decides(ws: Workspace) -> None:
    await ws.write("/workspace/[ab]", "literal")
    await ws.write("/workspace/a", "a")
    assert paths(await ws.list("/workspace/[ab]")) == ["/workspace/[ab]"]
    assert paths(await ws.list("/workspace/[ab]", glob=True)) == ["/workspace/a"]
    assert paths(await ws.list("/workspace/[a]*", glob=False)) == []
    await ws.write("/workspace/d*/x", "in a directory named like a glob")
    assert paths(await ws.list("/workspace/d*")) == ["/workspace/d*/x"]


async def test_pages_hold_each_entry_once(tree: Workspace) -> None:
    found, cursor = [], None
    while True:
        page = await tree.list(recursive=True, limit=2, cursor=cursor)
        assert len(page) <= 2
        found += paths(page)
        if (cursor := page.cursor) is None:
            break
    assert tuple(found) == PATHS


async def test_an_entry_that_stays_appears_once_whatever_changes_meanwhile(tree: Workspace) -> None:
    first = await tree.list("/workspace", limit=1)
    await tree.write("/workspace/0", "before the cursor")
    await tree.delete("/workspace/a-b")
    await tree.write("/workspace/zz", "after the cursor")
    rest = await tree.list("/workspace", limit=10, cursor=first.cursor)
    assert paths(first) == ["/workspace/a"]
    assert paths(rest) == ["/workspace/a.txt", "/workspace/z.md", "/workspace/zz"]


async def test_walk_yields_all_pages(tree: Workspace) -> None:
    assert tuple([entry.path async for entry in tree.walk("/")]) == PATHS


async def test_a_malformed_or_foreign_cursor_is_refused(tree: Workspace) -> None:
    page = await tree.list("/workspace", limit=1)
    assert page.cursor
    for path, cursor in (("/workspace", "rubbish"), ("/outputs", page.cursor), ("/workspace", "")):
        with refused(ErrorCode.INVALID_CURSOR):
            await tree.list(path, limit=1, cursor=cursor)
    with refused(ErrorCode.INVALID_CURSOR):
        await tree.list("/workspace", limit=1, cursor=page.cursor, namespace="other")


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_below_one_is_refused(tree: Workspace, limit: int) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        await tree.list("/workspace", limit=limit)
