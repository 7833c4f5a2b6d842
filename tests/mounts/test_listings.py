"""Listings of sources: held to the directory that was asked for, each entry once, and what a name tells of a file.

What the workspace itself keeps does not matter here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crux_workspace import Mount, Workspace
from crux_workspace.errors import ErrorCode
from crux_workspace.model.contents import TextContent
from crux_workspace.model.files import ListResult, WorkspaceFile
from crux_workspace.storage import Storage, memory_storage
from crux_workspace.testing.workspace import refused


@pytest.fixture
async def storage() -> Storage:
    """One store will do."""
    return memory_storage()


def paths(found: Any) -> list[str]:
    return [entry.path for entry in found]


class Flat:
    """Lists everything whatever is asked for, pages of its own size."""

    def __init__(self, names: list[str], page: int = 1_000) -> None:
        self.names, self.page, self.calls = names, page, 0

    def list(self, path: str, options: Any) -> ListResult:
        self.calls += 1
        start = int(options.cursor or 0)
        end = start + self.page
        entries: list[Any] = [WorkspaceFile(path=f"/s/{name}") for name in self.names[start:end]]
        return ListResult(entries, str(end) if end < len(self.names) else None)

    def read(self, path: str, options: Any) -> TextContent | None:
        name = path.removeprefix("/s/")
        return TextContent(path=path, content=name) if name in self.names else None


FLAT = ["a.md", "b.md", "d/one.md", "d/two.md", "d.md", "e/f/g/deep.md", "z.md"]


async def all_pages(ws: Workspace, path: str, limit: int, **options: Any) -> list[str]:
    found: list[str] = []
    cursor = None
    for _ in range(1_000):
        page = await ws.list(path, limit=limit, cursor=cursor, **options)
        found += paths(page)
        cursor = page.cursor
        if cursor is None:
            return found
    raise AssertionError("pages without end")


@pytest.mark.parametrize("page", [1, 2, 3, 1_000])
@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_a_provider_that_lists_everything_is_held_to_the_directory(
    make_ws: Callable[..., Workspace], page: int, limit: int
) -> None:
    ws = make_ws(mounts=[Mount("/s", "read", None, Flat(FLAT, page))])
    top = ["/s/a.md", "/s/b.md", "/s/d", "/s/d.md", "/s/e", "/s/z.md"]
    for path, expected in (
        ("/s", top),
        ("/s/d", ["/s/d/one.md", "/s/d/two.md"]),
        ("/s/e", ["/s/e/f"]),
        ("/s/none", []),
        ("/s/d/one.md", ["/s/d/one.md"]),
    ):
        assert await all_pages(ws, path, limit) == expected
        assert paths(await ws.list(path)) == expected
    assert await ws.is_dir("/s/e/f/g")
    assert not await ws.is_dir("/s/none")


@pytest.mark.parametrize(
    "call",
    [
        lambda ws: all_pages(ws, "/s", 10, recursive=True),
        lambda ws: all_pages(ws, "/", 10, recursive=True),
        lambda ws: all_pages(ws, "/s/**/*.md", 10),
        lambda ws: all_pages(ws, "/s", 10),
    ],
)
async def test_pages_of_one_listing_ask_the_provider_once(
    make_ws: Callable[..., Workspace], call: Callable[[Workspace], Any]
) -> None:
    source = Flat([f"d{n:03}/{n:03}.md" for n in range(300)])
    ws = make_ws(mounts=[Mount("/workspace"), Mount("/s", "read", None, source)])
    assert len(await call(ws)) == 300
    assert source.calls <= 2
    source.names = ["new.md"]
    assert await call(ws) == ["/s/new.md"]


async def test_a_page_that_nobody_remembers_is_found_again(make_ws: Callable[..., Workspace]) -> None:  # fmt: skip
    source = Flat(FLAT)
    mounts = [Mount("/s", "read", None, source)]
    ways: list[dict[str, Any]] = [{}, {"recursive": True}]
    for options in ways:
        found, cursor = [], None
        while True:
            page = await make_ws(mounts=mounts).list("/s", limit=2, cursor=cursor, **options)
            found += paths(page)
            cursor = page.cursor
            if cursor is None:
                break
        assert found == await all_pages(make_ws(mounts=mounts), "/s", 100, **options)


@pytest.mark.parametrize("position", ["nonsense", "5", "[1, 2]", '["x", "y", null, null]', "[null, 1e999, null, null]"])  # fmt: skip
async def test_a_forged_cursor_is_refused(make_ws: Callable[..., Workspace], position: str) -> None:  # fmt: skip
    from crux_workspace.model.page_cursors import encode_page_cursor
    from crux_workspace.storage.layout import partition_name

    ws = make_ws(mounts=[Mount("/s", "read", None, Flat(FLAT))])
    listing = ["list", partition_name("w", "n"), "now", "/s", "False", "None"]
    good = encode_page_cursor(listing, "[null, 1, null, null]")
    assert paths(await ws.list("/s", limit=1, cursor=good)) == ["/s/b.md"]
    cursor = encode_page_cursor(listing, position)
    with refused(ErrorCode.INVALID_CURSOR):
        await ws.list("/s", limit=1, cursor=cursor)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("photo.PNG", "binary"),
        ("paper.pdf", "binary"),
        ("sheet.xlsx", "binary"),
        ("data.bin", "binary"),
        ("drawing.svg", "text"),
        ("data.json", "text"),
        ("README", "text"),
    ],
)
async def test_a_name_tells_the_kind_where_the_provider_does_not(
    make_ws: Callable[..., Workspace], name: str, kind: str
) -> None:
    class Names(Flat):
        def list(self, path: str, options: Any) -> ListResult:
            return ListResult([WorkspaceFile(path=f"/s/{name}")])

    ws = make_ws(mounts=[Mount("/s", "read", None, Names([]))])
    [file] = await ws.list("/s")
    assert isinstance(file, WorkspaceFile)
    assert file.content_kind == kind
