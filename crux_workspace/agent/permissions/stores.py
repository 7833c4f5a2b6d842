"""The contract of a place that keeps standing approvals, and the one in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from crux_workspace.agent.permissions.decisions import Grant
from crux_workspace.agent.permissions.rules import EMPTY_RULES, RuleSet, check_rule, invalid_policy
from crux_workspace.errors import WorkspaceError
from crux_workspace.model.clocks import wall_clock_ms
from crux_workspace.storage.failures import unavailable

__all__ = [
    "MAX_PATTERN_CHARS",
    "PermissionStore",
    "StoredPermissions",
    "checked_grant",
    "memory_permission_store",
    "of_the_store",
]

MAX_PATTERN_CHARS = 4096
"""A longer pattern is not kept."""


@dataclass(frozen=True, slots=True)
class StoredPermissions:
    """What a store holds. While nothing changed a store may give the same object again."""

    grants: tuple[Grant, ...] = ()
    denied: RuleSet = field(default=EMPTY_RULES, repr=False)
    """Denials written by hand; the gate itself never adds one."""

    def rules(self, thread_id: str | None) -> RuleSet:
        """Return the grants of a thread, or of the application, as rules."""
        table: dict[str, list[str]] = {}
        for grant in self.grants:
            if grant.thread_id == thread_id:
                table.setdefault(grant.key, []).append(grant.pattern)
        return RuleSet(table)


@runtime_checkable
class PermissionStore(Protocol):
    """Keeps grants: durable, shared, each listed and revocable."""

    async def load(self) -> StoredPermissions:
        """Return what is kept now, what other processes added included.

        Raises:
            StorageError: It cannot be read (``RECORD_CORRUPT``, ``STORE_UNAVAILABLE``); nothing is guessed.
        """
        ...

    async def add(
        self, key: str, pattern: str, *, thread_id: str | None = None, confirm: str | None = None
    ) -> Grant:
        """Keep a grant, durable when it returns; one that is there already is returned as it is.

        Args:
            key: Gate key.
            pattern: The rule.
            thread_id: The thread it is for; None for the application.
            confirm: A rule for everything (``/``) has to be confirmed by giving it here again.

        Returns:
            The grant.

        Raises:
            InvalidInputError: A rule that is blank, too long, unconfirmed or no rule (``POLICY_INVALID``).
        """
        ...

    async def remove(self, grant_id: str) -> bool:
        """Take a grant back; False when there is none of that id."""
        ...

    async def forget(self, thread_id: str) -> int:
        """Take back all grants of a thread and return how many there were."""
        ...


@contextmanager
def of_the_store() -> Iterator[None]:
    """Tell what a store of one's own throws as a failing store.

    Raises:
        StorageError: It failed in its own way (``STORE_UNAVAILABLE``).
    """
    try:
        yield
    except WorkspaceError:
        raise
    except Exception as error:
        raise unavailable("permission store", error) from error


def checked_grant(
    key: str, pattern: str, thread_id: str | None, confirm: str | None, now: int
) -> Grant:
    """Return the grant to keep, or refuse it."""
    rule = check_rule(key, pattern)
    if len(pattern) > MAX_PATTERN_CHARS:
        raise invalid_policy(
            f"A grant of more than {MAX_PATTERN_CHARS} characters is not kept.", key=key
        )
    if rule == "/" and key in ("readFile", "writeFile", "listDir") and confirm != pattern:
        raise invalid_policy(
            f"A grant for every path has to be confirmed: pass confirm={pattern!r}.", key=key
        )
    return Grant(grant_id(key, rule, thread_id), key, rule, thread_id, now)


def grant_id(key: str, pattern: str, thread_id: str | None) -> str:
    """Return the id of a grant: the same for the same rule and thread."""
    named = "\x00".join((key, pattern, "" if thread_id is None else f"t{thread_id}"))
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class MemoryPermissionStore:
    """Grants in memory; gone with the process."""

    def __init__(
        self,
        deny: Mapping[str, list[str]] | None = None,
        *,
        clock: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._clock = clock
        self._held = StoredPermissions((), RuleSet(deny))

    def __repr__(self) -> str:
        return f"MemoryPermissionStore(grants={len(self._held.grants)})"

    async def load(self) -> StoredPermissions:
        """See `PermissionStore.load`."""
        return self._held

    async def add(
        self, key: str, pattern: str, *, thread_id: str | None = None, confirm: str | None = None
    ) -> Grant:
        """See `PermissionStore.add`."""
        grant = checked_grant(key, pattern, thread_id, confirm, self._clock())
        for held in self._held.grants:
            if held.grant_id == grant.grant_id:
                return held
        self._held = StoredPermissions((*self._held.grants, grant), self._held.denied)
        return grant

    async def remove(self, grant_id: str) -> bool:
        """See `PermissionStore.remove`."""
        return self._keep(lambda grant: grant.grant_id != grant_id) > 0

    async def forget(self, thread_id: str) -> int:
        """See `PermissionStore.forget`."""
        return self._keep(lambda grant: grant.thread_id != thread_id)

    def _keep(self, wanted: Callable[[Grant], bool]) -> int:
        kept = tuple(grant for grant in self._held.grants if wanted(grant))
        gone = len(self._held.grants) - len(kept)
        if gone:
            self._held = StoredPermissions(kept, self._held.denied)
        return gone


def memory_permission_store(
    deny: Mapping[str, list[str]] | None = None, *, clock: Callable[[], int] = wall_clock_ms
) -> MemoryPermissionStore:
    """Return a store that keeps grants in memory.

    Args:
        deny: Denials that it holds from the start.
        clock: Gives the times of grants, in ms.

    Returns:
        The store.

    Raises:
        InvalidInputError: A denial that is no rule (``POLICY_INVALID``).
    """
    return MemoryPermissionStore(deny, clock=clock)
