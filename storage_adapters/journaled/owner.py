"""One process at a time: what takes the place of an atomic `create` where a store has none.

The owner's record carries a beat that grows. Whoever finds somebody else's record watches it: when the beat grows, the owner lives.
Only durations are compared, each on one clock, so clocks need not agree. What a store cannot promise without an atomic operation is
stated in docs/adr/0041: an owner that was stopped in the middle of a put, longer than the lease, may still finish that put.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import suppress

from crux_workspace.errors import ErrorCode, StorageError, UnsupportedError
from crux_workspace.storage.minimal import JsonObject, MinimalPage, MinimalStore

__all__ = ["SoleProcess"]


class SoleProcess:
    """A minimal store for one process, which therefore can create."""

    def __init__(self, store: MinimalStore, key: str, *, beat_s: float, lease_s: float) -> None:
        self._store = store
        self._key = key
        self._beat_s = beat_s
        self._lease_s = lease_s
        self._id = secrets.token_hex(16)
        self._beat = 0
        self._seen_s = 0.0
        """When the record was last found to be ours, on the monotonic clock."""
        self._state = "new"
        self._owning = asyncio.Lock()
        self._creating = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None

    async def get(self, key: str) -> JsonObject | None:
        """See `MinimalStore.get`."""
        await self._own()
        return await self._store.get(key)

    async def put(self, key: str, value: JsonObject) -> None:
        """See `MinimalStore.put`."""
        await self._own()
        await self._store.put(key, value)

    async def create(self, key: str, value: JsonObject) -> bool:
        """See `CreatingStore.create`: nobody else writes meanwhile."""
        async with self._creating:
            await self._own()
            if await self._store.get(key) is not None:
                return False
            await self._own()
            await self._store.put(key, value)
            return True

    async def delete(self, key: str) -> None:
        """See `MinimalStore.delete`."""
        await self._own()
        await self._store.delete(key)

    async def list(
        self, prefix: str, *, limit: int | None = None, cursor: str | None = None
    ) -> MinimalPage:
        """See `MinimalStore.list`."""
        await self._own()
        return await self._store.list(prefix, limit=limit, cursor=cursor)

    async def aclose(self) -> None:
        """Let the next process in at once."""
        if self._beating is not None:
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
            self._beating = None
        if self._state == "ours":
            self._state = "new"
            if await self._is_ours():
                await self._store.put(self._key, {"owner": self._id, "beat": -1})

    async def _own(self) -> None:
        """Make sure that this process is the one.

        Raises:
            UnsupportedError: Another process uses the store (``CAPABILITY_MISSING``).
            StorageError: Another process has taken it over.
        """
        if self._state == "ours" and time.monotonic() - self._seen_s < self._lease_s / 2:
            return
        async with self._owning:
            if self._state == "new":
                await self._acquire()
            elif self._state == "lost" or time.monotonic() - self._seen_s >= self._lease_s / 2:
                await self._renew()

    async def _acquire(self) -> None:
        held = await self._store.get(self._key)
        if held is not None and held.get("beat") != -1:
            await self._wait_for_death(held)
        await self._write()
        # Of several that take over at once the last one stays.
        await asyncio.sleep(self._beat_s / 4)
        if not await self._is_ours():
            raise _taken()
        self._state = "ours"
        self._beating = asyncio.get_running_loop().create_task(self._keep_beating())

    async def _wait_for_death(self, held: JsonObject) -> None:
        began = time.monotonic()
        while time.monotonic() - began < self._lease_s:
            await asyncio.sleep(self._beat_s / 4)
            now = await self._store.get(self._key)
            if now is None or now.get("beat") == -1:
                return
            if now != held:
                raise _taken()

    async def _renew(self) -> None:
        if self._state == "lost" or not await self._is_ours():
            self._state = "lost"
            raise StorageError(
                "Another process has taken the store over; open it again when that one has ended.",
                code=ErrorCode.STORE_UNAVAILABLE,
                retryable=False,
            )
        await self._write()

    async def _is_ours(self) -> bool:
        began = time.monotonic()
        held = await self._store.get(self._key)
        ours = held is not None and held.get("owner") == self._id
        if ours:
            self._seen_s = began
        return ours

    async def _write(self) -> None:
        self._beat += 1
        await self._store.put(self._key, {"owner": self._id, "beat": self._beat})

    async def _keep_beating(self) -> None:
        while self._state == "ours":
            await asyncio.sleep(self._beat_s)
            with suppress(Exception):  # the next use of the store meets it too
                async with self._owning:
                    await self._renew()


def _taken() -> UnsupportedError:
    return UnsupportedError(
        "Another process uses this store, which has no atomic create and so serves one process at a time.",
        hint="Stop the other process, or give the store a create(key, value) that stores only where nothing is.",
    )
