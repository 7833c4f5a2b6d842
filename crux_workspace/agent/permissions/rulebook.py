"""Which rules count for a thread: those of the policy, of the store, and of the thread itself."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from crux_workspace.agent.permissions.policy import (
    Mode,
    PermissionPolicy,
    ThreadPolicy,
    checked_thread_policy,
)
from crux_workspace.agent.permissions.rules import EMPTY_RULES, RuleSet
from crux_workspace.agent.permissions.stores import PermissionStore, StoredPermissions, of_the_store
from crux_workspace.agent.permissions.verdicts import Lists
from crux_workspace.errors import ErrorCode, StorageError

__all__ = ["RuleBook", "ThreadPolicies"]

ThreadPolicies: TypeAlias = Callable[[str], "ThreadPolicy | Awaitable[ThreadPolicy | None] | None"]


class RuleBook:
    """Puts the lists together; the last ones are kept until a part of them changes."""

    def __init__(
        self,
        policy: PermissionPolicy,
        store: PermissionStore,
        mode: Mode,
        thread_policy: ThreadPolicies | None,
    ) -> None:
        self._policy = policy
        self._store = store
        self._mode = mode
        self._thread_policy = thread_policy
        self._cached: tuple[StoredPermissions, ThreadPolicy | None, str | None, Lists] | None = None

    @property
    def asks_threads(self) -> bool:
        """Whether threads may have lists of their own."""
        return self._thread_policy is not None

    async def lists(self, root: str) -> Lists:
        """Return the rules that count for a root thread now."""
        with of_the_store():
            held = await self._store.load()
        if not isinstance(held, StoredPermissions):
            raise StorageError(
                f"The permission store gave a {type(held).__name__}, not StoredPermissions.",
                code=ErrorCode.RECORD_CORRUPT,
            )
        own: ThreadPolicy | None = None
        if self._thread_policy is not None:
            given = self._thread_policy(root)
            own = checked_thread_policy(await given if inspect.isawaitable(given) else given)
        scope = root if own is not None else None
        cached = self._cached
        if cached is not None and cached[0] is held and cached[1] is own and cached[2] == scope:
            return cached[3]
        lists = self._combined(held, own, scope)
        self._cached = (held, own, scope, lists)
        return lists

    def _combined(
        self, held: StoredPermissions, own: ThreadPolicy | None, scope: str | None
    ) -> Lists:
        granted = held.rules(scope) if self._mode == "interactive" else EMPTY_RULES
        allowed = self._policy.allowed if own is None else RuleSet(own.allow)
        denied = self._policy.denied.joined(held.denied)
        if own is not None:
            denied = denied.joined(RuleSet(own.deny))
        return Lists(allowed.joined(granted), denied, scope)
