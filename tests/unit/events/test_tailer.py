"""The ring: bounded, exact, and never of another log."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from crux_workspace.errors import StorageError
from crux_workspace.events import tailer as tailing
from crux_workspace.events.cursors import AFTER_COMMIT, EventCursor, mark, start_cursor
from crux_workspace.events.forward import Gap, LoggedCommit, find_end, find_oldest
from crux_workspace.events.tailer import Tailer
from crux_workspace.model.changes import Change
from crux_workspace.storage import Batch, MemoryRecordStore, Record
from crux_workspace.testing import CountingRecordStore

PART = "w\x01n\x01"


class Log:
    """A partition that commits when told."""

    def __init__(self) -> None:
        self.store = CountingRecordStore(MemoryRecordStore())
        self.incarnation: str | None = None
        self.tailer = Tailer(self.store, PART)
        self.start = start_cursor(self.tailer.mark)

    async def commit(
        self, count: int = 1, *, name: str = "c", changes: int = 1, told: bool = True
    ) -> None:
        for _ in range(count):
            (last,) = await self.store.sequences([PART])
            batch = Batch(
                commit_id=f"{name}{last + 1}",
                verb="write",
                now=1,
                incarnation=self.incarnation,
                changes=[Change("update", f"/a/{k:04d}") for k in range(changes)],
            )
            await self.store.commit(PART, batch)
            self.incarnation = self.incarnation or batch.commit_id
            if told:
                self.tailer.hint(last + 1)

    def after(self, commit: LoggedCommit, index: int = AFTER_COMMIT) -> EventCursor:
        return EventCursor(
            self.tailer.mark, commit.incarnation, commit.sequence, index, commit.mark
        )

    async def drop(self) -> None:
        await self.store.drop(PART)
        self.incarnation = None


@pytest.fixture
def log() -> Log:
    return Log()


def sequences(commits: tuple[LoggedCommit, ...]) -> list[int]:
    return [commit.sequence for commit in commits]


async def test_the_second_reader_reads_from_the_ring(log: Log) -> None:
    await log.commit(5)
    first = await log.tailer.read(log.start, limit=10)
    assert sequences(first) == [1, 2, 3, 4, 5]
    reads = log.store.reads
    assert await log.tailer.read(log.start, limit=10) == first
    assert sequences(await log.tailer.read(log.after(first[1]), limit=2)) == [3, 4]
    assert sequences(await log.tailer.read(log.after(first[2], 0), limit=2)) == [3, 4]
    assert log.store.reads == reads


class Sleeper:
    """A follower that counts how often it is woken."""

    interval_ms = 1_000
    woken = 0

    def wake(self) -> None:
        self.woken += 1

    async def poll_failed(self, error: Exception, failures: int, delay_ms: int) -> None:
        raise AssertionError


async def test_whatever_raises_the_newest_sequence_wakes_all(log: Log) -> None:
    """A read may be the first to see a commit; the hint and the poll behind it say nothing new."""
    sleeper = Sleeper()
    log.tailer.followers.add(sleeper)
    await log.commit(1)
    assert sleeper.woken == 1
    await log.commit(2, told=False)
    assert sequences(await log.tailer.read(log.start, limit=1)) == [1]
    assert (log.tailer.newest, sleeper.woken) == (3, 2)
    log.tailer.hint(3)
    log.tailer.polled(3, log.tailer.hints)
    assert sleeper.woken == 2
    await log.commit(1, told=False)
    log.tailer.polled(4, log.tailer.hints)
    assert (log.tailer.newest, sleeper.woken) == (4, 3)


async def test_nothing_new(log: Log) -> None:
    assert await log.tailer.read(log.start, limit=10) == ()
    await log.commit(1)
    (commit,) = await log.tailer.read(log.start, limit=10)
    assert await log.tailer.read(log.after(commit), limit=10) == ()
    assert log.tailer.newest == 1


async def test_the_ring_is_bounded_in_commits_and_in_changes(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "RING_COMMITS", 4)
    monkeypatch.setattr(tailing, "RING_CHANGES", 30)
    place = log.start
    for _ in range(10):
        await log.commit(1)
        (commit,) = await log.tailer.read(place, limit=10)
        place = log.after(commit)
    assert len(log.tailer._ring) == 4
    await log.commit(1, changes=28)
    (commit,) = await log.tailer.read(place, limit=10)
    assert (len(log.tailer._ring), log.tailer.held) == (3, 30)
    await log.commit(1, changes=40)
    (commit,) = await log.tailer.read(log.after(commit), limit=10)
    assert (len(commit.changes), log.tailer.held) == (40, 0)
    assert sequences(await log.tailer.read(log.start, limit=100)) == list(range(1, 13))
    await log.commit(1)
    assert sequences(await log.tailer.read(log.after(commit), limit=9)) == [13]
    assert sequences(tuple(log.tailer._ring)) == [13]


async def test_catching_up_does_not_disturb_the_ring(log: Log) -> None:
    await log.commit(300)
    end = await find_end(log.tailer.reader, log.tailer.mark)
    await log.commit(2)
    assert sequences(await log.tailer.read(end, limit=10)) == [301, 302]
    assert sequences(await log.tailer.read(log.start, limit=100)) == list(range(1, 101))
    assert sequences(tuple(log.tailer._ring)) == [301, 302]


async def test_a_dropped_log_is_a_gap_and_leaves_the_ring(log: Log) -> None:
    await log.commit(3)
    commits = await log.tailer.read(log.start, limit=10)
    await log.drop()
    with pytest.raises(Gap):
        await log.tailer.read(log.after(commits[2]), limit=10)
    await log.commit(4, name="new")
    again = await log.tailer.read(log.start, limit=10)
    assert [commit.commit_id for commit in again] == ["new1", "new2", "new3", "new4"]
    with pytest.raises(Gap):
        await log.tailer.read(log.after(commits[1]), limit=10)


async def test_a_place_with_another_commit_is_not_served_from_the_ring(log: Log) -> None:
    await log.commit(3)
    commits = await log.tailer.read(log.start, limit=10)
    good = log.after(commits[1])
    bad = EventCursor(good.partition, good.incarnation, 2, AFTER_COMMIT, mark("other"))
    assert sequences(await log.tailer.read(good, limit=10)) == [3]
    with pytest.raises(Gap):
        await log.tailer.read(bad, limit=10)


async def test_a_number_that_went_back_is_a_reason_to_look(log: Log) -> None:
    tailer = log.tailer
    tailer.hint(5)
    tailer.hint(4)
    assert (tailer.newest, tailer.alarms) == (5, 0)
    tailer.polled(5, tailer.hints)
    tailer.polled(4, tailer.hints - 1)  # asked before the last word came
    assert (tailer.newest, tailer.alarms) == (5, 0)
    tailer.polled(4, tailer.hints)
    assert (tailer.newest, tailer.alarms) == (4, 1)
    tailer.hint(0)
    assert (tailer.newest, tailer.alarms) == (0, 2)


async def test_the_ends_of_a_log(log: Log) -> None:
    reader, own = log.tailer.reader, log.tailer.mark
    assert await find_end(reader, own) == log.start
    assert await find_oldest(reader, own) == log.start
    await log.commit(3)
    commits = await log.tailer.read(log.start, limit=10)
    assert await find_end(reader, own) == log.after(commits[2])
    assert await find_oldest(reader, own) == log.start


async def test_a_large_commit_that_vanishes_while_it_is_read_is_a_gap(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.commit(1)
    (first,) = await log.tailer.read(log.start, limit=10)
    await log.commit(1, changes=1_500)
    ask = log.store.get_many
    calls = 0

    async def dropped_meanwhile(
        partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        nonlocal calls
        calls += 1
        if calls == 2:
            await log.drop()
        return await ask(partition, keys, bodies=bodies)

    monkeypatch.setattr(log.store, "get_many", dropped_meanwhile)
    with pytest.raises(Gap):
        await log.tailer.read(log.after(first), limit=10)
    assert calls == 3


async def test_a_log_that_never_holds_still_is_damaged(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.commit(1, changes=1_500)
    ask = log.store.get_many

    async def without_bodies(
        partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        return await ask(partition, keys, bodies=False)

    monkeypatch.setattr(log.store, "get_many", without_bodies)
    with pytest.raises(StorageError) as caught:
        await log.tailer.read(log.start, limit=10)
    assert caught.value.code == "RECORD_CORRUPT"


async def test_a_page_ends_before_it_gets_too_large(log: Log) -> None:
    await log.commit(6, changes=1_500)
    assert sequences(await log.tailer.read(log.start, limit=10)) == [1, 2, 3]
