"""Searching large texts, and text beside binary."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import pytest

from crux_workspace import GrepMatch
from crux_workspace.errors import ErrorCode, InvalidInputError, StorageError
from crux_workspace.storage import memory_storage
from tests.heavy.conftest import Heavy


def _found(matches: Any) -> list[tuple[str, int, int]]:
    return [(match.path, match.line, match.column) for match in matches]


async def test_large_and_small_texts_give_their_matches_in_the_order_of_paths(
    heavy: Heavy,
) -> None:
    ws = heavy.open()
    inline = heavy.open(small=1 << 30, storage=memory_storage(), records=None, assets=None)
    chance = random.Random(1)
    for number in range(12):
        lines = [chance.choice(["needle", "hay", "a needle, a needle"]) for _ in range(3)]
        if number % 2:
            lines += ["hay"] * 80_000 + ["needle at the end"]
        for each in (ws, inline):
            await each.write(f"/workspace/{number:02d}.txt", "\n".join(lines))
    for limit in (1, 5, 9, 100):
        for context in (0, 2):
            options: dict[str, Any] = {"max_results": limit, "context_lines": context}
            found = await ws.grep("needle", **options)
            assert found == await inline.grep("needle", **options)
    assert not (await ws.grep("needle", max_results=100)).truncated


async def test_no_more_is_read_than_is_needed(heavy: Heavy) -> None:
    ws = heavy.open()
    await ws.write("/workspace/a.txt", "needle\n" + "hay\n" * 2_000_000)
    await ws.write("/workspace/b.txt", "needle\n" + "hay\n" * 2_000_000)
    heavy.assets.reset()
    found = await ws.grep("needle", max_results=1)
    assert found.truncated
    assert heavy.assets.read_bytes < 18_000_000
    heavy.assets.reset()
    assert len((await ws.grep("hay", max_results=3)).matches) == 3
    assert heavy.assets.read_bytes <= 1 << 20


async def test_binary_beside_text_is_neither_read_nor_shown(heavy: Heavy) -> None:
    ws = heavy.open()
    for number in range(20):
        await ws.write(f"/workspace/{number:02d}.bin", b"needle\n" * 100_000)
        await ws.write(f"/workspace/{number:02d}.txt", f"needle {number}\n")
    await ws.write("/workspace/no.log", b"\x00needle\xff" * 1000, mime_type="text/plain")
    text = sum([e.size async for e in ws.walk() if e.content_kind == "text"])
    heavy.assets.reset()
    found = await ws.grep("needle", max_results=1000)
    assert _found(found.matches) == [(f"/workspace/{n:02d}.txt", 1, 1) for n in range(20)]
    assert heavy.assets.read_bytes <= text
    assert (await ws.grep("needle", path="/workspace/00.bin")).matches == []


async def test_text_that_is_binary_in_all_but_name_does_not_flood(heavy: Heavy) -> None:
    ws = heavy.open()
    await ws.write("/workspace/one.txt", "\x00\x01needle" * 400_000)
    found = await ws.grep("needle", max_results=50, context_lines=5)
    assert len(found.matches) == 50
    assert found.truncated
    shown = sum(len(m.text) + sum(map(len, (*m.before, *m.after))) for m in found.matches)
    assert shown <= 50 * 2_000


async def test_an_expression_that_costs_too_much_is_refused_before_anything_is_read(
    heavy: Heavy,
) -> None:
    ws = heavy.open()
    await ws.write("/workspace/a.txt", "a" * 1_000_000)
    heavy.assets.reset()
    with pytest.raises(InvalidInputError) as caught:
        await ws.grep("(a{1,30}){1,30}b", regex=True)
    assert caught.value.code == ErrorCode.INVALID_REGEX
    assert caught.value.hint is not None
    assert heavy.assets.read_bytes == 0


async def test_a_search_leaves_the_loop_its_turns_and_ends_when_nobody_waits(
    heavy: Heavy,
) -> None:
    ws = heavy.open()
    await ws.write("/workspace/a.txt", "x" * 2_000_000)
    began = time.perf_counter()
    with pytest.raises(TimeoutError):
        # Every match is sought to the end of its piece: this would go on for many seconds.
        async with asyncio.timeout(0.2):
            await ws.grep("x*y|x", regex=True, max_results=20_000)
    await ws.write("/workspace/b.txt", "needle")
    assert _found((await ws.grep("needle")).matches) == [("/workspace/b.txt", 1, 1)]
    await asyncio.get_running_loop().shutdown_default_executor()
    assert time.perf_counter() - began < 5, "no thread goes on searching"


async def test_a_match_over_the_end_of_a_part_is_found(heavy: Heavy) -> None:
    ws = heavy.open()
    path = "/workspace/parts.txt"
    await ws.write(path, "hay\n" * 100_000 + "a first part that ends in nee")
    await ws.append(path, "dle, é is cut no")
    await ws.append(path, "where\r")
    await ws.append(path, "\nnext")
    [match] = (await ws.grep("needle, é is cut nowhere", context_lines=1)).matches
    assert isinstance(match, GrepMatch)
    assert (match.line, match.column, match.after) == (100_001, 27, ("next",))
    assert match.text.endswith("nowhere")


async def test_damage_in_a_searched_text_is_an_error(heavy: Heavy) -> None:
    ws = heavy.open()
    await ws.write("/workspace/a.txt", "hay\n" * 500_000)
    [ref] = await heavy.refs("/workspace/a.txt")
    heavy.assets.flip(ref, 1_999_990)
    with pytest.raises(StorageError) as caught:
        await ws.grep("needle")
    assert caught.value.code == ErrorCode.RECORD_CORRUPT


async def test_bytes_that_are_no_utf8_are_an_error(heavy: Heavy) -> None:
    ws = heavy.open()
    await ws.write("/workspace/a.txt", "hay\n" * 500_000)
    [ref] = await heavy.refs("/workspace/a.txt")
    data, at = heavy.assets.inner._assets[ref]
    heavy.assets.inner._assets[ref] = (b"\xff" + data[1:], at)
    with pytest.raises(StorageError) as caught:
        await ws.grep("needle")
    assert caught.value.code == ErrorCode.RECORD_CORRUPT
