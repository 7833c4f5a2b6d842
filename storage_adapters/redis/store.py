"""Records in Redis or Valkey: one server, or a Cluster; shared by any number of processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice
from types import TracebackType
from typing import Any
from weakref import WeakValueDictionary

from msgspec import structs

from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.storage.ending import Ending
from crux_workspace.storage.failures import closed_error, forked_error, wrong_loop_error
from crux_workspace.storage.guessing import Guesses, Noting
from crux_workspace.storage.layout import META_KEY, check_size
from crux_workspace.storage.planning import MAX_PLANS, PartitionReader, replanned
from crux_workspace.storage.records import (
    Batch,
    CeilingExceeded,
    Committed,
    Contains,
    Page,
    PartitionPage,
    Plan,
    PreconditionFailed,
    Record,
)
from storage_adapters.redis.hints import Hints
from storage_adapters.redis.keyspace import BUCKETS, Keyspace
from storage_adapters.redis.link import Generation, Link
from storage_adapters.redis.packing import (
    corrupt,
    incarnation_of,
    record_of,
    records_of,
    request_of,
)
from storage_adapters.redis.quiet import judge_quiet
from storage_adapters.redis.ranges import range_of
from storage_adapters.redis.scripts import COMMIT, DROP, READ, SCAN
from storage_adapters.redis.target import Target, parse_target

__all__ = ["RedisRecordStore"]

_MIB = 1 << 20
CAPABILITIES = StoreCapabilities(
    notify=True,
    search=True,
    multi_process=True,
    durable=True,
    task_agnostic=True,
    max_commit_paths=50_000,
    max_commit_bytes=64 * _MIB,
    max_value_bytes=16 * _MIB,
    max_body_bytes=32 * _MIB,
)
"""Of a server that writes a file (AOF); of another one, the same without `durable`."""

_META = META_KEY.encode()


class RedisRecordStore:
    """A `RecordStore` over one Redis or Valkey server, or a Cluster of them.

    Each commit is one script, which judges everything before its first write; plans run here, and are made again when somebody else
    was faster. A store belongs to the process and the loop that opened it. Whether an acknowledged commit survives the death of the
    server is the server's setting: `capabilities.durable` says whether it writes a file (AOF).
    """

    capabilities = CAPABILITIES

    def __init__(self, target: Target, link: Link) -> None:
        """Use `open`."""
        self._target = target
        self._link = link
        self._keys = Keyspace(target.prefix, target.database)
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._ending = Ending()
        self._committing = 0
        self._idle = asyncio.Event()
        self._queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._hints = Hints(link.any_target, self._keys.channel, self.sequences)
        self._guesses = Guesses()
        link.on_replaced = self._replaced
        self.capabilities = replace(type(self).capabilities, durable=link.durable)

    def __repr__(self) -> str:
        state = "closed" if self._ending.has_begun else "open"
        return f"RedisRecordStore({self._target.place!r}, {state})"

    @classmethod
    async def open(cls, url: str) -> RedisRecordStore:
        """Connect to the servers that a URL names.

        Args:
            url: ``redis://``, ``rediss://`` or ``redis+unix://``; see `redis_backend`.

        Raises:
            InvalidInputError: It is not such a URL.
            StorageError: The server cannot be reached, or refuses the user (``STORE_UNAVAILABLE``, ``STORE_TIMEOUT``).
            UnsupportedError: It may evict keys (``CAPABILITY_MISSING``).
        """
        target = parse_target(url)
        return cls(target, await Link.open(target))

    async def __aenter__(self) -> RedisRecordStore:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        """See `RecordStore.get_many`; one command, so one snapshot."""
        self._check()
        if not keys:
            return []
        names = self._keys.partition(partition)
        if not bodies:
            found = await self._link.ask(names.bucket, (b"HMGET", names.values, *keys))
            return [record_of(key, value) for key, value in zip(keys, found, strict=True)]
        command = READ.call((names.values, names.bodies), *keys)
        values, held = await self._link.ask(names.bucket, command)
        return records_of(keys, values, held)

    async def scan(
        self,
        partition: str,
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
        """See `RecordStore.scan`; a page ends early when it holds more than 8 MiB."""
        self._check()
        span = range_of(prefix, after, before, delimiter)
        if span is None or limit < 1:
            return Page([])
        names = self._keys.partition(partition)
        command = SCAN.call(
            (names.values, names.bodies, names.index),
            *span,
            int(reverse),
            limit,
            int(bodies),
            len(prefix.encode()),
            delimiter or b"",
            int(filter is not None),
            b"" if filter is None else filter.needle,
        )
        keys, values, held, prefixes, following = await self._link.ask(names.bucket, command)
        found = records_of([key.decode() for key in keys], values, held)
        return Page(
            [record for record in found if record is not None],
            [name.decode() for name in prefixes],
            following.decode() or None,
        )

    async def commit(self, partition: str, batch: Batch) -> Committed:
        """See `RecordStore.commit`."""
        self._check()
        return await self._commit(partition, batch, None)

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        """See `RecordStore.commit_planned`.

        Plans of this process that were refused once queue up, so that they do not refuse each other again and again.
        """
        self._check()
        since = await self._link.generation(self._keys.partition(partition).bucket)
        guessed = await self._guesses.commit(
            partition, plan, lambda batch, _: self._commit(partition, batch, since)
        )
        if guessed is not None:
            return guessed
        queue = self._queues.get(partition)
        waited = queue is not None
        if queue is None:
            try:
                return await self._plan_once(partition, plan)
            except PreconditionFailed:
                queue = self._queues.setdefault(partition, asyncio.Lock())
        async with queue:
            again = MAX_PLANS if waited else MAX_PLANS - 1
            return await replanned(lambda: self._plan_once(partition, plan), again)

    async def sequences(self, partitions: Sequence[str]) -> list[int]:
        """See `RecordStore.sequences`; one message to each server."""
        self._check()
        names = [self._keys.partition(partition) for partition in partitions]
        metas = await self._link.ask_all([(n.bucket, (b"HGET", n.values, _META)) for n in names])
        found = [record_of(META_KEY, meta) for meta in metas]
        return [0 if record is None else record.revision for record in found]

    async def partitions(
        self, prefix: str, *, after: str | None = None, limit: int
    ) -> PartitionPage:
        """See `RecordStore.partitions`; one command for each of the 256 buckets, sent together."""
        self._check()
        span = range_of(prefix, after, None, None)
        if span is None or limit < 1:
            return PartitionPage([])
        count = limit + 1
        lists = await self._link.ask_all(
            [
                (bucket, (b"ZRANGEBYLEX", self._keys.partitions(bucket), *span, b"LIMIT", 0, count))
                for bucket in range(BUCKETS)
            ]
        )
        names = [name.decode() for name in islice(merge(*lists), count)]
        return PartitionPage(names[:limit], names[limit - 1] if len(names) > limit else None)

    async def drop(self, partition: str) -> None:
        """See `RecordStore.drop`; the server frees the memory in the background.

        It may be sent twice, so it names the incarnation: one that somebody makes meanwhile stays.
        """
        self._check()
        self._guesses.forget(partition)
        names = self._keys.partition(partition)
        keys = (names.values, names.bodies, names.index, names.partitions)
        stored = record_of(
            META_KEY, await self._link.ask(names.bucket, (b"HGET", names.values, _META))
        )
        command = DROP.call(keys, names.name, self._keys.channel, incarnation_of(stored))
        await self._link.ask(names.bucket, command)

    def listen(self, partition: str, heard: Callable[[int], None]) -> Callable[[], None]:
        """See `NotifyingRecordStore.listen`."""
        self._check()
        return self._hints.listen(partition, heard)

    async def aclose(self) -> None:
        """See `RecordStore.aclose`. In a forked child it does nothing: what is open belongs to the parent.

        Whoever is cancelled meanwhile only does not wait for the end.
        """
        if os.getpid() != self._pid or self._ending.is_over:
            return
        if asyncio.get_running_loop() is not self._loop:
            raise wrong_loop_error()
        await self._ending.reach(self._end)

    async def _end(self) -> None:
        await self._hints.aclose()
        if self._committing:
            await self._idle.wait()
        await self._link.aclose()

    async def _plan_once(self, partition: str, plan: Plan) -> Committed:
        since = await self._link.generation(self._keys.partition(partition).bucket)
        reader = Noting(self._guesses, partition, PartitionReader(self, partition))
        done = await self._commit(partition, await plan(reader), since)
        self._guesses.noted(partition, reader)
        return done

    async def _commit(self, partition: str, batch: Batch, since: Generation | None) -> Committed:
        self._committing += 1
        try:
            return await self._apply(partition, batch, since)
        finally:
            self._committing -= 1
            if self._ending.has_begun and not self._committing:
                self._idle.set()

    async def _apply(self, partition: str, batch: Batch, since: Generation | None) -> Committed:
        check_size(batch, self.capabilities)
        names = self._keys.partition(partition)
        keys = (names.values, names.bodies, names.index, names.partitions)
        known_since = self._guesses.generation
        while True:
            command = COMMIT.call(keys, names.name, self._keys.channel, *request_of(batch))
            answer: list[Any] = await self._link.tell(names.bucket, command, since)
            verdict = answer[0]
            if verdict == b"ok":
                done = Committed(answer[1], answer[2])
                meta = Record(META_KEY, answer[3], None, done.sequence, done.at)
                self._guesses.committed(partition, batch, done, known_since, meta)
                return done
            if verdict != b"behind":
                raise _refusal(batch, answer)
            await judge_quiet(self, partition, batch, answer[1])
            batch = structs.replace(batch, quiet_since=answer[1])

    def _replaced(self) -> None:
        """Another server may have taken the place of one: what was known of its partitions may be wrong."""
        self._guesses.forget()
        self._hints.alarm()

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise forked_error()
        if self._ending.has_begun:
            raise closed_error()
        if asyncio.get_running_loop() is not self._loop:
            raise wrong_loop_error()


def _refusal(batch: Batch, answer: list[Any]) -> Exception:
    verdict, subject = answer[0], answer[1].decode()
    if verdict == b"refused":
        return PreconditionFailed(subject, answer[2].decode())
    if verdict == b"ceiling":
        add, ceiling = batch.counters[subject]
        return CeilingExceeded(subject, ceiling or 0, answer[2], add)
    return corrupt(subject)
