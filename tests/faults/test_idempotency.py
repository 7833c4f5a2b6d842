"""A key makes a call happen once, whatever is lost, and whoever repeats it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import ErrorCode, InvalidInputError, PathNotFoundError, StorageError
from tests.support.dumps import Names, plain
from tests.support.slow_stores import Gaps, TurningRecordStore
from tests.support.stages import Stage
from tests.support.verb_cases import OTHER, make

DAY_MS = 86_400_000
A = "/workspace/a.md"
Verb = Callable[[Workspace, str], Awaitable[Any]]

VERBS: dict[str, Verb] = {
    "write": lambda ws, k: ws.write(A, "new", idempotency_key=k),
    "write an asset": lambda ws, k: ws.write("/workspace/n", b"12", idempotency_key=k),
    "edit": lambda ws, k: ws.edit(A, "one", "uno", idempotency_key=k),
    "append": lambda ws, k: ws.append(A, "more", idempotency_key=k),
    "append to large text": lambda ws, k: ws.append("/workspace/large.txt", "z", idempotency_key=k),
    "update": lambda ws, k: ws.update(A, lambda v: v + "!", idempotency_key=k),
    "set": lambda ws, k: ws.set(A, metadata={"k": 1}, idempotency_key=k),
    "rename": lambda ws, k: ws.rename(A, "/outputs/r.md", idempotency_key=k),
    "rename a directory": lambda ws, k: ws.rename("/workspace/d", "/outputs/d", idempotency_key=k),
    "move": lambda ws, k: ws.move(A, "/outputs/r.md", idempotency_key=k),
    "copy": lambda ws, k: ws.copy(A, "/outputs/c.md", idempotency_key=k),
    "copy to a namespace": lambda ws, k: ws.copy(
        A, "/workspace/c.md", to_namespace=OTHER + str(ws._runner.bound), idempotency_key=k
    ),
    "delete": lambda ws, k: ws.delete(A, idempotency_key=k),
    "purge": lambda ws, k: ws.delete(A, purge=True, idempotency_key=k),
    "undo": lambda ws, k: ws.undo(A, idempotency_key=k),
    "redo": lambda ws, k: ws.redo("/workspace/u.md", idempotency_key=k),
    "finalize": lambda ws, k: ws.finalize(A, idempotency_key=k),
    "withdraw": lambda ws, k: ws.withdraw("/outputs/pub.bin", idempotency_key=k),
}


async def _undo_first(ws: Workspace, key: str) -> Any:
    log = await ws.log(limit=1_000)
    made = next(e for e in reversed(log) if any(c.path == "/workspace/d/x.txt" for c in e.changes))
    return await ws.undo_commit(made, idempotency_key=key)


VERBS["undo_commit"] = _undo_first


@pytest.mark.parametrize("verb", VERBS)
async def test_a_key_gives_the_first_result_whatever_happened_to_the_file_since(
    stage: Stage, verb: str
) -> None:
    trial = await stage.trial()
    ws = trial.workspace().for_namespace(trial.namespace)
    other = trial.workspace().for_namespace(trial.namespace)
    first = plain(await VERBS[verb](ws, "key"), Names())
    for path in ("/workspace/a.md", "/workspace/n", "/workspace/u.md", "/outputs/r.md"):
        if await ws.stat(path) is not None:
            await ws.rename(path, path + ".elsewhere")
    await ws.delete("/outputs", recursive=True)
    newest = await ws.log(limit=1)
    assert plain(await VERBS[verb](other, "key"), Names()) == first
    assert await ws.log(limit=1) == newest
    await trial.check()


@pytest.mark.parametrize("verb", VERBS)
async def test_a_repeated_call_after_a_lost_answer_commits_once(stage: Stage, verb: str) -> None:
    clean = await stage.trial()
    await VERBS[verb](clean.workspace().for_namespace(clean.namespace), "key")
    commits = len(await clean.workspace().log(limit=1_000, namespace=clean.namespace))
    ws, double = clean.faulty({})
    calls = 0
    for number in range(1, 40):
        trial = await stage.trial()
        ws, double = trial.faulty({}, fail_on_call=number, when="after", and_later=True)
        try:
            await VERBS[verb](ws.for_namespace(trial.namespace), "key")
        except StorageError:
            calls += 1
        if not double.failed:
            break
        again = trial.workspace().for_namespace(trial.namespace)
        await VERBS[verb](again, "key")
        assert len(await again.log(limit=1_000)) == commits
        await trial.check()
    assert calls


async def test_a_key_of_another_request_is_refused(stage: Stage) -> None:
    trial = await stage.trial()
    ws = trial.workspace().for_namespace(trial.namespace)
    await ws.write(A, "new", idempotency_key="key")
    others: list[Verb] = [
        lambda ws, k: ws.write(A, "newer", idempotency_key=k),
        lambda ws, k: ws.write(A, "new", metadata={}, idempotency_key=k),
        lambda ws, k: ws.write("/workspace/b.md", "new", idempotency_key=k),
        lambda ws, k: ws.append(A, "new", idempotency_key=k),
        lambda ws, k: ws.delete(A, idempotency_key=k),
        lambda ws, k: ws.update(A, lambda v: v + "!", idempotency_key=k),
    ]
    before = await trial.dump()
    for call in others:
        with pytest.raises(InvalidInputError) as caught:
            await call(ws, "key")
        assert caught.value.code == ErrorCode.INVALID_ARGUMENT
        assert "key" not in caught.value.details.values()
    await ws.write(A, "new", if_version=77, idempotency_key="key")
    assert await trial.dump() == before


async def test_copies_from_two_namespaces_are_two_requests(stage: Stage) -> None:
    trial = await stage.trial()
    ws = trial.workspace()
    await ws.write("/workspace/o.bin", b"other", namespace=trial.namespace)
    source = OTHER + trial.namespace
    await ws.copy(
        "/workspace/o.bin", "/workspace/c", namespace=source, to_namespace="t", idempotency_key="k"
    )
    with pytest.raises(InvalidInputError):
        await ws.copy(
            "/workspace/o.bin",
            "/workspace/c",
            namespace=trial.namespace,
            to_namespace="t",
            idempotency_key="k",
        )


async def test_a_key_is_free_again_after_a_day(stage: Stage) -> None:
    trial = await stage.trial()
    ws = trial.workspace().for_namespace(trial.namespace)
    first = await ws.append(A, "x", idempotency_key="key")
    trial.clock.advance(DAY_MS - 1)
    assert await ws.append(A, "x", idempotency_key="key") == first
    trial.clock.advance(1)
    again = await ws.append(A, "y", idempotency_key="key")
    assert again.version == first.version + 1
    assert await ws.append(A, "y", idempotency_key="key") == again


async def test_a_key_used_again_while_gc_forgets_it_is_kept(stage: Stage) -> None:
    trial = await stage.trial()
    ws = trial.workspace().for_namespace(trial.namespace)
    await ws.append(A, "x", idempotency_key="key")
    trial.clock.advance(DAY_MS + 1)
    results: list[Any] = []

    async def use_it() -> None:
        results.append(await ws.append(A, "y", idempotency_key="key"))

    for gap in range(1, 60):
        trial = await stage.trial()
        ws = trial.workspace().for_namespace(trial.namespace)
        await ws.append(A, "x", idempotency_key="key")
        trial.clock.advance(DAY_MS + 1)
        gaps = Gaps(gap, use_it)
        store = TurningRecordStore(stage.bare, gaps)
        await make(store, trial.assets, trial.clock).gc(dry_run=False, namespace=trial.namespace)
        if gaps.count < gap:
            break
        assert await ws.append(A, "y", idempotency_key="key") == results[-1], f"gap {gap}"
    assert len(results) > 5


async def test_two_calls_with_one_key_at_once_commit_once(stage: Stage) -> None:
    trial = await stage.trial()
    handles = [trial.workspace().for_namespace(trial.namespace) for _ in range(2)]
    calls = [ws.append(A, "x", idempotency_key="key") for ws in handles for _ in range(4)]
    files = await asyncio.gather(*calls)
    assert all(file == files[0] for file in files)
    assert await handles[0].read_text(A) == "one\nthree\nx"


async def test_a_call_that_commits_nothing_remembers_no_key(stage: Stage) -> None:
    trial = await stage.trial()
    ws = trial.workspace().for_namespace(trial.namespace)
    with pytest.raises(PathNotFoundError):
        await ws.edit("/workspace/later.md", "a", "b", idempotency_key="key")
    await ws.withdraw(A, idempotency_key="key")
    await ws.write("/workspace/later.md", "a", idempotency_key="key")
