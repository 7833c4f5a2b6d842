"""read and its relatives: windows, versions, streams, many at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from crux_workspace import ContentOptions, Workspace, workspace
from crux_workspace.errors import ErrorCode
from crux_workspace.storage import MemoryAssetStore, MemoryRecordStore
from crux_workspace.testing.workspace import refused

TEXT = "one\ntwo\r\nthree\rstill three\x0c\u2028\nfour"


async def test_a_line_window_keeps_each_line_ending(ws: Any) -> None:
    await ws.write("/workspace/a", TEXT)
    window = await ws.read("/workspace/a", start_line=2, end_line=3)
    assert window.content == "two\r\nthree\rstill three\x0c\u2028\n"
    assert (window.kind, window.truncated, window.total_lines) == ("text", True, 4)
    assert window.size == len(TEXT.encode())


async def test_a_final_newline_starts_no_further_line(ws: Any) -> None:
    await ws.write("/workspace/a", "one\ntwo\n")
    assert (await ws.read("/workspace/a")).total_lines == 2
    assert (await ws.read("/workspace/a", start_line=2)).content == "two\n"
    with refused(ErrorCode.INVALID_ARGUMENT) as caught:
        await ws.read("/workspace/a", start_line=3)
    assert "2" in str(caught.value)


async def test_an_end_past_the_last_line_is_clamped(ws: Any) -> None:
    await ws.write("/workspace/a", TEXT)
    whole = await ws.read("/workspace/a", start_line=1, end_line=99)
    assert (whole.content, whole.truncated) == (TEXT, False)
    assert (await ws.read("/workspace/a", start_line=4, end_line=99)).truncated is True


@pytest.mark.parametrize(
    "window",
    [
        {"start_line": 0},
        {"start_line": -1},
        {"start_line": 3, "end_line": 2},
        {"end_line": 0},
        {"offset": -1},
        {"max_inline_bytes": -1},
        {"offset": 1, "start_line": 1},
        {"offset": 1, "end_line": 2},
    ],
)
async def test_impossible_windows_are_refused(ws: Any, window: dict[str, int]) -> None:
    await ws.write("/workspace/a", TEXT)
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.read("/workspace/a", **window)


async def test_byte_windows_move_back_to_a_character_start_and_join_to_the_whole(
    make_ws: Any,
) -> None:
    text = "aü語\U0001f600" * 20
    for inline in (20, 64_000):
        ws = make_ws(namespace=f"n{inline}", content=ContentOptions(inline_text_below_bytes=inline))
        await ws.write("/workspace/a", text)
        pieces, at = [], 0
        while at < len(text.encode()):
            piece = await ws.read("/workspace/a", offset=at, max_inline_bytes=7)
            assert piece.offset <= at
            assert piece.truncated is True
            pieces.append(piece.content)
            at = piece.offset + len(piece.content.encode())
        assert "".join(pieces) == text


async def test_reads_are_cut_at_64000_bytes_and_read_text_never_is(ws: Any) -> None:
    await ws.write("/workspace/a", "x" * 64_001)
    content = await ws.read("/workspace/a")
    assert (len(content.content), content.truncated, content.size) == (64_000, True, 64_001)
    assert len(await ws.read_text("/workspace/a")) == 64_001
    await ws.write("/workspace/a", "x" * 64_000)
    assert (await ws.read("/workspace/a")).truncated is False


async def test_a_whole_json_value_is_never_cut_and_a_line_window_of_it_is_text(
    ws: Any,
) -> None:
    await ws.write("/workspace/a", {"k": ["x" * 100_000]})
    assert (await ws.read("/workspace/a", max_inline_bytes=10)).content == {"k": ["x" * 100_000]}
    await ws.write("/workspace/a", {"k": [1]})
    window = await ws.read("/workspace/a", start_line=2, end_line=2)
    assert (window.kind, window.content, window.total_lines) == ("text", '  "k": [\n', 5)


async def test_read_text_and_read_json_refuse_binary(ws: Any) -> None:
    await ws.write("/workspace/a", b"\x00")
    with refused(ErrorCode.BINARY_CONTENT):
        await ws.read_text("/workspace/a")
    with refused(ErrorCode.BINARY_CONTENT):
        await ws.read_json("/workspace/a")


async def test_a_version_reads_with_its_own_mime_type_and_metadata(ws: Any) -> None:
    await ws.write("/workspace/a", "1", mime_type="text/x-one", metadata={"v": 1})
    await ws.write("/workspace/a", {"two": 2}, metadata={"v": 2}, kind="k", status="draft")
    old = await ws.read("/workspace/a", version=1)
    assert (old.kind, old.content, old.version) == ("text", "1", 1)
    assert (old.mime_type, old.metadata) == ("text/x-one", {"v": 1})
    assert (old.status, old.artifact_kind) == ("draft", "k")


@pytest.mark.parametrize("version", [0, -1, 3])
async def test_a_version_that_never_was_is_not_found(ws: Any, version: int) -> None:
    await ws.write("/workspace/a", "1")
    await ws.write("/workspace/a", "2")
    code = ErrorCode.VERSION_NOT_FOUND if version > 0 else None
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the code is judged below
        await ws.read("/workspace/a", version=version)
    error: Any = caught.value
    assert error.code in ({code} if code else {"VERSION_NOT_FOUND", "INVALID_ARGUMENT"})


async def test_old_versions_of_a_deleted_file_can_be_read(ws: Any) -> None:
    await ws.write("/workspace/a", "1")
    await ws.delete("/workspace/a")
    assert await ws.read_text("/workspace/a", version=1) == "1"


async def test_many_are_read_at_once_and_missing_ones_are_none(ws: Any) -> None:
    await ws.write("/workspace/a", "1")
    await ws.write("/workspace/b", [2])
    many = await ws.read_many(["/workspace/b", "/workspace/none", "/workspace/a"])
    assert list(many) == ["/workspace/b", "/workspace/none", "/workspace/a"]
    assert many["/workspace/none"] is None
    assert [many[p].content for p in ("/workspace/a", "/workspace/b")] == ["1", [2]]


async def test_a_stream_gives_the_bytes_in_chunks(make_ws: Any) -> None:
    ws = make_ws(content=ContentOptions(inline_text_below_bytes=20))
    data = bytes(range(256)) * 40
    await ws.write("/workspace/binary", data)
    await ws.write("/workspace/text", "text")
    parts = [part async for part in ws.stream("/workspace/binary", chunk_bytes=1000)]
    assert b"".join(parts) == data
    assert max(map(len, parts)) <= 1000
    window = [part async for part in ws.stream("/workspace/binary", offset=300, length=50)]
    assert b"".join(window) == data[300:350]
    assert b"".join([part async for part in ws.stream("/workspace/text")]) == b"text"
    await ws.write("/workspace/binary", b"new")
    old = [part async for part in ws.stream("/workspace/binary", version=1)]
    assert b"".join(old) == data


async def test_a_stream_of_a_missing_file_is_not_found_at_the_first_step(ws: Any) -> None:
    with refused(ErrorCode.FILE_NOT_FOUND):
        async for _ in ws.stream("/workspace/none"):
            pass


async def test_reading_a_directory_is_not_found_with_a_hint(ws: Any) -> None:
    await ws.write("/workspace/d/a", "")
    for path in ("/workspace/d", "/workspace"):
        with refused(ErrorCode.FILE_NOT_FOUND) as caught:
            await ws.read(path)
        assert caught.value.hint


async def test_a_missing_file_error_is_the_builtin_one_too(ws: Any) -> None:
    with pytest.raises(FileNotFoundError):
        await ws.read("/workspace/none")
    with pytest.raises(LookupError):
        await ws.read("/workspace/none")


async def test_a_stream_that_is_left_early_is_closed_at_once_down_to_the_store() -> None:
    closed = False

    class WatchedAssetStore(MemoryAssetStore):
        async def stream(
            self, ref: str, offset: int = 0, length: int | None = None
        ) -> AsyncIterator[bytes]:
            nonlocal closed
            try:
                async for piece in super().stream(ref, offset, length):
                    yield piece
            finally:
                closed = True

    records = MemoryRecordStore()
    async with workspace(id="w", namespace="n", records=records, assets=WatchedAssetStore()) as ws:
        await ws.write("/workspace/a.bin", b"abc" * 100_000)
        chunks: Any = ws.stream("/workspace/a.bin", chunk_bytes=1)
        assert await anext(chunks) == b"a"
        await chunks.aclose()
        assert closed


async def test_a_stream_from_beyond_the_end_is_empty(ws: Workspace) -> None:
    await ws.write("/workspace/a.bin", b"abc")
    for offset in (3, 10**30):
        assert [chunk async for chunk in ws.stream("/workspace/a.bin", offset=offset)] == []


@pytest.mark.parametrize("body", [b"\xff\xfe", None])
@pytest.mark.parametrize("verb", ["read", "read_text", "read_json", "read_many", "append", "edit"])
async def test_damaged_inline_content_is_said_to_be_damaged_and_never_built_on(
    verb: str, body: bytes | None
) -> None:
    records = MemoryRecordStore()
    async with workspace(id="w", namespace="n", records=records) as ws:
        await ws.write("/workspace/a", "text")
        [held] = records._partitions.values()
        key = "head\x01workspace\x02a\x01"
        held.records[key] = replace(held.records[key], body=body)
        calls: dict[str, Any] = {
            "read": lambda: ws.read("/workspace/a"),
            "read_text": lambda: ws.read_text("/workspace/a"),
            "read_json": lambda: ws.read_json("/workspace/a"),
            "read_many": lambda: ws.read_many(["/workspace/a"]),
            "append": lambda: ws.append("/workspace/a", "x"),
            "edit": lambda: ws.edit("/workspace/a", "t", "x", replace_all=True),
        }
        expected = ErrorCode.RECORD_CORRUPT
        if verb == "read_json" and body is not None:
            expected = ErrorCode.INVALID_CONTENT  # text that is no JSON
        with refused(expected):
            await calls[verb]()
