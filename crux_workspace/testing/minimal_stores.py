"""A minimal store in memory: the contract in its plainest form, to build doubles on."""

from __future__ import annotations

import json

from crux_workspace.storage.minimal import JsonObject, MinimalPage

__all__ = ["MemoryMinimalStore", "MemorySoleStore"]


class MemorySoleStore:
    """A minimal store without `create`, for one process and gone with it."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}
        """The JSON text of every object."""

    async def get(self, key: str) -> JsonObject | None:
        """See `MinimalStore.get`."""
        text = self.held.get(key)
        if text is None:
            return None
        value: JsonObject = json.loads(text)
        return value

    async def put(self, key: str, value: JsonObject) -> None:
        """See `MinimalStore.put`."""
        self.held[key] = json.dumps(value)

    async def delete(self, key: str) -> None:
        """See `MinimalStore.delete`."""
        self.held.pop(key, None)

    async def list(
        self, prefix: str, *, limit: int | None = None, cursor: str | None = None
    ) -> MinimalPage:
        """See `MinimalStore.list`."""
        keys = sorted(k for k in self.held if k.startswith(prefix) and k > (cursor or ""))
        page = keys if limit is None else keys[:limit]
        entries = [(key, json.loads(self.held[key])) for key in page]
        return MinimalPage(entries, page[-1] if len(page) < len(keys) else None)


class MemoryMinimalStore(MemorySoleStore):
    """A minimal store with an atomic `create`."""

    async def create(self, key: str, value: JsonObject) -> bool:
        """See `CreatingStore.create`."""
        if key in self.held:
            return False
        await self.put(key, value)
        return True
