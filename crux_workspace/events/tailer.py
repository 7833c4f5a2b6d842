"""The newest commits of one partition, read once for all who watch it."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice
from typing import Protocol
from weakref import WeakSet

from crux_workspace.events.cursors import NO_MARK, EventCursor, partition_mark
from crux_workspace.events.forward import Gap, LoggedCommit, Stretch, read_stretch
from crux_workspace.storage.planning import PartitionReader
from crux_workspace.storage.records import RecordStore

__all__ = ["Follower", "Tailer"]

RING_COMMITS = 256
RING_CHANGES = 4096
MAX_PAGE = 1000


class Follower(Protocol):
    """Who reads from a tailer."""

    @property
    def interval_ms(self) -> int:
        """How often it wants the store to be asked."""
        ...

    def wake(self) -> None:
        """There may be something new."""
        ...

    async def poll_failed(self, error: Exception, failures: int, delay_ms: int) -> None:
        """Asking the store failed; it is asked again after the delay."""
        ...


class Tailer:
    """A ring of the last commits that anybody read, and the newest sequence that anybody heard of.

    A follower is only a place in the log: it reads from the ring what the ring has, and from the store what has left it. So memory
    does not grow while a follower is slow. It sleeps only at a place that `newest` is not beyond: whatever raises `newest` wakes all.
    """

    def __init__(self, records: RecordStore, partition: str) -> None:
        self.partition = partition
        self.mark = partition_mark(partition)
        self.reader = PartitionReader(records, partition)
        self.newest = 0
        """Sequence of the last commit heard of."""
        self.alarms = 0
        """How often there was reason to believe that the log was replaced."""
        self.followers: WeakSet[Follower] = WeakSet()
        self._ring: deque[LoggedCommit] = deque()
        self._changes = 0
        self._incarnation = NO_MARK
        self._before = NO_MARK
        self.hints = 0
        """How often word of a commit came."""
        self._reading = asyncio.Lock()

    @property
    def held(self) -> int:
        """How many changes the ring holds."""
        return self._changes

    def hint(self, sequence: int) -> None:
        """Take word of a commit, in whichever order; 0 says that the partition was dropped."""
        self.hints += 1
        if sequence == 0:
            self.newest = 0
            self._alarm()
        elif sequence > self.newest:
            self.newest = sequence
            self._wake()

    def polled(self, sequence: int, hints: int) -> None:
        """Take what the store said, asked when `hints` were known; a number that went back is a reason to look."""
        if sequence > self.newest:
            self.newest = sequence
            self._wake()
        elif sequence < self.newest and hints == self.hints:
            self.newest = sequence
            self._alarm()

    def _alarm(self) -> None:
        self.alarms += 1
        self._clear(NO_MARK)
        self._wake()

    def _wake(self) -> None:
        for follower in list(self.followers):
            follower.wake()

    async def read(self, place: EventCursor, *, limit: int) -> tuple[LoggedCommit, ...]:
        """Return commits after a place, the place's own first when it is inside one; empty when there is nothing new.

        Raises:
            Gap: See `read_stretch`.
        """
        found = self._from_ring(place, limit)
        if found:
            return found
        async with self._reading:
            found = self._from_ring(place, limit)
            if found:
                return found
            hints = self.hints
            expected = max(1, min(limit, MAX_PAGE, self.newest - place.sequence))
            try:
                stretch = await read_stretch(self.reader, place, limit=expected)
            except Gap:
                self._clear(NO_MARK)  # what it holds may be of the log that is gone
                raise
            heard = self.hints != hints
            known, self.newest = self.newest, max(stretch.newest, self.newest if heard else 0)
            self._keep(stretch)
            if self.newest > known:
                self._wake()  # a hint or a poll that says the same later is no news to anybody
            return stretch.commits

    def _from_ring(self, place: EventCursor, limit: int) -> tuple[LoggedCommit, ...]:
        if not self._ring or (place.sequence and place.incarnation != self._incarnation):
            return ()
        first = self._ring[0].sequence
        start = place.sequence - first if place.is_inside else place.sequence + 1 - first
        if start < 0 or start >= len(self._ring):
            return ()
        own = place.sequence - first
        known = self._before if own < 0 else self._ring[own].mark
        if place.sequence and NO_MARK not in (known, place.commit) and known != place.commit:
            return ()
        return tuple(islice(self._ring, start, start + limit))

    def _keep(self, stretch: Stretch) -> None:
        """Take newer commits into the ring; older ones are somebody's catching up."""
        if not stretch.commits:
            return
        last = self._ring[-1] if self._ring else None
        fresh = stretch.commits
        if stretch.incarnation == self._incarnation and last is not None:
            if fresh[-1].sequence <= last.sequence:
                return
            fresh = tuple(commit for commit in fresh if commit.sequence > last.sequence)
            joins = fresh[0].sequence == last.sequence + 1
            if not joins or (len(fresh) == len(stretch.commits) and stretch.before != last.mark):
                self._clear(stretch.before)
        else:
            self._clear(stretch.before)
        self._incarnation = stretch.incarnation
        self._ring.extend(fresh)
        self._changes += sum(len(commit.changes) for commit in fresh)
        while len(self._ring) > RING_COMMITS or (self._changes > RING_CHANGES and self._ring):
            gone = self._ring.popleft()
            self._before = gone.mark
            self._changes -= len(gone.changes)

    def _clear(self, before: bytes) -> None:
        self._ring.clear()
        self._changes = 0
        self._before = before
