"""Standing approvals as records: for many processes, on any record store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crux_workspace.agent.permissions.decisions import Grant
from crux_workspace.agent.permissions.partitions import (
    Change,
    Partition,
    corrupt,
    decoded,
    partition_of,
    scanned,
)
from crux_workspace.agent.permissions.rules import RuleSet, check_rule
from crux_workspace.agent.permissions.stores import StoredPermissions, checked_grant
from crux_workspace.errors import InvalidInputError
from crux_workspace.model.clocks import Clock, random_id, wall_clock_ms
from crux_workspace.storage.layout import key
from crux_workspace.storage.records import Reader, RecordStore

__all__ = ["RecordPermissionStore", "record_permission_store"]

_GRANTS = key("grant")
_DENIES = key("deny")


class RecordPermissionStore:
    """Grants and denials in a partition of a record store; what other processes change is seen at the next load."""

    def __init__(self, records: RecordStore, *, clock: Clock = wall_clock_ms) -> None:
        self._partition = Partition(records, partition_of("permissions"), clock, random_id)
        self._seen = -1
        self._held = StoredPermissions()

    def __repr__(self) -> str:
        return f"RecordPermissionStore(grants={len(self._held.grants)})"

    async def load(self) -> StoredPermissions:
        """See `PermissionStore.load`; unchanged permissions cost one small read."""
        sequence = await self._partition.sequence()
        if sequence != self._seen:
            grants = [_grant(decoded(record)) for record in await self._partition.scan(_GRANTS)]
            denied: dict[str, list[str]] = {}
            for record in await self._partition.scan(_DENIES):
                entry = _grant(decoded(record))
                denied.setdefault(entry.key, []).append(entry.pattern)
            self._held = StoredPermissions(tuple(grants), RuleSet(denied))
            self._seen = sequence
        return self._held

    async def add(
        self, key: str, pattern: str, *, thread_id: str | None = None, confirm: str | None = None
    ) -> Grant:
        """See `PermissionStore.add`."""
        grant = checked_grant(key, pattern, thread_id, confirm, self._partition.clock())
        return await self._put(_GRANTS, grant)

    async def add_denial(self, key: str, pattern: str) -> str:
        """Keep a denial that holds in every mode but bypass, and return its id."""
        return (await self._put(_DENIES, checked_grant(key, pattern, None, pattern, 0))).grant_id

    async def remove(self, grant_id: str) -> bool:
        """See `PermissionStore.remove`; takes back denials too."""
        keys = [f"{_GRANTS}{grant_id}\x01", f"{_DENIES}{grant_id}\x01"]

        async def decide(reader: Reader, _: str) -> Change[bool]:
            found = [record.key for record in await reader.get_many(keys) if record is not None]
            return Change(bool(found), deletes=found)

        return await self._partition.change("revoke", decide)

    async def forget(self, thread_id: str) -> int:
        """See `PermissionStore.forget`."""

        async def decide(reader: Reader, _: str) -> Change[int]:
            records = await scanned(reader, _GRANTS)
            gone = [r.key for r in records if _grant(decoded(r)).thread_id == thread_id]
            return Change(len(gone), deletes=gone)

        return await self._partition.change("forget", decide)

    async def _put(self, kind: str, grant: Grant) -> Grant:
        record_key = f"{kind}{grant.grant_id}\x01"

        async def decide(reader: Reader, _: str) -> Change[Grant]:
            (record,) = await reader.get_many([record_key])
            if record is not None:
                return Change(_grant(decoded(record)))
            return Change(grant, puts={record_key: grant.to_dict()})

        return await self._partition.change("grant", decide)


def _grant(entry: Any) -> Grant:  # noqa: ANN401 - JSON
    try:
        grant = Grant(**entry)
        check_rule(grant.key, grant.pattern)
    except (TypeError, InvalidInputError):
        raise corrupt("a grant") from None
    if not (grant.thread_id is None or isinstance(grant.thread_id, str)):
        raise corrupt("a grant")
    return grant


def record_permission_store(
    records: RecordStore, *, clock: Callable[[], int] = wall_clock_ms
) -> RecordPermissionStore:
    """Return a store that keeps grants in a record store.

    Args:
        records: The record store; it is not closed by this one.
        clock: Gives the times of grants, in ms.

    Returns:
        The store.
    """
    return RecordPermissionStore(records, clock=clock)
