"""Word of commits from other processes, by pub/sub. It is a hint only: what it misses, polling finds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from crux_workspace.errors import StorageError, WorkspaceError
from storage_adapters.redis.node import open_wire
from storage_adapters.redis.target import Target
from storage_adapters.redis.wire import Lost, Wire, pack

__all__ = ["Hints"]

Heard = Callable[[int], None]

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_QUIET_S = 15.0
"""After so long the server is asked whether it is still there."""


class Hints:
    """Subscribes while somebody listens, to any node: a message reaches all nodes of a Cluster."""

    def __init__(
        self,
        target: Callable[[], Target],
        channel: bytes,
        ask: Callable[[Sequence[str]], Awaitable[list[int]]],
    ) -> None:
        """Name the channel; `ask` tells how far partitions are, after word may have been missed."""
        self._target = target
        self._channel = channel
        self._ask = ask
        self._heard: dict[str, tuple[Heard, ...]] = {}
        self._task: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def listen(self, partition: str, heard: Heard) -> Callable[[], None]:
        """Call `heard` with the sequences of a partition's commits from now on; returns what ends it."""

        def told(sequence: int) -> None:
            heard(sequence)

        self._heard[partition] = (*self._heard.get(partition, ()), told)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._follow())

        def leave() -> None:
            left = tuple(known for known in self._heard.get(partition, ()) if known is not told)
            if left:
                self._heard[partition] = left
            else:
                self._heard.pop(partition, None)
            if not self._heard:
                self._stop()

        return leave

    def alarm(self) -> None:
        """Tell everybody that the partition may have become another one: whoever follows it has to look."""
        for partition in list(self._heard):
            self._tell(partition, 0)

    async def aclose(self) -> None:
        """End all listening."""
        self._heard.clear()
        self._stop()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            task.cancel()

    async def _follow(self) -> None:
        pause = _FIRST_PAUSE_S
        again = False
        while self._task is asyncio.current_task():
            try:
                wire = await open_wire(self._target())
            except WorkspaceError:
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_S)
                continue
            try:
                wire.on_message = self._deliver
                await wire.call(pack((b"SUBSCRIBE", self._channel)))
                pause = _FIRST_PAUSE_S
                if again:
                    await self._catch_up()
                again = True
                await _last(wire)
            except (Lost, StorageError):
                await asyncio.sleep(pause)
            finally:
                await wire.aclose()

    async def _catch_up(self) -> None:
        """Say how far the partitions are: word may have been missed while there was no connection."""
        partitions = list(self._heard)
        for partition, sequence in zip(partitions, await self._ask(partitions), strict=True):
            self._tell(partition, sequence)

    def _deliver(self, data: bytes) -> None:
        sequence, _, partition = data.partition(b":")
        self._tell(partition.decode(), int(sequence))

    def _tell(self, partition: str, sequence: int) -> None:
        for heard in self._heard.get(partition, ()):
            heard(sequence)


async def _last(wire: Wire) -> None:
    """Wait until the connection ends, asking now and then whether the server is still there."""
    while True:
        await asyncio.wait({wire.closed}, timeout=_QUIET_S)
        await wire.call(pack((b"PING",)))
