"""Minimal stores that lose, reorder or lie; part of `crux_workspace.testing.gallery`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from crux_workspace.storage.minimal import JsonObject, MinimalPage
from crux_workspace.testing.minimal_stores import MemoryMinimalStore

__all__ = [
    "AnswersFromYesterday",
    "CreateLooksThenPuts",
    "CreateOverwrites",
    "DeletesBelow",
    "FoldsCase",
    "ForgetsLastPage",
    "KeepsMutableValues",
    "LosesEveryTenthPut",
    "MergesObjects",
    "NumbersAreFloats",
    "PrefixIsAPattern",
    "SharesWhatItReturns",
    "TakesFoldersForKeys",
    "TruncatesLargeValues",
]


class LosesEveryTenthPut(MemoryMinimalStore):
    """Acknowledges puts that it does not make."""

    count = 0

    async def put(self, key: str, value: JsonObject) -> None:
        """Forget one now and then."""
        self.count += 1
        if self.count % 10:
            await super().put(key, value)


class AnswersFromYesterday(MemoryMinimalStore):
    """Reads lag behind: a replaced object is seen once more."""

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[str, str] = {}

    async def put(self, key: str, value: JsonObject) -> None:
        """Remember what was there."""
        if key in self.held:
            self._before[key] = self.held[key]
        await super().put(key, value)

    async def get(self, key: str) -> JsonObject | None:
        """Answer with what was there before, once."""
        old = self._before.pop(key, None)
        if old is None:
            return await super().get(key)
        value: JsonObject = json.loads(old)
        return value


class TakesFoldersForKeys(MemoryMinimalStore):
    """Finds something where only longer keys are."""

    async def get(self, key: str) -> JsonObject | None:
        """Take a folder for an object."""
        if any(held.startswith(key + "/") for held in self.held):
            return {}
        return await super().get(key)


class NumbersAreFloats(MemoryMinimalStore):
    """Takes booleans for numbers."""

    async def put(self, key: str, value: JsonObject) -> None:
        """Lose the types."""
        plain = {k: int(v) if isinstance(v, bool) else v for k, v in value.items()}
        await super().put(key, plain)


class FoldsCase(MemoryMinimalStore):
    """Takes keys that differ in case for one."""

    async def put(self, key: str, value: JsonObject) -> None:
        """Fold the key."""
        await super().put(key.lower(), value)

    async def get(self, key: str) -> JsonObject | None:
        """Fold the key."""
        return await super().get(key.lower())


class TruncatesLargeValues(MemoryMinimalStore):
    """Keeps the first thousand items of a list."""

    async def put(self, key: str, value: JsonObject) -> None:
        """Cut."""
        await super().put(
            key, {k: v[:1000] if isinstance(v, list) else v for k, v in value.items()}
        )


class SharesWhatItReturns(MemoryMinimalStore):
    """Returns the object that it holds."""

    def __init__(self) -> None:
        super().__init__()
        self._loaded: dict[str, Any] = {}

    async def put(self, key: str, value: JsonObject) -> None:
        """Forget what was loaded."""
        self._loaded.pop(key, None)
        await super().put(key, value)

    async def get(self, key: str) -> JsonObject | None:
        """Load once."""
        if key not in self._loaded:
            self._loaded[key] = await super().get(key)
        value: JsonObject | None = self._loaded[key]
        return value


class MergesObjects(MemoryMinimalStore):
    """Keeps the members that a put does not name."""

    async def put(self, key: str, value: JsonObject) -> None:
        """Merge."""
        await super().put(key, {**(await self.get(key) or {}), **value})


class KeepsMutableValues(MemoryMinimalStore):
    """Stores an object when somebody asks for it."""

    def __init__(self) -> None:
        super().__init__()
        self._later: dict[str, JsonObject] = {}

    async def put(self, key: str, value: JsonObject) -> None:
        """Keep the caller's own object."""
        self._later[key] = value

    async def get(self, key: str) -> JsonObject | None:
        """Store it now."""
        if key in self._later:
            await super().put(key, self._later[key])
        return await super().get(key)


class DeletesBelow(MemoryMinimalStore):
    """Deletes what lies below a key too."""

    async def delete(self, key: str) -> None:
        """Take the key for a folder."""
        for held in [k for k in self.held if k == key or k.startswith(key + "/")]:
            del self.held[held]


class ForgetsLastPage(MemoryMinimalStore):
    """Ends a listing before its last page."""

    async def list(
        self, prefix: str, *, limit: int | None = None, cursor: str | None = None
    ) -> MinimalPage:
        """Drop the last cursor."""
        page = await super().list(prefix, limit=limit, cursor=cursor)
        rest = await super().list(prefix, limit=limit, cursor=page.cursor)
        return page if rest.cursor is not None else MinimalPage(page.entries)


class PrefixIsAPattern(MemoryMinimalStore):
    """Takes an underscore for any character, as LIKE does."""

    async def list(
        self, prefix: str, *, limit: int | None = None, cursor: str | None = None
    ) -> MinimalPage:
        """Match a pattern."""
        page = await super().list("")
        found = [
            (key, value)
            for key, value in page.entries
            if len(key) >= len(prefix)
            and all(p in ("_", k) for p, k in zip(prefix, key, strict=False))
        ]
        return MinimalPage(found)


class CreateOverwrites(MemoryMinimalStore):
    """Says that something is there, and replaces it."""

    async def create(self, key: str, value: JsonObject) -> bool:
        """Put in any case."""
        there = key in self.held
        await self.put(key, value)
        return not there


class CreateLooksThenPuts(MemoryMinimalStore):
    """Creates in two steps, so that two may win."""

    async def create(self, key: str, value: JsonObject) -> bool:
        """Look first, put then."""
        if await self.get(key) is not None:
            return False
        await asyncio.sleep(0)
        await self.put(key, value)
        return True
