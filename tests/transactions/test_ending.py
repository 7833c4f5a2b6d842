"""How a transaction ends: committed, rolled back, replayed, tried again; and what comes after."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crux_workspace import Replayed, Transaction, Workspace
from crux_workspace.errors import ConflictError, ErrorCode, InvalidInputError, StateError
from crux_workspace.storage import Storage
from crux_workspace.storage import storage as bundle
from crux_workspace.testing import DelegatingRecordStore, FixedClock
from crux_workspace.testing.workspace import refused
from tests.support.transactions import (
    BIG,
    check_settled,
    conflict,
    not_reached,
    stored_assets,
    tip,
    whole,
)

A, B, C = "/workspace/a", "/workspace/b", "/workspace/c"


async def use(tx: Transaction) -> dict[str, Any]:
    return {
        "list": tx.list(),
        "read": tx.read(A),
        "write": tx.write(A, ""),
        "write of an asset": tx.write(A, BIG),
        "edit": tx.edit(A, "a", "b"),
        "append": tx.append(A, "b"),
        "set": tx.set(A, kind="x"),
        "delete": tx.delete(A),
        "exists": tx.exists(A),
        "is_dir": tx.is_dir(A),
        "stat": tx.stat(A),
        "rename": tx.rename(A, B),
        "move": tx.move(A, B),
        "copy": tx.copy(A, B),
        "grep": tx.grep("a"),
        "artifacts": tx.artifacts(),
        "finalize": tx.finalize(A),
        "withdraw": tx.withdraw(A),
        "walk": anext(tx.walk()),
        "stream": anext(tx.stream(A)),
    }


async def refuse_all(calls: dict[str, Any], code: str) -> None:
    codes = {}
    for name, call in calls.items():
        with pytest.raises(StateError) as caught:
            await call
        codes[name] = caught.value.code
    assert codes == dict.fromkeys(calls, code)


async def test_an_exception_rolls_all_back(
    ws: Workspace, storage: Storage, clock: FixedClock
) -> None:
    await ws.write(A, "one")
    leaked: list[Transaction] = []

    async def fail() -> None:
        async with ws.transaction() as tx:
            leaked.append(tx)
            await tx.write(A, "two")
            await tx.write(B, BIG)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    [tx] = leaked
    assert await tip(ws) == 1
    assert await stored_assets(storage) == set()
    await refuse_all(await use(tx), ErrorCode.TRANSACTION_CLOSED)
    assert await stored_assets(storage) == set()


async def test_use_after_the_end_is_refused(ws: Workspace, storage: Storage) -> None:
    leaked: list[Transaction] = []

    async def leak(tx: Transaction) -> None:
        await tx.write(A, "one")
        leaked.append(tx)

    await ws.transaction(leak)
    await refuse_all(await use(leaked[0]), ErrorCode.TRANSACTION_CLOSED)
    async with ws.transaction() as tx:
        pass
    await refuse_all(await use(tx), ErrorCode.TRANSACTION_CLOSED)
    assert await stored_assets(storage) == set()
    assert "ended" in repr(tx)


async def test_a_refused_commit_ends_the_transaction(ws: Workspace, other: Workspace) -> None:
    with conflict(A):
        async with ws.transaction() as tx:
            await tx.write(A, "mine")
            await other.write(A, "theirs")
    await refuse_all(await use(tx), ErrorCode.TRANSACTION_CLOSED)


async def test_a_transaction_is_entered_once_and_not_nested(ws: Workspace) -> None:
    request: Any = ws.transaction()
    async with request as tx:
        with refused(ErrorCode.TRANSACTION_CLOSED):
            async with request:
                not_reached("entered twice")
        with refused(ErrorCode.INVALID_ARGUMENT):
            tx.transaction()
        await tx.write(A, "one")
    with refused(ErrorCode.TRANSACTION_CLOSED):
        async with request:
            not_reached("entered again")
    with refused(ErrorCode.INVALID_ARGUMENT):
        await request
    with refused(ErrorCode.INVALID_ARGUMENT):
        async with ws.transaction(lambda tx: tx.write(A, "two")):
            not_reached("a callback and a block")
    assert await ws.read_text(A) == "one"


async def test_two_open_transactions_of_one_task_know_nothing_of_each_other(ws: Workspace) -> None:
    await ws.write(A, "one")
    with conflict(A):
        async with ws.transaction() as outer:
            await outer.write(A, "outer")
            async with ws.transaction() as inner:
                assert await inner.read_text(A) == "one"
                await inner.write(A, "inner")
    assert await ws.read_text(A) == "inner"


async def test_another_namespace_is_refused(ws: Workspace) -> None:
    async with ws.transaction() as tx:
        for call in (
            tx.write(A, "x", namespace="other"),
            tx.read(A, namespace="other"),
            tx.list(namespace="other"),
            tx.copy(A, B, to_namespace="other"),
            tx.copy(A, B, to_namespace="n"),
        ):
            with refused(ErrorCode.INVALID_ARGUMENT):
                await call
        await tx.write(A, "x", namespace="n")
    async with ws.transaction(namespace="other") as tx:
        with refused(ErrorCode.INVALID_ARGUMENT):
            await tx.read(A, namespace="n")
        await tx.write(A, "y")
    assert await ws.read_text(A) == "x"
    assert await ws.read_text(A, namespace="other") == "y"
    async with ws.for_namespace("third").transaction() as tx:
        await tx.write(A, "z")
    assert await ws.read_text(A, namespace="third") == "z"
    with refused(ErrorCode.INVALID_ARGUMENT):
        async with ws.for_namespace("third").transaction(namespace="n"):
            not_reached("a bound view was rebound")


async def test_what_cannot_be_taken_back_is_refused(ws: Workspace) -> None:
    await ws.write(A, "x")
    async with ws.transaction() as tx:
        with refused(ErrorCode.INVALID_ARGUMENT):
            await tx.delete(A, purge=True)
        for call in (
            tx.write(A, BIG, idempotency_key="k"),
            tx.append(A, "y", idempotency_key="k"),
            tx.rename(A, B, idempotency_key="k"),
            tx.finalize(A, idempotency_key="k"),
        ):
            with refused(ErrorCode.INVALID_ARGUMENT):
                await call
    assert await tip(ws) == 1


@pytest.mark.parametrize("attempts", [0, -1, True, None, "2", 1.5])
async def test_bad_attempts_are_refused(ws: Workspace, attempts: Any) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        ws.transaction(lambda tx: tx.write(A, "x"), max_attempts=attempts)


@pytest.mark.parametrize("key", ["", "  ", 7])
async def test_bad_idempotency_keys_are_refused(ws: Workspace, key: Any) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        ws.transaction(idempotency_key=key)


async def test_a_callback_may_be_sync_or_async_and_its_result_is_the_result(ws: Workspace) -> None:
    async def write(tx: Transaction) -> str:
        await tx.write(A, "one")
        return "done"

    assert await ws.transaction(write) == "done"
    assert await ws.transaction(lambda tx: 42) == 42
    file: Any = await ws.transaction(lambda tx: tx.write(A, "two"))
    assert file.version == 2


async def test_a_callback_runs_again_on_a_conflict_with_a_fresh_view(
    ws: Workspace, other: Workspace
) -> None:
    await ws.write(A, 0)
    seen = []

    async def add(tx: Transaction) -> int:
        value = whole(await tx.read_json(A))
        seen.append(value)
        if len(seen) < 3:
            await other.write(A, value + 10)
        await tx.write(B, BIG * len(seen))
        await tx.write(A, value + 1)
        return value

    assert await ws.transaction(add, max_attempts=3) == 20
    assert seen == [0, 10, 20]
    assert await ws.read_json(A) == 21
    assert await ws.read_bytes(B) == BIG * 3


async def test_a_callback_that_never_succeeds_raises_its_last_conflict(
    ws: Workspace, other: Workspace
) -> None:
    calls = 0

    async def always(tx: Transaction) -> None:
        nonlocal calls
        calls += 1
        await tx.append(A, "mine")
        await other.append(A, "theirs")

    with conflict(A):
        await ws.transaction(always)
    with conflict(A):
        await ws.transaction(always, max_attempts=4)
    assert calls == 5
    assert await ws.read_text(A) == "theirs" * 5


async def test_a_callback_that_raises_is_not_run_again(ws: Workspace) -> None:
    calls = 0

    async def fail(tx: Transaction) -> None:
        nonlocal calls
        calls += 1
        await tx.write(A, BIG)
        await tx.write(A, "x", if_version=7)

    with refused(ErrorCode.VERSION_CONFLICT, ConflictError):
        await ws.transaction(fail, max_attempts=5)
    assert calls == 1
    assert await tip(ws) == 0


async def test_a_known_key_applies_nothing(
    make_ws: Any, ws: Workspace, storage: Storage, clock: FixedClock
) -> None:
    calls = 0

    async def write(tx: Transaction) -> str:
        nonlocal calls
        calls += 1
        await tx.append(A, "line\n")
        return "done"

    assert await ws.transaction(write, idempotency_key="k") == "done"
    clock.advance(1000)
    again = await make_ws().transaction(write, idempotency_key="k")
    assert isinstance(again, Replayed)
    [commit] = await ws.log()
    assert (again.sequence, again.commit, again.at) == (1, commit.commit, commit.at)
    assert calls == 1
    async with ws.transaction(idempotency_key="k") as tx:
        assert tx.replayed == again
        await tx.write(B, BIG)
        assert await tx.read_bytes(B) == BIG
    assert tx.replayed == again
    assert await stored_assets(storage) == set()
    assert await tip(ws) == 1
    assert await ws.transaction(write, idempotency_key="another") == "done"
    clock.advance(24 * 3600 * 1000)
    assert await ws.transaction(write, idempotency_key="k") == "done"
    assert await ws.read_text(A) == "line\n" * 3


async def test_a_key_of_another_verb_is_refused(ws: Workspace) -> None:
    await ws.write(A, "x", idempotency_key="k")
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.transaction(lambda tx: tx.write(B, "x"), idempotency_key="k")
    with refused(ErrorCode.INVALID_ARGUMENT):
        async with ws.transaction(idempotency_key="k"):
            not_reached("began with a key that was used")
    await ws.transaction(lambda tx: tx.write(B, "x"), idempotency_key="t")
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.write(B, "x", idempotency_key="t")


async def test_a_transaction_that_commits_nothing_remembers_no_key(ws: Workspace) -> None:
    await ws.transaction(lambda tx: tx.exists(A), idempotency_key="k")
    file: Any = await ws.transaction(lambda tx: tx.write(A, "x"), idempotency_key="k")
    assert file.version == 1


async def test_of_two_transactions_with_one_key_one_is_applied(
    make_ws: Any, storage: Storage
) -> None:
    begun = asyncio.Barrier(2)

    async def run(of: Workspace, path: str) -> Transaction:
        async with of.transaction(idempotency_key="k") as tx:
            await begun.wait()
            await tx.write(path, BIG)
        return tx

    done = await asyncio.gather(run(make_ws(), A), run(make_ws(), B))
    assert sorted(tx.replayed is None for tx in done) == [False, True]
    assert done[0].committed == done[1].committed
    assert len(await stored_assets(storage)) == 1
    assert await tip(make_ws()) == 1


async def test_one_transaction_can_be_used_by_several_tasks_at_once(ws: Workspace) -> None:
    await ws.write(A, "")
    async with ws.transaction() as tx:
        await asyncio.gather(
            *(tx.append(A, f"{n}\n") for n in range(20)),
            *(tx.write(f"/workspace/d/{n}", BIG if n % 2 else "text") for n in range(20)),
            *(tx.list("/workspace/d") for _ in range(5)),
            *(tx.grep("1") for _ in range(5)),
            *(tx.append("/workspace/new", f"{n}\n") for n in range(20)),
            tx.rename(A, B),
        )
        assert len(list(await tx.list("/workspace/d"))) == 20
    assert await tip(ws) == 2
    appended = [
        line
        for path in (A, B)
        if await ws.exists(path)
        for line in (await ws.read_text(path)).split()
    ]
    assert sorted(appended, key=int) == [str(n) for n in range(20)]
    lines = (await ws.read_text("/workspace/new")).split()
    assert sorted(lines, key=int) == [str(n) for n in range(20)]


async def test_a_call_that_meets_the_end_is_in_the_commit_or_refused(
    ws: Workspace, storage: Storage, clock: FixedClock
) -> None:
    for turn in range(10):
        async with ws.transaction() as tx:
            await tx.write(f"/workspace/{turn}/base", "x")
            calls = [
                asyncio.ensure_future(tx.write(f"/workspace/{turn}/{n}", BIG)) for n in range(6)
            ]
            for _ in range(turn):
                await asyncio.sleep(0)
        done = await asyncio.gather(*calls, return_exceptions=True)
        landed = {entry.path for entry in await ws.list(f"/workspace/{turn}")}
        for number, one in enumerate(done):
            is_there = f"/workspace/{turn}/{number}" in landed
            if isinstance(one, BaseException):
                assert isinstance(one, StateError)
                assert one.code == ErrorCode.TRANSACTION_CLOSED
                assert not is_there
            else:
                assert is_there
        await check_settled(ws, storage, clock)


async def test_dropped_and_replaced_uploads_are_gone_at_once(
    ws: Workspace, storage: Storage
) -> None:
    async with ws.transaction() as tx:
        await tx.write(A, BIG)
        await tx.write(A, BIG * 2)
        await tx.write(B, BIG)
        await tx.copy(B, C)
        await tx.delete(B)
        await tx.write(B, BIG)
        await tx.write(B, "small")
        await tx.append("/workspace/log", "line\n" * 100)
        await tx.append("/workspace/log", "line\n" * 100)
        await tx.delete("/workspace/log")
        assert len(await stored_assets(storage)) == 2
    assert len(await stored_assets(storage)) == 2
    assert await ws.read_bytes(A) == BIG * 2
    assert await ws.read_bytes(C) == BIG


async def test_closing_the_workspace_ends_its_transactions(
    make_ws: Any, storage: Storage, clock: FixedClock
) -> None:
    ws = make_ws()
    with refused(ErrorCode.WORKSPACE_CLOSED):
        async with ws.transaction() as tx:
            await tx.write(A, BIG)
            await ws.aclose()
            with refused(ErrorCode.WORKSPACE_CLOSED):
                await tx.write(B, "x")
            with refused(ErrorCode.WORKSPACE_CLOSED):
                await tx.read(A)
    with refused(ErrorCode.WORKSPACE_CLOSED):
        async with ws.transaction():
            not_reached("began on a closed workspace")
    assert await tip(make_ws()) == 0


class _Ceilings(DelegatingRecordStore):
    """A store that takes only small commits."""

    @property
    def capabilities(self) -> Any:
        from dataclasses import replace

        return replace(self.inner.capabilities, max_commit_paths=3, max_commit_bytes=5_000)

    async def commit_planned(self, partition: str, plan: Any) -> Any:
        from crux_workspace.storage.layout import check_size

        async def checked(reader: Any) -> Any:
            batch = await plan(reader)
            check_size(batch, self.capabilities)
            return batch

        return await self.inner.commit_planned(partition, checked)


@pytest.mark.parametrize("what", ["paths", "bytes"])
async def test_a_transaction_too_large_for_the_store_stores_nothing(
    make_ws: Any, storage: Storage, what: str
) -> None:
    small = bundle(records=_Ceilings(storage.records), assets=storage.assets)
    ws = make_ws(storage=small)
    with refused(ErrorCode.COMMIT_TOO_LARGE):
        async with ws.transaction() as tx:
            for number in range(4 if what == "paths" else 2):
                await tx.write(f"/workspace/{number}", BIG)
            if what == "bytes":
                await tx.write(A, "x", metadata={"large": "x" * 6_000})
    assert await tip(ws) == 0
    assert await stored_assets(storage) == set()
    async with ws.transaction() as tx:
        for number in range(3):
            await tx.write(f"/workspace/{number}", BIG)
        await tx.write(A, "dropped")
        await tx.delete(A)
    assert await tip(ws) == 1


async def test_an_actor_is_the_transactions(ws: Workspace) -> None:
    async with ws.acting_as("agent:writer").transaction() as tx:
        await tx.write(A, "x")
    assert (await ws.log())[0].actor == "agent:writer"


async def test_a_transaction_may_name_its_verb(ws: Workspace) -> None:
    async with ws.transaction() as tx:
        tx.verb = "import"
        await tx.write("/workspace/a.md", "x")
    assert (await ws.log(limit=1))[0].verb == "import"
    with pytest.raises(InvalidInputError):
        async with ws.transaction() as tx:
            tx.verb = " "
            await tx.write("/workspace/b.md", "x")
    assert not await ws.exists("/workspace/b.md")
