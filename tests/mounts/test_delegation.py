"""Source-backed mounts: which verb the provider answers, what is made of what it lacks, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crux_workspace import Edit, Mount, Workspace
from crux_workspace.errors import (
    AccessDeniedError,
    ErrorCode,
    InvalidInputError,
    PathNotFoundError,
    UnsupportedError,
    WorkspaceError,
)
from crux_workspace.model.contents import BinaryContent, JsonContent, TextContent
from crux_workspace.model.files import ListResult, WorkspaceFile
from crux_workspace.testing import MemorySource
from crux_workspace.testing.workspace import refused

FILES: dict[str, Any] = {
    "a.md": "# Alpha\n\nwords\n",
    "d/b.txt": "two words\n",
    "d/c.json": {"k": ["words"]},
    "d/e/f.bin": b"\0\1\2",
}


class Bare:
    """Only the two hooks that are required, async."""

    def __init__(self, files: dict[str, Any]) -> None:
        self.inner = MemorySource(files)

    async def list(self, path: str, options: Any) -> ListResult:
        return self.inner.list(path, options)

    async def read(self, path: str, options: Any) -> Any:
        return self.inner.read(path, options)


@pytest.fixture(params=["full", "bare"])
def source(request: pytest.FixtureRequest) -> Any:
    return MemorySource(FILES) if request.param == "full" else Bare(FILES)


@pytest.fixture
def sourced(make_ws: Callable[..., Workspace], source: Any) -> Workspace:
    return make_ws(mounts=[Mount("/workspace"), Mount("/sources", "read", "Papers", source)])


@pytest.fixture
def memory() -> MemorySource:
    return MemorySource(FILES)


@pytest.fixture
def writable(make_ws: Callable[..., Workspace], memory: MemorySource) -> Workspace:
    return make_ws(mounts=[Mount("/workspace"), Mount("/sources", source=memory)])


def paths(found: Any) -> list[str]:
    return [entry.path for entry in found]


# -- reading


async def test_listing_shows_what_the_provider_shows(sourced: Workspace) -> None:
    assert paths(await sourced.list("/")) == ["/sources", "/workspace"]
    assert paths(await sourced.list("/sources")) == ["/sources/a.md", "/sources/d"]
    assert paths(await sourced.list("/sources/d")) == ["/sources/d/b.txt", "/sources/d/c.json", "/sources/d/e"]  # fmt: skip
    assert paths(await sourced.list("/sources/a.md")) == ["/sources/a.md"]
    assert paths(await sourced.list("/sources/none")) == []
    (file, directory) = await sourced.list("/sources")
    assert (file.mount, file.storage) == ("/sources", "virtual")  # type: ignore[union-attr]
    assert (directory.kind, directory.mount) == ("directory", "/sources")


async def test_recursive_listings_and_globs_cover_sources(sourced: Workspace) -> None:
    await sourced.write("/workspace/x.md", "x")
    below = [f"/sources/{name}" for name in FILES]
    assert paths(await sourced.list("/sources", recursive=True)) == below
    assert paths(await sourced.list("/", recursive=True)) == [*below, "/workspace/x.md"]
    assert [file.path async for file in sourced.walk()] == [*below, "/workspace/x.md"]
    assert paths(await sourced.list("/**/*.md")) == ["/sources/a.md", "/workspace/x.md"]
    assert paths(await sourced.list("/sources/*.{md,txt}")) == ["/sources/a.md"]


async def test_pages_of_a_recursive_listing_show_each_file_once(sourced: Workspace) -> None:
    await sourced.write("/workspace/x.md", "x")
    found, cursor = [], None
    for _ in range(10):
        page = await sourced.list("/", recursive=True, limit=2, cursor=cursor)
        found += paths(page)
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [*(f"/sources/{name}" for name in FILES), "/workspace/x.md"]


async def test_pages_of_a_directory_go_on_by_the_providers_cursor(sourced: Workspace) -> None:
    first = await sourced.list("/sources/d", limit=2)
    second = await sourced.list("/sources/d", limit=2, cursor=first.cursor)
    assert paths(first) + paths(second) == ["/sources/d/b.txt", "/sources/d/c.json", "/sources/d/e"]
    assert second.cursor is None
    with pytest.raises(InvalidInputError) as caught:
        await sourced.list("/sources", cursor=first.cursor)
    assert caught.value.code == ErrorCode.INVALID_CURSOR


async def test_a_provider_that_ignores_the_limit_is_cut_and_continued(make_ws: Callable[..., Workspace]) -> None:  # fmt: skip
    class Ignores(MemorySource):
        def list(self, path: str, options: Any) -> ListResult:
            return ListResult([WorkspaceFile(path=f"/sources/{n}.md") for n in range(5)])

    ws = make_ws(mounts=[Mount("/sources", "read", None, Ignores())])
    found, cursor = [], None
    while True:
        page = await ws.list("/sources", limit=2, cursor=cursor)
        assert len(page) <= 2
        found += paths(page)
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [f"/sources/{n}.md" for n in range(5)]


async def test_reading(sourced: Workspace) -> None:
    content = await sourced.read("/sources/a.md")
    assert isinstance(content, TextContent)
    assert (content.content, content.size, content.total_lines, content.truncated) == ("# Alpha\n\nwords\n", 15, 3, False)  # fmt: skip
    assert content.mime_type == "text/markdown"
    value = await sourced.read("/sources/d/c.json")
    assert isinstance(value, JsonContent)
    assert value.content == {"k": ["words"]}
    assert isinstance(await sourced.read("/sources/d/e/f.bin"), BinaryContent)
    assert await sourced.read_text("/sources/d/c.json") == '{\n  "k": [\n    "words"\n  ]\n}\n'
    assert await sourced.read_json("/sources/d/c.json") == {"k": ["words"]}
    many = await sourced.read_many(["/sources/a.md", "/sources/none", "/workspace/none"])
    assert {path: content is None for path, content in many.items()} == {
        "/sources/a.md": False,
        "/sources/none": True,
        "/workspace/none": True,
    }
    with pytest.raises(PathNotFoundError):
        await sourced.read("/sources/none.md")


async def test_windows_by_bytes_and_by_lines(sourced: Workspace) -> None:
    window = await sourced.read("/sources/a.md", offset=2, max_inline_bytes=5)
    assert isinstance(window, TextContent)
    assert (window.content, window.offset, window.size, window.truncated) == ("Alpha", 2, 15, True)
    lines = await sourced.read("/sources/a.md", start_line=3, end_line=9)
    assert isinstance(lines, TextContent)
    assert (lines.content, lines.total_lines, lines.truncated) == ("words\n", 3, True)
    with pytest.raises(InvalidInputError):
        await sourced.read("/sources/a.md", start_line=9)
    with pytest.raises(UnsupportedError) as caught:
        await sourced.read("/sources/a.md", version=1)
    assert caught.value.code == ErrorCode.SOURCE_UNSUPPORTED


async def test_bytes_need_the_hook_only_for_binary(sourced: Workspace, source: Any) -> None:
    assert await sourced.read_bytes("/sources/a.md") == b"# Alpha\n\nwords\n"
    chunks = [c async for c in sourced.stream("/sources/a.md", offset=2, length=5, chunk_bytes=2)]
    assert chunks == [b"Al", b"ph", b"a"]
    if isinstance(source, MemorySource):
        assert await sourced.read_bytes("/sources/d/e/f.bin") == b"\0\1\2"
    else:
        with refused(ErrorCode.SOURCE_UNSUPPORTED):
            await sourced.read_bytes("/sources/d/e/f.bin")
        with refused(ErrorCode.SOURCE_UNSUPPORTED):
            await sourced.copy("/sources/d/e/f.bin", "/workspace/f.bin")


async def test_exists_is_dir_and_stat(sourced: Workspace) -> None:
    for path, there, is_directory in (
        ("/sources", True, True),
        ("/sources/a.md", True, False),
        ("/sources/d", True, True),
        ("/sources/none", False, False),
    ):
        assert await sourced.exists(path) is there
        assert await sourced.is_dir(path) is is_directory
    file = await sourced.stat("/sources/a.md")
    assert file is not None
    assert (file.size, file.mount, file.storage, file.mime_type) == (15, "/sources", "virtual", "text/markdown")  # fmt: skip
    assert await sourced.stat("/sources/none") is None


async def test_grep_by_hook_and_by_reading(sourced: Workspace) -> None:
    await sourced.write("/workspace/w.md", "words here\n")
    result = await sourced.grep("words", path="/sources/a.md")
    assert [(m.path, m.line, m.column) for m in result] == [("/sources/a.md", 3, 1)]
    everywhere = await sourced.grep("words")
    assert paths(everywhere)[:2] == ["/workspace/w.md", "/sources/a.md"]
    assert (await sourced.grep("words", path="/sources/d/*.txt")).matches[0].path == "/sources/d/b.txt"  # fmt: skip
    assert paths(await sourced.grep("WORDS", path="/sources/d/b.txt", ignore_case=True)) == ["/sources/d/b.txt"]  # fmt: skip
    assert paths(await sourced.grep("^w", path="/sources/a.md", regex=True)) == ["/sources/a.md"]
    cut = await sourced.grep("words", max_results=1)
    assert (len(cut), cut.truncated) == (1, True)
    [match] = await sourced.grep("words", path="/sources/a.md", context_lines=1)
    assert (match.before, match.after) == (("",), ())
    with refused(ErrorCode.INVALID_REGEX):
        await sourced.grep("(", path="/sources", regex=True)


async def test_local_records_below_a_source_never_show(
    make_ws: Callable[..., Workspace], memory: MemorySource
) -> None:
    plain = make_ws(mounts=[Mount("/workspace"), Mount("/sources")])
    await plain.write("/sources/kept.md", "words kept here", status="final")
    ws = make_ws(mounts=[Mount("/workspace"), Mount("/sources", "read", None, memory)])
    assert not await ws.exists("/sources/kept.md")
    assert "/sources/kept.md" not in paths(await ws.list("/", recursive=True))
    assert "/sources/kept.md" not in paths(await ws.list("/**/*.md"))
    assert "/sources/kept.md" not in paths(await ws.grep("words"))
    assert await ws.artifacts() == []


async def test_a_mount_inside_a_source_is_its_own(
    make_ws: Callable[..., Workspace], memory: MemorySource
) -> None:
    memory.files["own/hidden.md"] = "hidden words"
    ws = make_ws(
        mounts=[Mount("/workspace"), Mount("/sources", "read", None, memory), Mount("/sources/own")]
    )
    await ws.write("/sources/own/x.md", "own words")
    assert paths(await ws.list("/sources")) == ["/sources/a.md", "/sources/d", "/sources/own"]
    assert paths(await ws.list("/sources", recursive=True))[-1] == "/sources/own/x.md"
    assert "/sources/own/x.md" in paths(await ws.grep("words", path="/sources"))
    assert "/sources/own/hidden.md" not in paths(await ws.grep("words"))
    assert await ws.read_text("/sources/own/x.md") == "own words"


# -- refusals

CALLS: dict[str, Callable[[Workspace], Any]] = {
    "write": lambda ws: ws.write("/sources/a.md", "x"),
    "edit": lambda ws: ws.edit("/sources/a.md", "words", "x"),
    "append": lambda ws: ws.append("/sources/a.md", "x"),
    "delete": lambda ws: ws.delete("/sources/a.md"),
    "copy to it": lambda ws: ws.copy("/workspace/x.md", "/sources/x.md"),
}
ALWAYS: dict[str, Callable[[Any], Any]] = {
    "update": lambda ws: ws.update("/sources/a.md", str.upper),
    "set": lambda ws: ws.set("/sources/a.md", kind="x"),
    "rename": lambda ws: ws.rename("/sources/a.md", "/sources/b.md"),
    "rename away": lambda ws: ws.rename("/sources/a.md", "/workspace/b.md"),
    "rename into": lambda ws: ws.rename("/workspace/x.md", "/sources/x.md"),
    "move": lambda ws: ws.move("/workspace/x.md", "/sources/x.md"),
    "undo": lambda ws: ws.undo("/sources/a.md"),
    "redo": lambda ws: ws.redo("/sources/a.md"),
    "finalize": lambda ws: ws.finalize("/sources/a.md"),
    "withdraw": lambda ws: ws.withdraw("/sources/a.md"),
    "diff": lambda ws: ws.diff("/sources/a.md"),
    "if_version": lambda ws: ws.write("/sources/a.md", "x", if_version=1),
    "idempotency_key": lambda ws: ws.write("/sources/a.md", "x", idempotency_key="k"),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_read_only_mount_refuses_changes(sourced: Workspace, name: str) -> None:
    await sourced.write("/workspace/x.md", "x")
    with pytest.raises(AccessDeniedError) as caught:
        await CALLS[name](sourced)
    assert caught.value.code == ErrorCode.READ_ONLY_MOUNT


@pytest.mark.parametrize("name", CALLS)
async def test_a_provider_has_to_opt_in(make_ws: Callable[..., Workspace], name: str) -> None:
    ws = make_ws(mounts=[Mount("/workspace"), Mount("/sources", source=Bare(FILES))])
    await ws.write("/workspace/x.md", "x")
    with refused(ErrorCode.SOURCE_UNSUPPORTED):
        await CALLS[name](ws)


@pytest.mark.parametrize("name", ALWAYS)
async def test_what_only_local_files_have(
    writable: Workspace, memory: MemorySource, name: str
) -> None:
    await writable.write("/workspace/x.md", "x")
    memory.calls.clear()
    with refused(ErrorCode.SOURCE_UNSUPPORTED):
        await ALWAYS[name](writable)
    assert memory.calls == []
    assert await writable.read_text("/workspace/x.md") == "x"


async def test_history_is_empty_and_the_past_has_no_sources(writable: Workspace) -> None:
    await writable.write("/workspace/x.md", "words")
    assert await writable.history("/sources/a.md") == []
    view = writable.at(1)
    for call in (
        view.read("/sources/a.md"),
        view.list("/sources"),
        view.grep("x", path="/sources"),
    ):
        with refused(ErrorCode.SOURCE_UNSUPPORTED):
            await call
    assert paths(await view.list("/", recursive=True)) == ["/workspace/x.md"]
    assert paths(await view.grep("words")) == ["/workspace/x.md"]
    assert paths(await view.list("/")) == ["/sources", "/workspace"]


@pytest.mark.parametrize("name", [*CALLS, *ALWAYS])
async def test_a_transaction_refuses_before_any_hook(
    writable: Workspace, memory: MemorySource, name: str
) -> None:
    if name in ("undo", "redo", "diff", "idempotency_key"):
        return  # a transaction has no such method, or refuses the option itself
    await writable.write("/workspace/x.md", "x")
    memory.calls.clear()
    call = {**CALLS, **ALWAYS}[name]
    with pytest.raises(WorkspaceError) as caught:
        async with writable.transaction() as tx:
            await call(tx)
    assert caught.value.code == ErrorCode.SOURCE_UNSUPPORTED
    assert memory.calls == []


async def test_a_transaction_may_read_and_copy_from_a_source(writable: Workspace) -> None:
    async with writable.transaction() as tx:
        assert await tx.read_text("/sources/d/b.txt") == "two words\n"
        await tx.copy("/sources/a.md", "/workspace/a.md")
        await tx.edit("/workspace/a.md", "words", "phrases")
    assert await writable.read_text("/workspace/a.md") == "# Alpha\n\nphrases\n"
    assert len(await writable.log()) == 1


# -- writing


async def test_opt_in_writes(writable: Workspace, memory: MemorySource) -> None:
    file = await writable.write("/sources/new.md", "one\n", mime_type="text/x", metadata={"k": 1})
    assert (file.path, file.storage, file.mount) == ("/sources/new.md", "virtual", "/sources")
    await writable.edit("/sources/new.md", edits=[Edit("one", "two")])
    await writable.append("/sources/new.md", "three\n")
    await writable.append("/sources/fresh.md", "first\n")
    await writable.write("/sources/v.json", {"a": [1]})
    await writable.write("/sources/b.bin", bytearray(b"\0"))
    assert memory.files["new.md"] == "two\nthree\n"
    assert memory.files["fresh.md"] == "first\n"
    assert memory.files["v.json"] == {"a": [1]}
    assert memory.files["b.bin"] == b"\0"
    assert [name for name, _ in memory.calls if name in ("write", "edit", "append")] == [
        *("write", "edit", "append", "append", "write", "write")
    ]
    await writable.delete("/sources/new.md")
    await writable.delete("/sources/new.md")
    assert "new.md" not in memory.files
    assert await writable.log() == []


SURROGATES: dict[str, Callable[[Workspace], Any]] = {
    "write": lambda ws: ws.write("/sources/a.md", "\ud800"),
    "write JSON": lambda ws: ws.write("/sources/a.json", {"k": "\ud800"}),
    "edit": lambda ws: ws.edit("/sources/a.md", "words", "\ud800"),
    "append": lambda ws: ws.append("/sources/a.md", "\ud800"),
    "append to nothing": lambda ws: ws.append("/sources/new.md", "\ud800"),
    "metadata": lambda ws: ws.write("/sources/a.md", "x", metadata={"k": "\udc00"}),
}


@pytest.mark.parametrize("name", SURROGATES)
async def test_what_utf8_cannot_write_reaches_no_provider(
    writable: Workspace, memory: MemorySource, name: str
) -> None:
    with refused(ErrorCode.INVALID_CONTENT):
        await SURROGATES[name](writable)
    assert not [call for call in memory.calls if call[0] in ("write", "edit", "append")]


async def test_an_edit_that_changes_nothing_writes_nothing(
    writable: Workspace, memory: MemorySource
) -> None:
    await writable.edit("/sources/a.md", "words", "words")
    assert not [call for call in memory.calls if call[0] == "edit"]
    with refused(ErrorCode.EDIT_NOT_FOUND):
        await writable.edit("/sources/a.md", "nowhere", "x")
    with refused(ErrorCode.INVALID_CONTENT):
        await writable.edit("/sources/d/c.json", "k", "l")
    with refused(ErrorCode.BINARY_CONTENT):
        await writable.append("/sources/d/e/f.bin", "x")


async def test_appends_at_the_same_time_all_land(writable: Workspace, memory: MemorySource) -> None:
    import asyncio

    await asyncio.gather(*(writable.append("/sources/log.txt", f"{n}\n") for n in range(20)))
    assert sorted(str(memory.files["log.txt"]).split()) == sorted(map(str, range(20)))


async def test_a_directory_is_deleted_only_when_that_is_meant(
    writable: Workspace, memory: MemorySource
) -> None:
    for path in ("/sources/d/", "/sources/d", "/sources"):
        with refused(ErrorCode.PATH_TYPE_CONFLICT) as caught:
            await writable.delete(path)
        assert "recursive=True" in (caught.value.hint or "")
    assert not [name for name, _ in memory.calls if name == "delete"]
    await writable.delete("/sources/d", recursive=True)
    assert list(memory.files) == ["a.md"]


# -- copies


async def test_copies_remember_the_source_and_its_revision(
    writable: Workspace, memory: MemorySource
) -> None:
    file = await writable.copy("/sources/a.md", "/workspace/a.md")
    assert isinstance(file, WorkspaceFile)
    assert (file.version, file.mime_type) == (1, "text/markdown")
    assert file.produced_by == {"run_id": None, "span_id": None, "sources": ["/sources/a.md@1"]}
    [artifact] = await writable.artifacts()
    assert artifact.produced_by == file.produced_by
    await writable.copy("/sources/d/c.json", "/workspace/c.json")
    assert await writable.read_json("/workspace/c.json") == {"k": ["words"]}
    await writable.copy("/sources/d/e/f.bin", "/workspace/f.bin")
    assert await writable.read_bytes("/workspace/f.bin") == b"\0\1\2"
    with refused(ErrorCode.ALREADY_EXISTS):
        await writable.copy("/sources/a.md", "/workspace/a.md")
    memory.revision = 7
    again = await writable.copy("/sources/a.md", "/workspace/a.md", overwrite=True)
    assert again.version == 2  # type: ignore[union-attr]
    assert again.produced_by["sources"] == ["/sources/a.md@7"]  # type: ignore[union-attr, index]
    assert (await writable.history("/workspace/a.md"))[0].operation == "copy"
    with refused(ErrorCode.VERSION_CONFLICT):
        await writable.copy("/sources/a.md", "/workspace/a.md", overwrite=True, if_version=1)


async def test_without_a_revision_the_hash_of_what_was_copied_stands(
    make_ws: Callable[..., Workspace],
) -> None:
    class Plain(Bare):
        async def read(self, path: str, options: Any) -> Any:
            return TextContent(path=path, content="x")

    ws = make_ws(mounts=[Mount("/workspace"), Mount("/s", "read", None, Plain({}))])
    file = await ws.copy("/s/x", "/workspace/x")
    assert file.produced_by["sources"][0].startswith("/s/x@sha256:2d711642b726b044")  # type: ignore[union-attr, index]


async def test_a_directory_is_copied_in_one_commit(writable: Workspace) -> None:
    await writable.copy("/sources", "/workspace/all", idempotency_key="k")
    await writable.copy("/sources", "/workspace/all", idempotency_key="k")
    assert len(await writable.log()) == 1
    assert [file.path async for file in writable.walk("/workspace")] == [
        f"/workspace/all/{name}" for name in FILES
    ]
    assert len(await writable.artifacts()) == len(FILES)
    with refused(ErrorCode.ALREADY_EXISTS):
        await writable.copy("/sources/d", "/workspace/all")
    with refused(ErrorCode.FILE_NOT_FOUND):
        await writable.copy("/sources/none", "/workspace/none")


async def test_copies_into_another_namespace_and_into_sources(
    writable: Workspace, memory: MemorySource
) -> None:
    await writable.copy("/sources/a.md", "/workspace/a.md", to_namespace="m")
    assert await writable.read_text("/workspace/a.md", namespace="m") == FILES["a.md"]
    assert not await writable.exists("/workspace/a.md")
    await writable.write("/workspace/r.md", "report", kind="report", metadata={"k": 1})
    await writable.copy("/workspace/r.md", "/sources/r.md")
    assert memory.files["r.md"] == "report"
    assert memory.calls[-1] == ("copy", "/sources/r.md")
    with refused(ErrorCode.ALREADY_EXISTS):
        await writable.copy("/workspace/r.md", "/sources/r.md")
    await writable.copy("/sources/d/e/f.bin", "/sources/r.md", overwrite=True)
    assert memory.files["r.md"] == FILES["d/e/f.bin"]


async def test_describe_names_the_source_and_shows_nothing_of_it(sourced: Workspace) -> None:
    described = sourced.describe()["mounts"]
    assert described[0] == {"path": "/sources", "access": "read", "description": "Papers", "source": "custom"}  # type: ignore[index]  # fmt: skip
    assert "Alpha" not in repr(sourced.mounts)
    assert "MemorySource" not in repr(sourced.mounts)


@pytest.mark.parametrize(
    "bad", [object(), {"list": 1}, type("OnlyList", (), {"list": lambda *_: None})()]
)
def test_a_source_without_its_hooks_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError):
        Mount("/s", source=bad)


@pytest.mark.parametrize("hook", ["read_bytes", "grep", "exists", "stat", "write", "delete"])
def test_a_hook_that_is_no_method_is_refused(memory: MemorySource, hook: str) -> None:
    setattr(memory, hook, "yes")
    with pytest.raises(InvalidInputError) as caught:
        Mount("/s", source=memory)
    assert hook in caught.value.message
    setattr(memory, hook, None)
    Mount("/s", source=memory)


@pytest.mark.parametrize("description", [5, b"Papers", ["Papers"], "\ud800", "x" * 4_001])
def test_a_bad_description_is_refused(description: Any) -> None:
    with pytest.raises(InvalidInputError):
        Mount("/s", description=description)


@pytest.mark.parametrize("path", [5, None, b"/s"])
def test_a_mount_needs_a_path(path: Any) -> None:
    with pytest.raises(InvalidInputError):
        Mount(path)


@pytest.mark.parametrize("kind", ["two\nlines", "\ud800", "", "k" * 100, 5])
def test_a_kind_that_is_no_label_is_not_shown(memory: MemorySource, kind: Any) -> None:
    memory.kind = kind  # type: ignore[attr-defined]
    assert Mount("/s", source=memory).source_kind == "custom"


@pytest.mark.parametrize("timeout", [0, -1, None, "1", 1.5, True])
def test_a_bad_timeout_is_refused(timeout: Any) -> None:
    with pytest.raises(InvalidInputError):
        Mount("/s", source=MemorySource(), timeout_ms=timeout)
