"""A minimal store without an atomic create serves one process at a time."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from crux_workspace.errors import ErrorCode, StorageError, UnsupportedError, WorkspaceError
from crux_workspace.testing import MemorySoleStore
from storage_adapters.journaled import JournaledRecordStore, journaled
from tests.adapters.conftest import PART, Writing


def opened(below: MemorySoleStore) -> JournaledRecordStore:
    return journaled(below, beat_s=0.05, lease_s=0.3)


async def test_a_second_process_is_kept_out_while_the_first_lives(writing: Writing) -> None:
    below = MemorySoleStore()
    first, second = opened(below), opened(below)
    assert not first.capabilities.multi_process
    await first.commit_planned(PART, writing.plan("a"))
    for _ in range(2):
        with pytest.raises(UnsupportedError) as caught:
            await second.sequences([PART])
        assert caught.value.code == ErrorCode.CAPABILITY_MISSING
        await asyncio.sleep(0.4)
    assert (await first.commit_planned(PART, writing.plan("b"))).sequence == 2
    await first.aclose()
    assert await second.sequences([PART]) == [2]  # let in at once
    await second.aclose()


def die(store: JournaledRecordStore) -> None:
    """Stop a store as the death of its process does: no beat any more, no farewell."""
    beating = store._store._beating  # type: ignore[attr-defined]
    assert beating is not None
    beating.cancel()


async def test_who_comes_after_a_dead_process_takes_over(writing: Writing) -> None:
    below = MemorySoleStore()
    dead = opened(below)
    await dead.commit_planned(PART, writing.plan("a"))
    die(dead)
    heir = opened(below)
    assert (await heir.commit_planned(PART, writing.plan("b"))).sequence == 2
    # A process that only slept must not write again, however it wakes up.
    with pytest.raises(StorageError, match="taken the store over"):
        await dead.commit_planned(PART, writing.plan("c"))
    assert await heir.sequences([PART]) == [2]
    await heir.aclose()
    await dead.aclose()
    assert await opened(below).sequences([PART]) == [2]


async def test_of_several_that_take_over_at_once_one_stays(writing: Writing) -> None:
    below = MemorySoleStore()
    dead = opened(below)
    await dead.commit_planned(PART, writing.plan("a"))
    die(dead)
    heirs = [opened(below) for _ in range(4)]
    results = await asyncio.gather(
        *(heir.commit_planned(PART, writing.plan(f"h{n}")) for n, heir in enumerate(heirs)),
        return_exceptions=True,
    )
    won = [n for n, result in enumerate(results) if not isinstance(result, BaseException)]
    assert len(won) == 1
    assert all(isinstance(r, WorkspaceError) for n, r in enumerate(results) if n not in won)
    survivor = heirs[won[0]]
    assert await survivor.sequences([PART]) == [2]
    await asyncio.gather(*(heir.aclose() for heir in heirs))


async def test_a_crashed_sole_process_leaves_a_whole_store(writing: Writing) -> None:
    below = MemorySoleStore()
    for number in itertools.count(1):
        over = _Dying(below, number)
        store = opened(over)
        try:
            await store.commit_planned(PART, writing.plan(f"n{number}"))
            ended = False
        except _Dead:
            ended = True
        except WorkspaceError:
            raise
        except Exception:
            ended = True
        over.dead = False
        await store.aclose()
        fresh = opened(below)
        (sequence,) = await fresh.sequences([PART])
        page = await fresh.scan(PART, "log\x01", limit=1_000)
        assert len(page.records) == sequence
        await fresh.aclose()
        if not ended:
            assert sequence >= 1
            return


class _Dead(Exception):
    pass


class _Dying(MemorySoleStore):
    """Shares the objects of another; a chosen put, and all after it, fail."""

    def __init__(self, below: MemorySoleStore, last: int) -> None:
        super().__init__()
        self.held = below.held
        self._left = last
        self.dead = True

    async def put(self, key: str, value: dict[str, object]) -> None:
        self._left -= 1
        if self._left <= 0 and self.dead:
            raise _Dead
        await super().put(key, value)
