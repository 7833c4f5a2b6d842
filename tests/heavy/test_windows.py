"""Ranges and windows of large texts are what they are of small ones, and read little."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from crux_workspace import TextContent, Workspace
from crux_workspace.engine import measuring, parts
from crux_workspace.errors import ErrorCode, InvalidInputError, StorageError
from crux_workspace.storage import memory_storage
from tests.heavy.conftest import Heavy

BIG = "/workspace/big.txt"


@pytest.fixture
def little_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make marks so dense, and small parts so small, that short texts meet them."""
    monkeypatch.setattr(measuring, "_FIRST_STEP", 32)
    monkeypatch.setattr(measuring, "_MOST_MARKS", 4)
    monkeypatch.setattr(parts, "_SMALL", 16)


async def _outcome(ws: Workspace, **window: Any) -> tuple[Any, ...]:
    try:
        content = await ws.read(BIG, **window)
    except InvalidInputError as error:
        return error.code, error.message
    assert isinstance(content, TextContent)
    return content.content, content.offset, content.truncated, content.total_lines


@pytest.mark.parametrize("seed", range(12))
async def test_windows_are_those_of_the_same_text_in_a_record(
    heavy: Heavy, forget: Callable[[], None], little_steps: None, seed: int
) -> None:
    del little_steps
    chance = random.Random(seed)

    def text(most: int) -> str:
        letters = ["a", "é", "\n", "\r\n", "字", "x "]
        return "".join(chance.choice(letters) for _ in range(chance.randint(0, most)))

    large = heavy.open(small=10)
    inline = heavy.open(small=100_000, storage=memory_storage(), records=None, assets=None)
    first = text(150) + "a line to begin with"
    for ws in (large, inline):
        await ws.write(BIG, first)
    for _ in range(chance.randint(0, 6)):
        if chance.random() < 0.3:
            forget()
        added = text(40)
        for ws in (large, inline):
            await ws.append(BIG, added)
    for _ in range(100):
        start = chance.randint(1, 90)
        window = chance.choice(
            [
                {"start_line": start},
                {"start_line": start, "end_line": start + chance.randint(-1, 30)},
                {"end_line": start},
                {"offset": chance.randint(0, 400)},
                {"offset": chance.randint(0, 400), "max_inline_bytes": chance.randint(0, 300)},
                {"max_inline_bytes": chance.randint(0, 400)},
            ]
        )
        assert await _outcome(large, **window) == await _outcome(inline, **window), window
    data = await inline.read_bytes(BIG)
    for _ in range(30):
        offset, length = chance.randint(0, 500), chance.choice([None, chance.randint(0, 300)])
        chunks = large.stream(BIG, offset=offset, length=length, chunk_bytes=chance.randint(1, 99))
        got = b"".join([chunk async for chunk in chunks])
        assert got == data[offset : None if length is None else offset + length]


async def test_a_window_reads_what_it_shows_and_a_step_at_most(heavy: Heavy) -> None:
    ws = heavy.open()
    lines = 1_000_000
    await ws.write(BIG, "".join(f"line {n:09d}\n" for n in range(1, lines + 1)))
    file = await ws.stat(BIG)
    assert file is not None
    step = 131_072
    while file.size / step > 128:
        step *= 2
    for first in (1, 2, 65_537, 500_000, lines - 2):
        heavy.assets.reset()
        content = await ws.read(BIG, start_line=first, end_line=first + 2)
        assert isinstance(content, TextContent)
        wanted = "".join(f"line {n:09d}\n" for n in range(first, min(first + 3, lines + 1)))
        assert content.content == wanted
        assert content.offset == (first - 1) * 15
        assert content.truncated
        assert heavy.assets.read_bytes <= step + (1 << 18)


async def test_a_range_reads_the_range(heavy: Heavy) -> None:
    ws = heavy.open()
    await ws.write(BIG, "0123456789" * 1_000_000)
    await ws.append(BIG, "x" * 1_000_000)
    for offset, length in ((0, 100), (5_000_000, 1000), (9_999_990, 20), (10_999_999, 50)):
        heavy.assets.reset()
        got = b"".join([c async for c in ws.stream(BIG, offset=offset, length=length)])
        assert len(got) == min(length, 11_000_000 - offset)
        assert heavy.assets.read_bytes == len(got)
    heavy.assets.reset()
    content = await ws.read(BIG)
    assert isinstance(content, TextContent)
    assert (len(content.content), content.truncated) == (64_000, True)
    assert heavy.assets.read_bytes <= 64_001
    heavy.assets.reset()
    assert [c async for c in ws.stream(BIG, offset=11_000_000)] == []
    assert heavy.assets.read_bytes == 0


async def test_a_range_over_a_whole_damaged_part_is_refused(heavy: Heavy) -> None:
    ws = heavy.open()
    await ws.write(BIG, "0123456789" * 100_000)
    await ws.append(BIG, "x" * 1_000_000)
    heavy.assets.flip((await heavy.refs(BIG))[1], 999_999)
    with pytest.raises(StorageError) as caught:
        async for _ in ws.stream(BIG, offset=999_990):
            pass
    assert caught.value.code == ErrorCode.RECORD_CORRUPT
    async for _ in ws.stream(BIG, offset=10, length=1_000_000):
        pass  # what is damaged is not in it


async def test_an_asset_that_is_too_short_does_not_pass_for_a_range(heavy: Heavy) -> None:
    ws = heavy.open()
    await ws.write(BIG, "0123456789" * 100_000)
    heavy.assets.cut((await heavy.refs(BIG))[0])
    with pytest.raises(StorageError) as caught:
        async for _ in ws.stream(BIG, offset=10):
            pass
    assert caught.value.code == ErrorCode.RECORD_CORRUPT


async def test_bytes_that_are_no_utf8_are_damage(heavy: Heavy) -> None:
    ws = heavy.open()
    await ws.write(BIG, "0123456789\n" * 100_000)
    [ref] = await heavy.refs(BIG)
    data, at = heavy.assets.inner._assets[ref]
    heavy.assets.inner._assets[ref] = (b"\xff" * len(data), at)
    for window in ({"start_line": 1, "end_line": 2}, {"offset": 5}):
        with pytest.raises(StorageError) as caught:
            await ws.read(BIG, **window)  # type: ignore[arg-type]
        assert caught.value.code == ErrorCode.RECORD_CORRUPT
