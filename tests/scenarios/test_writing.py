"""write: create or replace, kinds of content, attributes."""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from crux_workspace import ContentOptions, Limits, workspace
from crux_workspace.errors import ErrorCode, InvalidInputError
from crux_workspace.storage import (
    MemoryAssetStore,
    MemoryRecordStore,
    PutOptions,
    Storage,
    StoredAsset,
)
from crux_workspace.testing.workspace import refused

SMALL = ContentOptions(inline_text_below_bytes=20)


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_a_new_file_has_version_one_and_tells_all_about_itself(ws: Any, clock: Any) -> None:
    file = await ws.write("/workspace/notes.md", "héllo", metadata={"by": "me"})
    assert (file.kind, file.path, file.content_kind) == ("file", "/workspace/notes.md", "text")
    assert (file.mime_type, file.size, file.version) == ("text/markdown", 6, 1)
    assert file.sha256 == hashlib.sha256("héllo".encode()).hexdigest()
    assert (file.mount, file.storage, file.uri) == ("/workspace", "inline", None)
    assert (file.preview, file.metadata) == ("héllo", {"by": "me"})
    assert (file.status, file.artifact_kind, file.pinned_version) == (None, None, None)
    assert file.produced_by is None
    assert (file.created_at, file.updated_at) == (clock.now, clock.now)
    assert file.sequence == 1
    assert len(file.id) == 32
    assert int(file.id, 16) >= 0
    assert file.commit == (await ws.log())[0].commit


async def test_a_refusal_tells_metadata_from_content(ws: Any) -> None:
    for given in ({"a": float("nan")}, {1: 2}, {"a": object()}):
        with pytest.raises(InvalidInputError, match="The metadata cannot be stored") as caught:
            await ws.write("/workspace/a", {}, metadata=given)
        assert caught.value.code == ErrorCode.INVALID_CONTENT
        with pytest.raises(InvalidInputError, match="The content cannot be stored"):
            await ws.write("/workspace/a", given)


async def test_a_second_write_replaces_content_and_metadata_but_keeps_status_and_kind(
    ws: Any,
) -> None:
    await ws.write("/workspace/a", "1", metadata={"x": 1}, status="draft", kind="report")
    file = await ws.write("/workspace/a", "2")
    assert file.metadata is None
    assert (file.status, file.artifact_kind, file.version) == ("draft", "report", 2)


async def test_equal_content_appends_a_version_too(ws: Any) -> None:
    await ws.write("/workspace/a", "same")
    assert (await ws.write("/workspace/a", "same")).version == 2


async def test_created_at_stays_and_updated_at_moves(ws: Any, clock: Any) -> None:
    first = await ws.write("/workspace/a", "1")
    clock.advance(5)
    second = await ws.write("/workspace/a", "2")
    assert second.created_at == first.created_at
    assert second.updated_at == first.updated_at + 5


async def test_a_path_may_be_a_pure_posix_path(ws: Any) -> None:
    await ws.write(PurePosixPath("/workspace/a"), "text")
    assert await ws.read_text(PurePosixPath("/workspace/a")) == "text"


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("/workspace/a.md", "text", "text/markdown"),
        ("/workspace/a.py", "text", "text/x-python"),
        ("/workspace/a.json", {"a": 1}, "application/json"),
        ("/workspace/a.csv", "a,b", "text/csv"),
        ("/workspace/a.png", b"\x89PNG", "image/png"),
        ("/workspace/a", "text", "text/plain"),
        ("/workspace/a", [1], "application/json"),
        ("/workspace/a", b"\x00", "application/octet-stream"),
        ("/workspace/a.unknown-extension", "text", "text/plain"),
    ],
)
async def test_mime_types_are_guessed_by_extension_else_by_kind(
    ws: Any, path: str, content: Any, expected: str
) -> None:
    assert (await ws.write(path, content)).mime_type == expected


async def test_the_mime_type_argument_wins_and_each_write_guesses_anew(ws: Any) -> None:
    file = await ws.write("/workspace/a.md", "text", mime_type="text/x-odd")
    assert file.mime_type == "text/x-odd"
    assert (await ws.write("/workspace/a.md", "text")).mime_type == "text/markdown"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no final newline",
        "\n",
        "a\r\nb\r\n",
        "a\rb",
        "\ufeffbom",
        "nul\x00nul",
        "form\x0cfeed\u2028sep\u2029",
        "e\u0301",
        "\U0001f600",
        "\x85\x1c\x1d",
        "mixed\r\n\n\r",
    ],
)
@pytest.mark.parametrize("times", [1, 40])
async def test_every_text_round_trips_at_any_size(make_ws: Any, text: str, times: int) -> None:
    ws = make_ws(content=SMALL)
    await ws.write("/workspace/a", text * times)
    content = await ws.read("/workspace/a")
    assert (content.kind, content.content) == ("text", text * times)
    assert await ws.read_bytes("/workspace/a") == (text * times).encode()


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -1.5,
        10**30,
        [],
        {},
        [1, [2, {"x": None}]],
        {"b": 1, "a": "ü", "nested": {"k": [True, False]}},
        ["x" * 100],
    ],
)
async def test_every_json_value_round_trips(make_ws: Any, value: Any) -> None:
    ws = make_ws(content=SMALL)
    file = await ws.write("/workspace/a", value)
    assert file.content_kind == "json"
    content = await ws.read("/workspace/a")
    assert (content.kind, content.content) == ("json", value)
    assert type(content.content) is type(value)
    assert await ws.read_json("/workspace/a") == value


async def test_json_is_stored_compact_with_key_order_and_read_as_one_pretty_form(
    ws: Any,
) -> None:
    file = await ws.write("/workspace/a", {"b": [1, 2], "a": "ü"})
    compact = '{"b":[1,2],"a":"ü"}'
    assert file.size == len(compact.encode())
    assert await ws.read_bytes("/workspace/a") == compact.encode()
    assert file.preview == compact
    assert await ws.read_text("/workspace/a") == (
        '{\n  "b": [\n    1,\n    2\n  ],\n  "a": "ü"\n}\n'
    )


async def test_a_string_is_text_even_in_a_json_file(ws: Any) -> None:
    file = await ws.write("/workspace/a.json", '{"a": 1}')
    assert (file.content_kind, file.mime_type) == ("text", "application/json")
    assert (await ws.read("/workspace/a.json")).kind == "text"


@dataclass
class Thing:
    x: int = 1


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        [math.nan],
        dt.date(2020, 1, 1),
        Thing(),
        Path("/x"),
        {1: "x"},
        {"a": {2, 3}},
        object(),
        "lone \ud800 surrogate",
        ["\ud800"],
        (1, 2),
    ],
)
async def test_what_json_does_not_have_is_refused_and_nothing_is_stored(
    ws: Any, value: Any
) -> None:
    with refused(ErrorCode.INVALID_CONTENT, InvalidInputError):
        await ws.write("/workspace/a", value)
    assert await ws.log() == []
    assert not await ws.exists("/workspace/a")


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\xffbytes",
        bytearray(b"\x00\xffbytes"),
        memoryview(b"\x00\xffbytes"),
    ],
)
async def test_bytes_are_binary(ws: Any, content: Any) -> None:
    file = await ws.write("/workspace/a", content)
    assert (file.content_kind, file.storage, file.size) == ("binary", "asset", 7)
    assert file.uri is not None
    assert file.preview is None
    assert await ws.read_bytes("/workspace/a") == b"\x00\xffbytes"
    content_read = await ws.read("/workspace/a")
    assert (content_read.kind, content_read.uri) == ("binary", file.uri)


async def test_a_binary_file_object_and_an_async_iterator_are_binary(ws: Any) -> None:
    await ws.write("/workspace/file", io.BytesIO(b"\x01\x02" * 1000))
    await ws.write("/workspace/iterator", chunks(b"\x01\x02", b"", b"\x03"))
    assert await ws.read_bytes("/workspace/file") == b"\x01\x02" * 1000
    assert await ws.read_bytes("/workspace/iterator") == b"\x01\x02\x03"


async def test_bytes_with_an_encoding_are_text(ws: Any) -> None:
    await ws.write("/workspace/a", "ü\r\n".encode(), encoding="utf-8")
    await ws.write("/workspace/b", chunks(b"\xc3", b"\xbc"), encoding="utf-8")
    assert (await ws.read("/workspace/a")).kind == "text"
    assert await ws.read_text("/workspace/a") == "ü\r\n"
    assert await ws.read_text("/workspace/b") == "ü"


async def test_the_encoding_is_strict(ws: Any) -> None:
    with refused(ErrorCode.INVALID_CONTENT):
        await ws.write("/workspace/a", b"\xff", encoding="utf-8")
    assert await ws.log() == []


async def test_a_stream_is_bounded_by_the_file_limit(make_ws: Any) -> None:
    ws = make_ws(limits=Limits(max_file_bytes=10))
    pulled = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal pulled
        while True:
            pulled += 1
            yield b"x" * 4

    with refused(ErrorCode.FILE_TOO_LARGE):
        await ws.write("/workspace/a", endless())
    assert pulled < 100
    assert not await ws.exists("/workspace/a")


@pytest.mark.parametrize(("size", "given"), [(65_536, "bytes"), (65_537, "async_generator")])
async def test_a_small_stream_of_bytes_is_handed_on_whole(size: int, given: str) -> None:
    seen: list[str] = []

    class Watched(MemoryAssetStore):
        async def put(self, data: Any, options: PutOptions) -> StoredAsset:
            seen.append(type(data).__name__)
            return await super().put(data, options)

    kept = Storage(MemoryRecordStore(), Watched())
    async with workspace(id="w", namespace="n", storage=kept) as ws:
        file = await ws.write("/workspace/a", chunks(b"\0" * 1_000, b"\1" * (size - 1_000)))
        assert (file.size, file.storage) == (size, "asset")
        assert await ws.read_bytes("/workspace/a") == b"\0" * 1_000 + b"\1" * (size - 1_000)
    assert seen == [given]


async def test_the_inline_limit_is_inclusive(make_ws: Any) -> None:
    ws = make_ws(content=SMALL)
    assert (await ws.write("/workspace/a", "x" * 20)).storage == "inline"
    assert (await ws.write("/workspace/a", "x" * 21)).storage == "asset"
    assert (await ws.write("/workspace/a", "ü" * 11)).storage == "asset"
    assert (await ws.write("/workspace/a", "x")).storage == "inline"
    assert await ws.read_text("/workspace/a", version=2) == "x" * 21


async def test_the_preview_holds_at_most_240_characters(ws: Any) -> None:
    assert (await ws.write("/workspace/a", "ü" * 240)).preview == "ü" * 240
    longer = (await ws.write("/workspace/a", "ü" * 241)).preview
    assert longer == "ü" * 237 + "..."


async def test_no_repr_shows_content(ws: Any) -> None:
    secret = "sesame"  # noqa: S105 - a word to look for
    file = await ws.write("/workspace/a", secret, metadata={"token": secret}, status="draft")
    shown: list[Any] = [file, await ws.read("/workspace/a"), await ws.history("/workspace/a")]
    shown += [await ws.artifacts(), await ws.list("/workspace")]
    assert secret not in repr(shown)


async def test_results_become_plain_data(ws: Any) -> None:
    file = await ws.write("/workspace/a", {"a": 1})
    assert file.to_dict()["path"] == "/workspace/a"
    assert (await ws.list("/workspace")).to_dict()["entries"][0]["version"] == 1
    assert (await ws.read("/workspace/a")).to_dict()["content"] == {"a": 1}


@pytest.mark.parametrize("status", ["published", "FINAL", ""])
async def test_an_unknown_status_is_refused(ws: Any, status: Any) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.write("/workspace/a", "", status=status)


async def test_changing_an_argument_after_the_call_changes_nothing(ws: Any) -> None:
    value: Any = {"a": [1]}
    metadata: Any = {"m": [1]}
    await ws.write("/workspace/a", value, metadata=metadata)
    value["a"].append(2)
    metadata["m"].append(2)
    content = await ws.read("/workspace/a")
    assert (content.content, content.metadata) == ({"a": [1]}, {"m": [1]})
    content.content["a"].append(3)
    assert await ws.read_json("/workspace/a") == {"a": [1]}


async def test_append_makes_a_missing_file_and_keeps_attributes_of_one_that_is_there(
    ws: Any,
) -> None:
    assert (await ws.append("/workspace/log.md", "one\n")).version == 1
    await ws.set("/workspace/log.md", metadata={"k": 1}, mime_type="text/x-log", kind="log")
    file = await ws.append("/workspace/log.md", "two\n")
    assert (file.metadata, file.mime_type, file.artifact_kind) == ({"k": 1}, "text/x-log", "log")
    assert await ws.read_text("/workspace/log.md") == "one\ntwo\n"
    assert [entry.operation for entry in await ws.history("/workspace/log.md")] == ["append"] * 2


async def test_appends_cross_the_inline_limit(make_ws: Any) -> None:
    ws = make_ws(content=SMALL)
    for number in range(20):
        await ws.append("/workspace/a", f"{number:04}\n")
    assert await ws.read_text("/workspace/a") == "".join(f"{n:04}\n" for n in range(20))
    assert await ws.read_text("/workspace/a", version=10) == "".join(f"{n:04}\n" for n in range(10))
    assert (await ws.stat("/workspace/a")).size == 100


async def test_append_refuses_json_and_binary(ws: Any) -> None:
    await ws.write("/workspace/json", [1])
    await ws.write("/workspace/binary", b"\x00")
    with refused(ErrorCode.INVALID_CONTENT):
        await ws.append("/workspace/json", "x")
    with refused(ErrorCode.BINARY_CONTENT):
        await ws.append("/workspace/binary", "x")


async def test_update_applies_a_function_to_the_value(ws: Any) -> None:
    await ws.write("/workspace/n", {"n": 1}, metadata={"m": 1}, status="draft", kind="k")
    file = await ws.update("/workspace/n", lambda value: {"n": value["n"] + 1})
    assert await ws.read_json("/workspace/n") == {"n": 2}
    assert (file.metadata, file.status, file.artifact_kind) == ({"m": 1}, "draft", "k")
    assert (await ws.history("/workspace/n"))[0].operation == "write"


async def test_update_of_a_missing_file_is_not_found(ws: Any) -> None:
    with refused(ErrorCode.FILE_NOT_FOUND):
        await ws.update("/workspace/n", lambda value: value)


async def test_set_changes_attributes_without_a_version(ws: Any, clock: Any) -> None:
    await ws.write("/workspace/a", "text", metadata={"old": 1})
    clock.advance(10)
    file = await ws.set("/workspace/a", metadata={"new": 2}, mime_type="text/x-odd", kind="k")
    assert (file.version, file.metadata, file.mime_type) == (1, {"new": 2}, "text/x-odd")
    assert (file.artifact_kind, file.sequence, file.updated_at) == ("k", 2, clock.now)
    assert len(await ws.history("/workspace/a")) == 1
    (change,) = (await ws.log(limit=1))[0].changes
    assert (change.type, change.attributes, change.version) == ("update", True, 1)


async def test_set_leaves_what_is_not_given_and_clears_what_is_none(ws: Any) -> None:
    await ws.write("/workspace/a", "text", metadata={"old": 1}, status="draft", kind="k")
    kept = await ws.set("/workspace/a", mime_type="text/x-odd")
    assert (kept.metadata, kept.status, kept.artifact_kind) == ({"old": 1}, "draft", "k")
    cleared = await ws.set("/workspace/a", metadata=None, status=None, kind=None)
    assert (cleared.metadata, cleared.status, cleared.artifact_kind) == (None, None, None)
    assert cleared.mime_type == "text/x-odd"


async def test_set_of_a_missing_file_is_not_found(ws: Any) -> None:
    with refused(ErrorCode.FILE_NOT_FOUND):
        await ws.set("/workspace/a", metadata={})
