"""idempotency_key: a repeated call is done once."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import ErrorCode
from crux_workspace.testing.workspace import refused

A, B = "/workspace/a", "/workspace/b"
DAY = 24 * 3_600_000


async def test_a_known_key_returns_the_first_result(ws: Workspace) -> None:
    first = await ws.write(A, "one", idempotency_key="k")
    await ws.write(A, "two")
    assert await ws.write(A, "one", idempotency_key="k") == first
    assert await ws.read_text(A) == "two"
    assert len(await ws.log()) == 2


@pytest.mark.parametrize(
    ("path", "content", "options"),
    [
        (B, "one", {}),
        (A, "other", {}),
        (A, b"one", {}),
        (A, "one", {"kind": "k"}),
        (A, "one", {"metadata": {"m": 1}}),
    ],
)
async def test_the_same_key_for_another_request_is_refused(
    ws: Workspace, path: str, content: Any, options: dict[str, Any]
) -> None:
    await ws.write(A, "one", idempotency_key="k")
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.write(path, content, idempotency_key="k", **options)
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.append(A, "one", idempotency_key="k")
    assert len(await ws.log()) == 1


async def test_if_version_is_not_compared(ws: Workspace) -> None:
    first = await ws.write(A, "one", idempotency_key="k", if_version=0)
    assert await ws.write(A, "one", idempotency_key="k", if_version=0) == first
    assert await ws.write(A, "one", idempotency_key="k") == first


async def test_a_key_belongs_to_its_namespace(ws: Workspace) -> None:
    await ws.write(A, "one", idempotency_key="k")
    await ws.write(A, "two", idempotency_key="k", namespace="other")
    assert await ws.read_text(A, namespace="other") == "two"


async def test_a_key_is_kept_for_a_day(ws: Workspace, clock: Any) -> None:
    await ws.append(A, "x", idempotency_key="k")
    clock.advance(DAY - 1)
    await ws.gc(dry_run=False)
    await ws.append(A, "x", idempotency_key="k")
    assert await ws.read_text(A) == "x"
    clock.advance(2)
    await ws.gc(dry_run=False)
    await ws.append(A, "x", idempotency_key="k")
    assert await ws.read_text(A) == "xx"


async def test_a_call_that_commits_nothing_remembers_no_key(ws: Workspace) -> None:
    await ws.delete(A, idempotency_key="k")
    await ws.write(A, "one", idempotency_key="k")
    with refused(ErrorCode.EDIT_NOT_FOUND):
        await ws.edit(A, "absent", "x", idempotency_key="k2")
    await ws.append(A, "!", idempotency_key="k2")


async def test_every_mutating_verb_takes_a_key(ws: Workspace) -> None:
    await ws.write(A, "a b")
    await ws.write(A, "a c")
    calls: list[Any] = [
        lambda key: ws.edit(A, "a", "x", idempotency_key=key),
        lambda key: ws.append(A, "!", idempotency_key=key),
        lambda key: ws.set(A, metadata={"m": 1}, idempotency_key=key),
        lambda key: ws.undo(A, idempotency_key=key),
        lambda key: ws.redo(A, idempotency_key=key),
        lambda key: ws.finalize(A, idempotency_key=key),
        lambda key: ws.withdraw(A, idempotency_key=key),
        lambda key: ws.copy(A, B, idempotency_key=key),
        lambda key: ws.rename(B, "/workspace/c", idempotency_key=key),
        lambda key: ws.move("/workspace/c", B, idempotency_key=key),
        lambda key: ws.delete(B, idempotency_key=key),
    ]
    for number, call in enumerate(calls):
        first = await call(f"key {number}")
        before = len(await ws.log())
        assert await call(f"key {number}") == first
        assert len(await ws.log()) == before, number


async def test_undo_commit_takes_a_key(ws: Workspace) -> None:
    await ws.write(A, "one")
    commit = (await ws.log())[0].commit
    first = await ws.undo_commit(commit, idempotency_key="k")
    assert await ws.undo_commit(commit, idempotency_key="k") == first


@pytest.mark.parametrize("key", [""])
async def test_a_blank_key_is_refused(ws: Workspace, key: str) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.write(A, "", idempotency_key=key)
