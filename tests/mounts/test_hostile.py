"""Providers that fail, hang, lie or flood: a typed error or a clean cut, never a hang and never a leak."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from crux_workspace import Mount, Workspace
from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.model.contents import BinaryContent, JsonContent, TextContent
from crux_workspace.model.files import ListResult, WorkspaceDirectory, WorkspaceFile
from crux_workspace.model.matching import GrepMatch
from crux_workspace.model.searches import GrepResult
from crux_workspace.mounts import source_listing, source_tree
from crux_workspace.storage import Storage, memory_storage
from crux_workspace.testing.workspace import refused

Make = Callable[..., Workspace]


F, T, M = WorkspaceFile, TextContent, GrepMatch


class Source:
    """Empty; a test replaces what it is about."""

    def list(self, path: str, options: Any) -> Any:
        return ListResult([])

    def read(self, path: str, options: Any) -> Any:
        return None


@pytest.fixture
async def storage() -> Storage:
    """What the workspace itself keeps does not matter here."""
    return memory_storage()


def with_source(make_ws: Make, timeout_ms: Any = 30_000, **hooks: Any) -> Workspace:
    source = Source()
    for name, hook in hooks.items():
        setattr(source, name, hook)
    return make_ws(mounts=[Mount("/workspace"), Mount("/s", "readwrite", None, source, timeout_ms)])


CALLS: dict[str, tuple[str, Callable[[Workspace], Any]]] = {
    "list": ("list", lambda ws: ws.list("/s")),
    "list recursively": ("list", lambda ws: ws.list("/", recursive=True)),
    "list a glob": ("list", lambda ws: ws.list("/s/*.md")),
    "walk": ("list", lambda ws: _all(ws.walk("/s"))),
    "is_dir": ("list", lambda ws: ws.is_dir("/s/d")),
    "read": ("read", lambda ws: ws.read("/s/a")),
    "read_text": ("read", lambda ws: ws.read_text("/s/a")),
    "read_many": ("read", lambda ws: ws.read_many(["/s/a"])),
    "stat": ("stat", lambda ws: ws.stat("/s/a")),
    "exists": ("exists", lambda ws: ws.exists("/s/a")),
    "grep": ("grep", lambda ws: ws.grep("x", path="/s")),
    "grep all": ("grep", lambda ws: ws.grep("x")),
    "read_bytes": ("read_bytes", lambda ws: ws.read_bytes("/s/a")),
    "stream": ("read_bytes", lambda ws: _all(ws.stream("/s/a"))),
    "write": ("write", lambda ws: ws.write("/s/a", "x")),
    "append": ("read", lambda ws: ws.append("/s/a", "x")),
    "delete": ("delete", lambda ws: ws.delete("/s/a")),
    "copy": ("read", lambda ws: ws.copy("/s/a", "/workspace/a")),
}


async def _all(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


class Boom(Exception):
    pass


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("name", CALLS)
async def test_an_exception_is_a_storage_error_with_its_cause(
    make_ws: Make, name: str, kind: str
) -> None:
    hook, call = CALLS[name]

    def fails(*_: Any) -> Any:
        raise Boom("secret /s/a")

    async def fails_later(*_: Any) -> Any:
        raise Boom("secret /s/a")

    hooks = {hook: fails if kind == "sync" else fails_later}
    ws = with_source(make_ws, **{"write": lambda *_: None, **hooks})
    with pytest.raises(StorageError) as caught:
        await call(ws)
    assert caught.value.code == ErrorCode.STORE_UNAVAILABLE
    assert isinstance(caught.value.__cause__, Boom)
    assert "secret" not in str(caught.value.to_dict())
    assert caught.value.retryable


@pytest.mark.parametrize("kind", ["sync", "async", "stubborn"])
@pytest.mark.parametrize("name", CALLS)
async def test_a_provider_that_hangs_is_left_behind(make_ws: Make, name: str, kind: str) -> None:
    hook, call = CALLS[name]
    over = threading.Event()

    def hangs(*_: Any) -> Any:
        over.wait(20)

    async def hangs_later(*_: Any) -> Any:
        await asyncio.sleep(20)

    async def hangs_on(*_: Any) -> Any:
        deadline = time.monotonic() + 0.4
        while time.monotonic() < deadline:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue

    made = {"sync": hangs, "async": hangs_later, "stubborn": hangs_on}[kind]
    ws = with_source(make_ws, 30, **{"write": lambda *_: None, hook: made})
    started = time.monotonic()
    with pytest.raises(StorageError) as caught:
        await call(ws)
    assert time.monotonic() - started < 0.35
    assert caught.value.code == ErrorCode.STORE_TIMEOUT
    over.set()


async def test_many_hanging_calls_hold_a_bounded_number_of_threads(make_ws: Make) -> None:
    over, running, most = threading.Event(), 0, 0
    lock = threading.Lock()

    def hangs(*_: Any) -> Any:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        over.wait(20)
        with lock:
            running -= 1

    ws = with_source(make_ws, 100, read=hangs)
    results = await asyncio.gather(*(ws.read(f"/s/{n}") for n in range(60)), return_exceptions=True)
    assert {getattr(result, "code", None) for result in results} == {ErrorCode.STORE_TIMEOUT}
    assert most <= 16
    over.set()


async def test_a_cancelled_call_does_not_wait_for_the_provider(make_ws: Make) -> None:
    over = threading.Event()
    ws = with_source(make_ws, read=lambda *_: over.wait(20))
    task = asyncio.create_task(ws.read("/s/a"))
    await asyncio.sleep(0.05)
    task.cancel()
    started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 1
    over.set()


@pytest.mark.parametrize(
    "error",
    [
        StopIteration(),
        KeyboardInterrupt(),
        SystemExit(3),
        asyncio.CancelledError(),
        GeneratorExit(),
    ],
)
async def test_whatever_a_provider_raises_is_its_own_failure(make_ws: Make, error: BaseException) -> None:  # fmt: skip
    def fails(*_: Any) -> Any:
        raise error

    with refused(ErrorCode.STORE_UNAVAILABLE):
        await with_source(make_ws, read=fails).read("/s/a")


async def test_why_a_provider_does_not_do_it_stays_known(make_ws: Make) -> None:
    def no(*_: Any) -> Any:
        raise NotImplementedError from Boom()

    with refused(ErrorCode.SOURCE_UNSUPPORTED) as caught:
        await with_source(make_ws, read=no).read("/s/a")
    assert caught.value.__cause__ is not None
    assert isinstance(caught.value.__cause__.__cause__, Boom)


async def test_nothing_there_is_no_failure(make_ws: Make) -> None:
    def missing(*_: Any) -> Any:
        raise FileNotFoundError("gone")

    ws = with_source(
        make_ws, **dict.fromkeys(("list", "read", "stat", "exists", "delete"), missing)
    )
    assert (await ws.list("/s/d")).entries == []
    assert await ws.stat("/s/a") is None
    assert await ws.exists("/s/a") is False
    await ws.delete("/s/a")
    with refused(ErrorCode.FILE_NOT_FOUND):
        await ws.read("/s/a")


async def test_a_timeout_of_the_provider_is_one(make_ws: Make) -> None:
    def slow(*_: Any) -> Any:
        raise TimeoutError

    with refused(ErrorCode.STORE_TIMEOUT):
        await with_source(make_ws, read=slow).read("/s/a")


async def test_what_is_not_implemented_is_unsupported(make_ws: Make) -> None:
    def no(*_: Any) -> Any:
        raise NotImplementedError

    with refused(ErrorCode.SOURCE_UNSUPPORTED):
        await with_source(make_ws, write=no).write("/s/a", "x")


def beside_a_failing_one(make_ws: Make, **hooks: Any) -> Workspace:
    """Make a workspace with files of its own, a good source, and one that is to fail."""
    good, bad = Source(), Source()
    working: dict[str, Any] = {
        "list": lambda *_: ListResult([F(path="/good/a.md")]),
        "read": lambda path, _: T(path=path, content="word\n"),
    }
    for source, its in ((good, working), (bad, hooks)):
        for name, hook in its.items():
            setattr(source, name, hook)
    mounts = [Mount("/bad", "read", None, bad, 50), Mount("/good", "read", None, good)]
    return make_ws(mounts=[*mounts, Mount("/workspace")])


FAILURES: dict[str, tuple[Any, str]] = {
    "raises": (Boom(), "STORE_UNAVAILABLE"),
    "is late": (TimeoutError(), "STORE_TIMEOUT"),
    "lies": (ListResult([WorkspaceFile(path="/etc/x")]), "SOURCE_INVALID"),
}


@pytest.mark.parametrize("how", FAILURES)
async def test_one_failing_mount_can_be_left_out_and_is_named(make_ws: Make, how: str) -> None:
    result, code = FAILURES[how]
    calls = 0

    def fails(*_: Any) -> Any:
        nonlocal calls
        calls += 1
        if isinstance(result, Exception):
            raise result
        return result

    ws = beside_a_failing_one(make_ws, list=fails)
    await ws.write("/workspace/b.md", "word\n")
    for path in ("/", "/**/*.md"):
        with refused(code) as caught:
            await ws.list(path, recursive=path == "/")
        assert caught.value.details["mount"] == "/bad"
        page = await ws.list(path, recursive=path == "/", partial=True)
        assert [entry.path for entry in page] == ["/good/a.md", "/workspace/b.md"]
        assert page.failed == {"/bad": code}
    with refused(code):
        await ws.grep("word")
    for scope in (None, "/", "/**/*.md"):
        found = await ws.grep("word", path=scope, partial=True)
        assert [match.path for match in found] == ["/workspace/b.md", "/good/a.md"]
        assert found.failed == {"/bad": code}
    for call in (
        ws.list("/bad", partial=True),
        ws.list("/bad", recursive=True, partial=True),
        ws.grep("word", path="/bad", partial=True),
        ws.grep("word", path="/bad/*.md", partial=True),
    ):
        with refused(code):
            await call
    calls = 0
    page = await ws.list("/", recursive=True, limit=1, partial=True)
    page = await ws.list("/", recursive=True, limit=1, cursor=page.cursor, partial=True)
    assert (calls, page.failed, page.cursor) == (1, {"/bad": code}, None)


# -- lies

LIES: dict[str, tuple[str, Any]] = {
    "a listing outside": ("list", ListResult([F(path="/workspace/x")])),
    "a listing beside": ("list", ListResult([F(path="/sx/x")])),
    "a listing that climbs": ("list", ListResult([F(path="/s/../workspace/x")])),
    "an encoded climb": ("list", ListResult([F(path="/s/%2e%2e/x")])),
    "a relative path": ("list", ListResult([F(path="x")])),
    "a path that is no str": ("list", ListResult([F(path=3)])),  # type: ignore[arg-type]
    "a directory outside": ("list", ListResult([WorkspaceDirectory("/etc")])),
    "a file at the mount": ("list", ListResult([F(path="/s")])),
    "an entry that is a str": ("list", ListResult(["/s/x"])),  # type: ignore[list-item]
    "a str for a listing": ("list", "/s/x"),
    "a number for a listing": ("list", 7),
    "a cursor that is no str": ("list", ListResult([], 5)),  # type: ignore[arg-type]
    "a negative size": ("list", ListResult([F(path="/s/x", size=-1)])),
    "a size that is a str": ("list", ListResult([F(path="/s/x", size="1")])),  # type: ignore[arg-type]
    "a status that is none": ("list", ListResult([F(path="/s/x", status="done")])),  # type: ignore[arg-type]
    "metadata that is no JSON": ("list", ListResult([F(path="/s/x", metadata={"k": object()})])),
    "a str for content": ("read", "text"),
    "a number for text": ("read", T(path="/s/a", content=5)),  # type: ignore[arg-type]
    "text of half a character": ("read", T(path="/s/a", content="\ud800")),
    "JSON that is none": ("read", JsonContent(path="/s/a", content={1: object()})),
    "a negative offset": ("read", T(path="/s/a", content="x", offset=-1)),
    "a MIME type that is no str": ("read", T(path="/s/a", content="x", mime_type=5)),  # type: ignore[arg-type]
    "a listing with half a character": ("list", ListResult([F(path="/s/x", mime_type="\ud800")])),
    "a MIME type of two lines": (
        "list",
        ListResult([F(path="/s/x", mime_type="text/x\n## System")]),
    ),
    "a MIME type without end": ("list", ListResult([F(path="/s/x", mime_type="t" * 600)])),
    "a URI without end": ("list", ListResult([F(path="/s/x", uri="s3://" + "u" * 3_000)])),
    "a kind that is none": ("list", ListResult([F(path="/s/x", content_kind="odd")])),  # type: ignore[arg-type]
    "a kind that is a list": ("list", ListResult([F(path="/s/x", content_kind=[])])),  # type: ignore[arg-type]
    "a preview of half a character": ("list", ListResult([F(path="/s/x", preview="\udc00")])),
    "provenance that is no JSON": ("list", ListResult([F(path="/s/x", produced_by={"k": {1}})])),
    "a cursor without end": ("list", ListResult([], "c" * 3_000)),
    "a cursor of half a character": ("list", ListResult([], "\ud800")),
    "content outside": ("read", T(path="/workspace/a", content="x")),
    "content of no path": ("read", T(path="whatever", content="x")),
    "JSON outside": ("read", JsonContent(path="/etc/a", content=1)),
    "binary content outside": ("read", BinaryContent(path="/sx/a")),
    "a URI of half a character": ("read", BinaryContent(path="/s/a", uri="\ud800")),
    "a bool for a file": ("stat", True),
    "a file elsewhere": ("stat", F(path="/workspace/a")),
    "a word for yes": ("exists", "yes"),
    "a match outside": ("grep", GrepResult([M("/workspace/a", 1, 1, "x")])),
    "line 0": ("grep", GrepResult([M("/s/a", 0, 1, "x")])),
    "a match that is a dict": ("grep", GrepResult([{"path": "/s/a"}])),  # type: ignore[list-item]
    "a line that is no str": ("grep", GrepResult([M("/s/a", 1, 1, None)])),  # type: ignore[arg-type]
    "a line of half a character": ("grep", GrepResult([M("/s/a", 1, 1, "\ud800")])),
    "a number for matches": ("grep", 3),
    "a str for bytes": ("read_bytes", "text"),
    "a number for what was written": ("write", 5),
    "a file written outside": ("write", F(path="/workspace/a")),
    "content written outside": ("write", T(path="/workspace/a", content="x")),
    "nothing for what was written": ("write", None),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_is_source_invalid(make_ws: Make, lie: str) -> None:
    hook, result = LIES[lie]
    ws = with_source(make_ws, **{hook: lambda *_: result})
    with pytest.raises(StorageError) as caught:
        await CALLS[hook][1](ws)
    assert caught.value.code == ErrorCode.SOURCE_INVALID
    assert caught.value.details["mount"] == "/s"


async def test_chunks_that_are_no_bytes(make_ws: Make) -> None:
    async def chunks(*_: Any) -> AsyncIterator[Any]:
        yield b"ok"
        yield "text"

    ws = with_source(make_ws, read_bytes=lambda *a: chunks())
    with refused(ErrorCode.SOURCE_INVALID):
        await ws.read_bytes("/s/a")


async def test_a_stream_that_stops_in_the_middle(make_ws: Make) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"begin"
        await asyncio.sleep(20)

    ws = with_source(make_ws, 50, read_bytes=lambda *_: chunks())
    seen = []
    with pytest.raises(StorageError) as caught:
        async for chunk in ws.stream("/s/a"):
            seen.append(chunk)  # noqa: PERF401 - what came before the failure
    assert (seen, caught.value.code) == ([b"begin"], ErrorCode.STORE_TIMEOUT)


async def test_a_copy_that_fails_leaves_nothing(make_ws: Make) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"begin"
        raise Boom

    ws = with_source(
        make_ws,
        read=lambda path, _: BinaryContent(path=path),
        read_bytes=lambda *_: chunks(),
        list=lambda *_: ListResult([F(path="/s/a"), F(path="/s/b")]),
    )
    for src in ("/s/a", "/s"):
        with pytest.raises(StorageError) as caught:
            await ws.copy(src, "/workspace/x")
        assert caught.value.code == ErrorCode.STORE_UNAVAILABLE
        assert isinstance(caught.value.__cause__, Boom)
    assert await ws.log() == []
    assert (await ws.gc()).assets == 0


@pytest.mark.parametrize("verb", ["edit", "append", "read_text", "copy", "lines"])
async def test_a_part_is_not_taken_for_the_whole(make_ws: Make, verb: str) -> None:
    part = TextContent(path="/s/a", content="only the begin", truncated=True, size=1000)
    written: list[Any] = []
    ws = with_source(make_ws, read=lambda *_: part, write=lambda *a: written.append(a))
    calls: dict[str, Callable[[], Any]] = {
        "edit": lambda: ws.edit("/s/a", "only", "x"),
        "append": lambda: ws.append("/s/a", "x"),
        "read_text": lambda: ws.read_text("/s/a"),
        "copy": lambda: ws.copy("/s/a", "/workspace/a"),
        "lines": lambda: ws.read("/s/a", start_line=1),
    }
    with refused(ErrorCode.SOURCE_INVALID):
        await calls[verb]()
    assert written == []
    content = await ws.read("/s/a")
    assert (content.truncated, content.size) == (True, 1000)


async def test_a_part_is_completed_by_bytes_where_the_provider_has_them(make_ws: Make) -> None:
    part = TextContent(path="/s/a", content="be", truncated=True, size=5)
    ws = with_source(make_ws, read=lambda *_: part, read_bytes=lambda *_: b"begin")
    assert await ws.read_text("/s/a") == "begin"
    await ws.copy("/s/a", "/workspace/a")
    assert await ws.read_text("/workspace/a") == "begin"


async def test_another_window_than_asked_for(make_ws: Make) -> None:
    begin = TextContent(path="/s/a", content="begin", truncated=True, size=1000)
    ws = with_source(make_ws, read=lambda *_: begin)
    with refused(ErrorCode.SOURCE_INVALID):
        await ws.read("/s/a", offset=500)


class Plain(Source):
    """Heeds windows and says nothing of it."""

    def __init__(self, text: str, *, says_cut: bool = False) -> None:
        self.data = text.encode()
        self.says_cut = says_cut
        self.calls = 0

    def read(self, path: str, options: Any) -> Any:
        self.calls += 1
        end = None if options.max_inline_bytes is None else options.offset + options.max_inline_bytes  # fmt: skip
        piece = self.data[options.offset : end]
        cut = self.says_cut and len(piece) < len(self.data)
        return T(path=path, content=piece.decode(), truncated=cut)


@pytest.mark.parametrize("says_cut", [False, True])
@pytest.mark.parametrize(("offset", "most"), [(0, 4), (0, 10), (4, 4), (8, 4), (9, 64), (20, 4), (0, None)])  # fmt: skip
async def test_a_window_that_does_not_say_so_is_not_cut_again(
    make_ws: Make, offset: int, most: int | None, *, says_cut: bool
) -> None:
    ws = make_ws(mounts=[Mount("/s", "read", None, Plain("0123456789", says_cut=says_cut))])
    content = await ws.read("/s/a", offset=offset, max_inline_bytes=most)
    assert isinstance(content, TextContent)
    end = None if most is None else offset + most
    assert content.content == "0123456789"[offset:end]
    assert (content.size, content.offset) == (10, min(offset, 10))
    assert content.truncated is (content.content != "0123456789")


async def test_a_window_of_what_is_never_given_whole(make_ws: Make) -> None:
    def capped(path: str, options: Any) -> Any:
        piece = "0123456789"[options.offset : options.offset + 4]
        return T(path=path, content=piece, truncated=True, size=10)

    ws = with_source(make_ws, read=capped)
    pieces = [await ws.read("/s/a", offset=offset, max_inline_bytes=4) for offset in (0, 4, 8)]
    assert [(p.content, p.offset, p.truncated) for p in pieces if isinstance(p, TextContent)] == [
        ("0123", 0, True),
        ("4567", 4, True),
        ("89", 8, True),
    ]


async def test_a_text_that_is_something_else_the_second_time(make_ws: Make) -> None:
    answers = iter([T(path="/s/a", content="0123"), BinaryContent(path="/s/a")])
    ws = with_source(make_ws, read=lambda *_: next(answers))
    assert isinstance(await ws.read("/s/a", max_inline_bytes=4), BinaryContent)


async def test_a_short_text_is_asked_for_once(make_ws: Make) -> None:
    source = Plain("0123456789")
    ws = make_ws(mounts=[Mount("/s", "read", None, source)])
    await ws.read("/s/a")
    assert source.calls == 1


# -- floods


def test_limits_of_a_source_are_generous() -> None:
    assert source_listing.MAX_ENTRIES >= 100_000


@pytest.mark.parametrize("call", ["list recursively", "walk", "list a glob"])
async def test_a_cursor_that_repeats_ends_the_listing(make_ws: Make, call: str) -> None:
    ws = with_source(make_ws, list=lambda *_: ListResult([F(path="/s/a.txt")], "again"))
    with refused(ErrorCode.SOURCE_INVALID):
        await CALLS[call][1](ws)
    with refused(ErrorCode.SOURCE_INVALID):
        await ws.list("/s")
    page = await ws.list("/s", limit=1)
    with refused(ErrorCode.SOURCE_INVALID):
        await ws.list("/s", limit=1, cursor=page.cursor)


@pytest.mark.parametrize("shows", [True, False])
async def test_cursors_that_go_round(make_ws: Make, *, shows: bool) -> None:
    calls = 0

    def round_and_round(path: str, options: Any) -> ListResult:
        nonlocal calls
        calls += 1
        entries: list[Any] = [F(path=f"/s/{options.cursor}.md")] if shows else []
        return ListResult(entries, "b" if options.cursor == "a" else "a")

    ws = with_source(make_ws, list=round_and_round)
    with refused(ErrorCode.SOURCE_INVALID):
        await ws.list("/s")
    if not shows:
        with refused(ErrorCode.SOURCE_INVALID):
            await ws.list("/s", limit=5)
    assert calls < 10


async def test_cursors_without_end(make_ws: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_listing, "MAX_PAGES", 50)
    numbers: Iterator[int] = iter(range(1 << 30))

    async def endless(*_: Any) -> ListResult:
        return ListResult([F(path=f"/s/{next(numbers)}.md")], str(next(numbers)))

    async def text(path: str, _: Any) -> TextContent:
        return TextContent(path=path, content="word\n")

    ws = with_source(make_ws, list=endless, read=text)
    with refused(ErrorCode.SOURCE_INVALID):
        await ws.list("/", recursive=True)
    with refused(ErrorCode.SOURCE_INVALID):
        await ws.copy("/s", "/workspace/s")
    result = await ws.grep("word", path="/s")
    assert result.truncated
    assert len(result) >= 40


async def test_slow_pages_without_end_stop_in_time(make_ws: Make) -> None:
    numbers = iter(range(1 << 30))

    async def slow(*_: Any) -> ListResult:
        await asyncio.sleep(0.01)
        return ListResult([], str(next(numbers)))

    ws = with_source(make_ws, 50, list=slow)
    with refused(ErrorCode.STORE_TIMEOUT):
        await ws.list("/s", recursive=True)


async def test_directories_that_hold_themselves(make_ws: Make) -> None:
    def loops(path: str, _: Any) -> ListResult:
        return ListResult([WorkspaceDirectory("/s/d"), WorkspaceDirectory("/s"), F(path="/s/d/a")])

    ws = with_source(make_ws, list=loops)
    assert [entry.path for entry in await ws.list("/s", recursive=True)] == ["/s/d/a"]


async def test_duplicates_are_shown_once(make_ws: Make) -> None:
    match = M("/s/a", 1, 1, "x")
    ws = with_source(
        make_ws,
        list=lambda *_: ListResult([F(path="/s/a"), F(path="/s//a"), F(path="/s/a")]),
        grep=lambda *_: GrepResult([match, match, M("/s/a", 1, 2, "x")]),
    )
    assert [entry.path for entry in await ws.list("/s")] == ["/s/a"]
    assert [(m.line, m.column) for m in await ws.grep("x", path="/s")] == [(1, 1), (1, 2)]


async def test_what_is_too_long_to_be_a_preview_is_cut(make_ws: Make) -> None:
    ws = with_source(make_ws, stat=lambda path, _: F(path=path, preview="p" * 1_000, mime_type=""))
    file = await ws.stat("/s/a.md")
    assert file is not None
    assert (len(file.preview or ""), file.mime_type) == (240, "text/markdown")


async def test_lines_around_a_match_are_the_files_own(make_ws: Make) -> None:
    match = M("/s/a", 1, 1, "x", before=(b"\xff",), after=("\ud800",))  # type: ignore[arg-type]
    ws = with_source(
        make_ws,
        grep=lambda *_: GrepResult([match]),
        read=lambda path, _: T(path=path, content="x\ny\nz\n"),
    )
    [found] = await ws.grep("x", path="/s")
    assert (found.before, found.after) == ((), ())
    [found] = await ws.grep("x", path="/s", context_lines=1)
    assert (found.before, found.after) == ((), ("y",))


async def test_more_matches_than_asked_for_are_cut(make_ws: Make) -> None:
    many = GrepResult([M("/s/a", n, 1, "y" * 5_000) for n in range(1, 500)])
    ws = with_source(make_ws, grep=lambda *_: many)
    result = await ws.grep("y", path="/s", max_results=10)
    assert (len(result), result.truncated) == (10, True)
    assert len(result.matches[0].text) == 2_000


async def test_matches_outside_the_scope_are_left_out(make_ws: Make) -> None:
    both = GrepResult([M("/s/a.md", 1, 1, "x"), M("/s/b.txt", 1, 1, "x")])
    ws = with_source(make_ws, grep=lambda *_: both)
    assert [m.path for m in await ws.grep("x", path="/s/*.md")] == ["/s/a.md"]
    assert [m.path for m in await ws.grep("x", path="/s/b.txt")] == ["/s/b.txt"]


async def test_more_bytes_than_can_be_held(make_ws: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_tree, "MAX_WHOLE_BYTES", 10_000)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"\0" * 1_000

    ws = with_source(make_ws, read_bytes=lambda *_: endless())
    with refused(ErrorCode.SOURCE_INVALID):
        await ws.read_bytes("/s/a")
    first = [chunk async for chunk in ws.stream("/s/a", length=2_500)]
    assert sum(map(len, first)) == 2_500


async def test_a_huge_text_is_windowed(make_ws: Make) -> None:
    huge = "ä" * 3_000_000
    ws = with_source(make_ws, read=lambda path, _: TextContent(path=path, content=huge))
    content = await ws.read("/s/a")
    assert isinstance(content, TextContent)
    assert (len(content.content), content.size, content.truncated) == (32_000, 6_000_000, True)


async def test_an_agent_reads_no_more_than_its_cap_whatever_a_source_says(make_ws: Make) -> None:
    from crux_workspace.agent import FsContext, workspace_filesystem

    ws = with_source(
        make_ws,
        stat=lambda path, _: F(path=path, size=5),
        read=lambda path, _: T(path=path, content="x" * 2_000),
        read_bytes=lambda *_: b"x" * 2_000,
    )
    files, ctx = workspace_filesystem(ws, "/s", max_file_bytes=1_000), FsContext("/s")
    for call in (files.read_file("/s/a", ctx), files.read_binary_file("/s/a", ctx)):
        with refused(ErrorCode.FILE_TOO_LARGE):
            await call
    assert len(await files.read_binary_file("/s/a", ctx, max_bytes=2_000)) == 2_000
    assert len(await files.read_file("/s/a", ctx, max_bytes=2_000)) == 2_000


async def test_the_answer_of_one_mount_does_not_reach_another(make_ws: Make) -> None:
    class Inner(Source):
        def read(self, path: str, options: Any) -> Any:
            return TextContent(path=path, content="inner")

    class Outer(Source):
        def list(self, path: str, options: Any) -> Any:
            return ListResult([F(path="/s/in/hidden"), F(path="/s/a")])

    outer, inner = Outer(), Inner()
    ws = make_ws(mounts=[Mount("/s", "read", None, outer), Mount("/s/in", "read", None, inner)])
    assert [entry.path for entry in await ws.list("/s")] == ["/s/a", "/s/in"]
    content = await ws.read("/s/in/x")
    assert (content.path, content.to_dict()["content"]) == ("/s/in/x", "inner")
