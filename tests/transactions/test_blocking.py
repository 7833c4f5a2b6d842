"""The blocking form: a block, a callback on the caller's own thread, and the same refusals."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from crux_workspace import Replayed, SyncTransaction, SyncWorkspace, Workspace, open_workspace_sync
from crux_workspace.errors import ErrorCode
from crux_workspace.testing.workspace import refused
from tests.support.transactions import BIG, conflict, not_reached, whole

A, B = "/workspace/a", "/workspace/b"


@pytest.fixture
def sws(store_url: str) -> Iterator[SyncWorkspace]:
    with open_workspace_sync(store_url) as opened:
        yield opened


def test_a_block_commits_at_its_end(sws: SyncWorkspace) -> None:
    with sws.transaction() as tx:
        tx.write(A, "one\n")
        tx.append(A, "two\n")
        tx.write(B, BIG)
        assert tx.read_text(A) == "one\ntwo\n"
        assert b"".join(tx.stream(B)) == BIG
        assert [entry.path for entry in tx.walk()] == [A, B]
        assert sws.stat(A) is None
        assert "open" in repr(tx)
    assert tx.committed is not None
    assert tx.committed.commit == sws.log()[0].commit
    assert [change.type for change in sws.log()[0].changes] == ["create", "create"]


def test_a_block_that_raises_commits_nothing(sws: SyncWorkspace) -> None:
    def fail() -> SyncTransaction:
        with sws.transaction() as tx:
            tx.write(A, BIG)
            leaked.append(tx)
            raise ZeroDivisionError

    leaked: list[SyncTransaction] = []
    with pytest.raises(ZeroDivisionError):
        fail()
    assert sws.log() == []
    with refused(ErrorCode.TRANSACTION_CLOSED):
        leaked[0].read(A)
    with refused(ErrorCode.TRANSACTION_CLOSED):
        next(leaked[0].walk())


def test_a_callback_runs_on_the_callers_thread_and_again_on_a_conflict(sws: SyncWorkspace) -> None:
    sws.write(A, 0)
    threads = []

    def add(tx: SyncTransaction) -> int:
        threads.append(threading.current_thread())
        value = whole(tx.read_json(A))
        if len(threads) < 3:
            sws.write(A, value + 10)
        tx.write(A, value + 1)
        return value

    assert sws.transaction(add, max_attempts=3) == 20
    assert threads == [threading.current_thread()] * 3
    threads.clear()
    with conflict(A):
        sws.transaction(add)
    assert sws.read_json(A) == 31


def test_a_known_key_is_replayed(sws: SyncWorkspace) -> None:
    first: Any = sws.transaction(lambda tx: tx.append(A, "x"), idempotency_key="k")
    again = sws.transaction(lambda tx: tx.append(A, "x"), idempotency_key="k")
    assert first.version == 1
    assert isinstance(again, Replayed)
    with sws.transaction(idempotency_key="k") as tx:
        tx.append(A, "x")
    assert tx.replayed == again
    assert sws.read_text(A) == "x"


def test_other_namespaces_nesting_and_coroutines_are_refused(sws: SyncWorkspace) -> None:
    async def wrong(tx: SyncTransaction) -> None:
        tx.write(A, "x")

    with sws.transaction() as tx:
        with refused(ErrorCode.INVALID_ARGUMENT):
            tx.write(A, "x", namespace="other")
        nested: Any = tx
        with refused(ErrorCode.INVALID_ARGUMENT):
            nested.transaction()
    with refused(ErrorCode.INVALID_ARGUMENT):
        sws.transaction(wrong)
    with refused(ErrorCode.INVALID_ARGUMENT):
        sws.transaction(max_attempts=0)
    request = sws.transaction(namespace="elsewhere")
    with request as tx:
        tx.write(A, "there")
    with refused(ErrorCode.TRANSACTION_CLOSED), request:
        not_reached("entered again")
    assert sws.read_text(A, namespace="elsewhere") == "there"
    assert not sws.exists(A)


def test_threads_that_add_at_once_lose_nothing(sws: SyncWorkspace) -> None:
    sws.write(A, 0)

    def add(tx: SyncTransaction) -> None:
        tx.write(A, whole(tx.read_json(A)) + 1)

    def run() -> None:
        for _ in range(5):
            sws.transaction(add, max_attempts=100)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sws.read_json(A) == 20


async def test_the_thread_of_the_loop_is_refused(ws: Workspace) -> None:
    blocking = ws.as_sync()
    with refused(ErrorCode.WRONG_THREAD), blocking.transaction():
        not_reached("began on its own loop")

    def elsewhere() -> None:
        with blocking.transaction() as tx:
            tx.write(A, "from a thread")

    await asyncio.to_thread(elsewhere)
    assert await ws.read_text(A) == "from a thread"
