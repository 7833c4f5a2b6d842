"""The conformance kit of permission stores, as a pytest mixin.

Example::

    class TestMyStore(PermissionStoreContract):
        @pytest.fixture
        async def store(self):
            yield MyStore()
"""

from __future__ import annotations

import asyncio

import pytest

from crux_workspace.agent.permissions.stores import MAX_PATTERN_CHARS, PermissionStore
from crux_workspace.errors import InvalidInputError
from crux_workspace.testing.checks import (
    Check,
    Checks,
    Fresh,
    Hooks,
    NotApplicable,
    holds,
    raises,
    same,
)

__all__ = ["PERMISSION_STORE_CHECKS", "PermissionStoreContract"]

PERMISSION_STORE_CHECKS: Checks[PermissionStore] = Checks()
_Fresh = Fresh[PermissionStore]


@PERMISSION_STORE_CHECKS.add()
async def check_a_grant_is_kept_and_listed(store: PermissionStore, fresh: _Fresh) -> None:
    """P-010: a grant is there after adding, with key, pattern, thread and time."""
    tool = fresh.name()
    grant = await store.add("tool", tool)
    same((grant.key, grant.pattern, grant.thread_id), ("tool", tool, None), "grant")
    holds(grant in (await store.load()).grants, "it is listed")


@PERMISSION_STORE_CHECKS.add()
async def check_a_repeated_grant_is_the_same(store: PermissionStore, fresh: _Fresh) -> None:
    """P-011: adding the same again gives the first grant, also for many at a time."""
    tool = fresh.name()
    first = await store.add("tool", tool)
    again = await asyncio.gather(*(store.add("tool", tool) for _ in range(5)))
    holds(all(grant == first for grant in again), "they are the same")
    found = [grant for grant in (await store.load()).grants if grant.pattern == tool]
    same(len(found), 1, "grants")


@PERMISSION_STORE_CHECKS.add()
async def check_grants_can_be_revoked(store: PermissionStore, fresh: _Fresh) -> None:
    """P-012: a removed grant counts no more; an unknown id is False."""
    grant = await store.add("tool", fresh.name())
    same(await store.remove(grant.grant_id), True, "removed")
    same(await store.remove(grant.grant_id), False, "removed again")
    holds(grant not in (await store.load()).grants, "it is gone")


@PERMISSION_STORE_CHECKS.add()
async def check_threads_are_apart(store: PermissionStore, fresh: _Fresh) -> None:
    """P-013: a thread's grants are its own, and go with it; the application's stay."""
    one, two, tool = fresh.name("a"), fresh.name("b"), fresh.name()
    for thread in (one, two, None):
        await store.add("tool", tool, thread_id=thread)
    held = await store.load()
    for thread in (one, two, None):
        same(held.rules(thread)["tool"].count(tool), 1, f"rules of {thread}")
    same(await store.forget(one), 1, "forgotten")
    same(await store.forget(one), 0, "forgotten again")
    left = {grant.thread_id for grant in (await store.load()).grants if grant.pattern == tool}
    same(left, {two, None}, "left")


@PERMISSION_STORE_CHECKS.add()
async def check_no_rule_is_lost_among_many(store: PermissionStore, fresh: _Fresh) -> None:
    """P-014: of many grants at a time none is lost."""
    tools = [fresh.name() for _ in range(12)]
    await asyncio.gather(*(store.add("tool", tool) for tool in tools))
    found = {grant.pattern for grant in (await store.load()).grants}
    same(set(tools) - found, set(), "lost")


@PERMISSION_STORE_CHECKS.add()
async def check_bad_rules_are_refused(store: PermissionStore, fresh: _Fresh) -> None:
    """P-020: blank, unknown, too long and relative rules are refused, and nothing is kept of them."""
    del fresh
    before = (await store.load()).grants
    bad = [
        ("tool", ""), ("tool", "  "), ("tool", "a\x00b"), ("nothing", "x"), ("__proto__", "x"), ("readFile", "relative"),
        ("readFile", "/a/../b"), ("bash", "'"), ("tool", "x" * (MAX_PATTERN_CHARS + 1)),
    ]  # fmt: skip
    for key, pattern in bad:
        async with raises(InvalidInputError, f"{key} {pattern[:10]!r}"):
            await store.add(key, pattern)
    same((await store.load()).grants, before, "grants")


@PERMISSION_STORE_CHECKS.add()
async def check_a_rule_for_everything_has_to_be_confirmed(
    store: PermissionStore, fresh: _Fresh
) -> None:
    """P-021: a grant for every path is kept only when it is given twice."""
    thread = fresh.name()
    async with raises(InvalidInputError, "unconfirmed"):
        await store.add("readFile", "/", thread_id=thread)
    same((await store.add("readFile", "/", thread_id=thread, confirm="/")).pattern, "/", "rule")
    await store.forget(thread)


class PermissionStoreContract:
    """Runs every check of `PERMISSION_STORE_CHECKS` on the fixture `store`, which may hold other grants."""

    @pytest.mark.asyncio
    @pytest.mark.parametrize("check", list(PERMISSION_STORE_CHECKS), ids=lambda check: check.id)
    async def test_check(self, check: Check[PermissionStore], store: PermissionStore) -> None:
        """Hold the store to one promise."""
        try:
            await check.run(store, Fresh(Hooks()))
        except NotApplicable as exc:
            pytest.skip(f"{check.id}: {exc}")
