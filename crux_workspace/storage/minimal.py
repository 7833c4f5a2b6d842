"""The smallest store there is: JSON objects by key. `storage_adapters.journaled` makes a `RecordStore` of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

__all__ = ["CreatingStore", "JsonObject", "MinimalPage", "MinimalStore"]

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object as Python has it: string keys; values None, booleans, numbers, strings, lists and such objects."""


@dataclass(frozen=True, slots=True)
class MinimalPage:
    """One page of a listing, in any order."""

    entries: list[tuple[str, JsonObject]]
    """Keys with their values."""
    cursor: str | None = None
    """Where the next page begins; None when this page is the last."""


@runtime_checkable
class MinimalStore(Protocol):
    """JSON objects by key, without transactions. Keys are ASCII letters, digits and ``/._-``, at most 200 characters.

    What is acknowledged is there for every later call, of any process that uses the store: a `get` answers with the last `put`,
    `create` or `delete` that ended before it began (M-001). A call that fails may or may not have had its effect.
    """

    async def get(self, key: str) -> JsonObject | None:
        """Return the object at `key`, or None (M-002).

        Must: return what was put, whatever JSON it is (M-003), under the very key (M-004), however large (M-005); return an object
        that nobody else holds (M-006).
        """
        ...

    async def put(self, key: str, value: JsonObject) -> None:
        """Store the object, replacing the one that is there (M-010); keep no hold of it (M-011)."""
        ...

    async def delete(self, key: str) -> None:
        """Delete the object; an absent one is no error (M-012)."""
        ...

    async def list(
        self, prefix: str, *, limit: int | None = None, cursor: str | None = None
    ) -> MinimalPage:
        """Return the objects whose key starts with `prefix`, in any order, a page at a time.

        Must: give each object that is there during the whole paging at least once (M-020); treat no character of the prefix as a
        pattern (M-021).
        """
        ...


@runtime_checkable
class CreatingStore(MinimalStore, Protocol):
    """A minimal store that also creates atomically; only then several processes may use it at a time."""

    async def create(self, key: str, value: JsonObject) -> bool:
        """Store the object if there is none at `key`; tell whether it was stored.

        Must: change nothing of what is there (M-030); let exactly one of several that are made at the same time store (M-031).
        """
        ...
