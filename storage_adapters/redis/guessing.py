"""Planning without reading first, for partitions where new paths are written one after the other.

Most plans that create a file read a handful of records to find that they are absent, and the commit judges that anyway. So such a plan is
given a reader that calls every record absent, and the batch expects so: right, it saves one of two ways to the server; wrong, it is refused
and the plan is made again by reading. Guessed is only after four plans that a guess would have served, less often after each wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from crux_workspace.storage.layout import META_KEY
from crux_workspace.storage.records import Batch, Contains, Page, Reader, Record, StoreError

__all__ = ["Guess", "Guesses", "Noting"]

_EVIDENCE = 4
_LEAST_PAUSE = 4
_LONGEST_PAUSE = 256
_MOST_PARTITIONS = 1024


class CannotGuess(StoreError):
    """A plan asks for what only the server can tell."""


class Guess:
    """A `Reader` that knows `meta` as of some commit and calls every other record absent."""

    __slots__ = ("_assumed", "_meta")

    def __init__(self, meta: Record) -> None:
        self._meta = meta
        self._assumed: dict[str, int] = {}

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        """See `Reader.get_many`; who wants bodies expects that there is something."""
        if bodies:
            raise CannotGuess
        self._assumed.update((key, 0) for key in keys if key != META_KEY)
        return [self._meta if key == META_KEY else None for key in keys]

    async def scan(
        self,
        prefix: str,
        *,
        after: str | None = None,
        before: str | None = None,
        reverse: bool = False,
        limit: int,
        bodies: bool = False,
        delimiter: str | None = None,
        filter: Contains | None = None,
    ) -> Page:
        """See `Reader.scan`; not for guessing."""
        raise CannotGuess

    def hold(self, batch: Batch) -> Batch:
        """Let a batch expect all that its plan was told."""
        missing = {key: 0 for key in self._assumed if key not in batch.expect}
        return replace(batch, expect={**batch.expect, **missing}) if missing else batch


class Noting:
    """A `Reader` that hands on what the server says, and notes whether a guess would have said the same."""

    __slots__ = ("_reader", "guessable")

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.guessable = True
        """Whether nothing was there but `meta`, and no body and no range was asked for."""

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        """See `Reader.get_many`."""
        found = await self._reader.get_many(keys, bodies=bodies)
        if bodies or any(r is not None and r.key != META_KEY for r in found):
            self.guessable = False
        return found

    async def scan(
        self,
        prefix: str,
        *,
        after: str | None = None,
        before: str | None = None,
        reverse: bool = False,
        limit: int,
        bodies: bool = False,
        delimiter: str | None = None,
        filter: Contains | None = None,
    ) -> Page:
        """See `Reader.scan`."""
        self.guessable = False
        return await self._reader.scan(
            prefix,
            after=after,
            before=before,
            reverse=reverse,
            limit=limit,
            bodies=bodies,
            delimiter=delimiter,
            filter=filter,
        )


@dataclass(slots=True)
class _Known:
    meta: Record
    creating: int = 0
    """How many plans one behind the other were such that a guess would have served them."""
    waits: int = 0
    """How many such plans are made by reading before the next guess."""
    pause: int = _LEAST_PAUSE


class Guesses:
    """What is known of the partitions that this store committed to last."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def next(self, partition: str) -> Guess | None:
        """Return a guess for a partition, None when it is better to read."""
        known = self._known.get(partition)
        if known is None or known.creating < _EVIDENCE:
            return None
        if known.waits:
            known.waits -= 1
            return None
        return Guess(known.meta)

    def committed(self, partition: str, meta: Record) -> None:
        """Learn `meta` as of a commit."""
        known = self._known.get(partition)
        if known is not None:
            known.meta = meta
            return
        if len(self._known) >= _MOST_PARTITIONS:
            del self._known[next(iter(self._known))]
        self._known[partition] = _Known(meta)

    def noted(self, partition: str, *, guessable: bool) -> None:
        """Learn what a plan that was made by reading has met."""
        known = self._known.get(partition)
        if known is not None:
            known.creating = known.creating + 1 if guessable else 0

    def judged(self, partition: str, *, right: bool) -> None:
        """Learn what became of a guess; after each wrong one the next pause is twice as long."""
        known = self._known.get(partition)
        if known is None:
            return
        if right:
            known.pause = _LEAST_PAUSE
            return
        known.creating = 0
        known.waits = known.pause
        known.pause = min(known.pause * 2, _LONGEST_PAUSE)

    def forget(self, partition: str | None = None) -> None:
        """Know nothing any more of one partition, or of all."""
        if partition is None:
            self._known.clear()
        else:
            self._known.pop(partition, None)
