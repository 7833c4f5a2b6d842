"""A damaged history is an error that names it, and never another text; what does not hang on the damage stays readable."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
import zstandard

from crux_workspace import Workspace
from crux_workspace.engine.entry import PastState
from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.storage import MemoryRecordStore, Record, storage
from crux_workspace.testing.workspace import refused
from tests.histories.conftest import FILE, INLINE, House
from tests.support.long_texts import long_text

Damage = Callable[[Record], Record]
VERSIONS = 12


def _with(record: Record, *, value: dict[str, Any] | None = None, body: bytes | None) -> Record:
    text = json.loads(record.value) | (value or {})
    return Record(record.key, json.dumps(text).encode(), body, record.revision, record.at)


def _body(record: Record) -> bytes:
    assert record.body is not None
    return record.body


DAMAGES: dict[str, Damage] = {
    "a bit flips": lambda r: _with(
        r, body=_body(r)[:-3] + bytes([_body(r)[-3] ^ 1]) + _body(r)[-2:]
    ),
    "it is cut": lambda r: _with(r, body=_body(r)[:-7]),
    "it is empty": lambda r: _with(r, body=b""),
    "it is gone": lambda r: _with(r, body=None),
    "it is another text": lambda r: _with(r, body=_frame(long_text(77).encode()[: _size(r)])),
    "it claims to be huge": lambda r: _with(r, body=_frame(b"\0" * 50_000_000)),
    "it is raw after all": lambda r: _with(r, body=long_text(1).encode()),
}


def _size(record: Record) -> int:
    size: int = json.loads(record.value)["s"]
    return size


def _frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


class Broken:
    """A history of twelve versions in memory, of which one record can be replaced."""

    def __init__(self) -> None:
        self.records = MemoryRecordStore()
        self.house = House(storage(records=self.records), None, Workspace)  # type: ignore[arg-type]

    async def write(self) -> Workspace:
        from crux_workspace import workspace

        ws = workspace(id="w", namespace="n", records=self.records, content=INLINE)
        for number in range(1, VERSIONS + 1):
            await ws.write(FILE, long_text(number))
        return ws

    async def state(self, version: int) -> PastState:
        return (await self.house.states())[version]

    async def replace(self, version: int, damage: Damage | None) -> None:
        state = await self.state(version)
        held = self.records._partitions[self.house.partition].records
        if damage is None:
            del held[state.key]
        else:
            held[state.key] = damage(held[state.key])


@pytest.fixture
def broken() -> Broken:
    return Broken()


async def _readable(ws: Workspace) -> list[int]:
    """Return the versions that are read; what is not is refused as damaged, and a wrong text is never returned."""
    found = []
    for version in range(1, VERSIONS + 1):
        [result] = await asyncio.gather(ws.read_text(FILE, version=version), return_exceptions=True)
        if result == long_text(version):
            found.append(version)
            continue
        assert isinstance(result, StorageError)
        assert (result.code, result.details) == (
            ErrorCode.RECORD_CORRUPT,
            {"path": FILE, "version": version},
        )
    return found


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_difference_takes_only_older_ones_with_it(
    broken: Broken, damage: str
) -> None:
    ws = await broken.write()
    assert (await broken.state(4)).state.enc == "d"
    await broken.replace(4, DAMAGES[damage])
    assert await _readable(ws) == list(range(5, VERSIONS + 1))


async def test_a_missing_base_is_an_error_not_another_text(broken: Broken) -> None:
    ws = await broken.write()
    await broken.replace(4, None)
    with refused(ErrorCode.VERSION_EXPIRED):
        await ws.read_text(FILE, version=4)
    for version in (1, 2, 3):
        with refused(ErrorCode.RECORD_CORRUPT):
            await ws.read_text(FILE, version=version)
    assert await ws.read_text(FILE, version=5) == long_text(5)


@pytest.mark.parametrize(
    "base",
    [[3, 3], [2, 2], [1, 1], [400, 400], [12, 12]],
    ids=["self", "older", "old", "far", "head"],
)
async def test_a_base_that_cannot_be_one_is_refused(broken: Broken, base: list[int]) -> None:
    ws = await broken.write()
    await broken.replace(3, lambda r: _with(r, value={"eb": base}, body=r.body))
    with refused(ErrorCode.RECORD_CORRUPT):
        await ws.read_text(FILE, version=3)


@pytest.mark.parametrize("verb", ["undo", "diff", "at", "stream", "read_json"])
async def test_every_way_to_an_old_version_meets_the_damage(broken: Broken, verb: str) -> None:
    ws = await broken.write()
    await broken.replace(4, DAMAGES["a bit flips"])
    with refused(ErrorCode.RECORD_CORRUPT):
        if verb == "undo":
            await ws.undo(FILE, to_version=3)
        elif verb == "diff":
            await ws.diff(FILE, from_version=2, to_version=3)
        elif verb == "at":
            await ws.at(3).read_text(FILE)
        elif verb == "stream":
            _ = [chunk async for chunk in ws.stream(FILE, version=3)]
        else:
            await ws.read_json(FILE, version=3)


async def test_damage_stops_neither_writes_nor_gc(broken: Broken) -> None:
    ws = await broken.write()
    await broken.replace(10, lambda r: _with(r, body=b"x" * _size(r)))
    await broken.replace(6, DAMAGES["it is cut"])
    for number in range(VERSIONS + 1, 30):
        await ws.write(FILE, long_text(number))
    await ws.gc(dry_run=False)
    assert (await broken.state(10)).state.enc is None, (
        "what is damaged is not made the ground of more"
    )
    with refused(ErrorCode.RECORD_CORRUPT):
        await ws.read_text(FILE, version=10)
    for version in (7, 8, 9, *range(11, 30)):
        assert await ws.read_text(FILE, version=version) == long_text(version)
