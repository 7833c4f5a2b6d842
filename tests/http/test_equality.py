"""A client gives what the workspace gives: every way of changing files, and random walks, on both, compared in all they return."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from crux_workspace import Edit, Workspace
from crux_workspace.errors import WorkspaceError
from crux_workspace.http import HttpWorkspace
from crux_workspace.storage import Storage, memory_storage
from crux_workspace.testing import FixedClock
from tests.support.http_workspaces import Switchboard, numbered_ids, switchboard
from tests.support.transaction_cases import TRANSACTIONS
from tests.support.verb_cases import CASES, OTHER, Case, make, seed

NAMESPACE = "n"
STEPS = int(os.environ.get("CRUX_HTTP_WALK_STEPS", "100"))
WALKS = int(os.environ.get("CRUX_HTTP_WALKS", "2"))
"""Calls of a random walk, and walks; more by the environment."""


@dataclass
class Pair:
    """Two equal workspaces, one of them behind a client."""

    here: Workspace
    behind: Workspace
    over: HttpWorkspace
    clocks: tuple[FixedClock, FixedClock]

    def wait(self, milliseconds: int) -> None:
        for clock in self.clocks:
            clock.advance(milliseconds)


async def pair_on(board: Switchboard, case: Case | None = None) -> Pair:
    """Make two equal workspaces; what comes before a case's call is done without its settings."""
    clocks = FixedClock(), FixedClock()
    made = []
    for clock in clocks:
        storage: Storage = memory_storage()
        assert storage.assets is not None
        stores, ids = (storage.records, storage.assets, clock), numbered_ids()
        options: dict[str, Any] = {}
        if case is not None:
            content = {k: v for k, v in case.options.items() if k in ("content", "retention")}
            before = make(*stores, ids=ids, **content)
            await seed(before, NAMESPACE)
            if case.before is not None:
                await case.before(before, NAMESPACE)
            options = case.options
            clock.advance(case.wait_ms)
        made.append(make(*stores, ids=ids, **options))
    return Pair(made[0], made[1], board.client(made[1]), clocks)


@pytest.fixture
async def board() -> AsyncIterator[Switchboard]:
    async with switchboard() as opened:
        yield opened


async def outcome(work: Awaitable[Any]) -> Any:
    """Return a result, or what is told of a refusal."""
    try:
        return await work
    except WorkspaceError as error:
        return type(error), error.code, error.message, error.details, error.hint, error.retryable


async def everything(ws: Any, namespace: str) -> dict[str, Any]:
    """Return all that can be seen of a namespace."""
    to = ws.for_namespace(namespace)
    files = [file async for file in to.walk("/")]
    log = await to.log(limit=1_000)
    paths = sorted({change.path for entry in log for change in entry.changes} - {"<purged>"})
    return {
        "list": await to.list("/", recursive=True),
        "walk": files,
        "log": log,
        "usage": await to.usage(),
        "cursor": await to.cursor(),
        "artifacts": await to.artifacts(),
        "histories": {path: await to.history(path) for path in paths},
        "contents": await to.read_many([file.path for file in files]),
        "bytes": {file.path: await to.read_bytes(file.path) for file in files},
        "grep": await to.grep("e", max_results=1_000, context_lines=1),
        "middle": await to.at(len(log) // 2).list("/", recursive=True),
    }


ALL = {case.name: case for case in (*CASES, *TRANSACTIONS)}


@pytest.mark.parametrize("case", ALL.values(), ids=repr)
async def test_every_change_gives_the_same(board: Switchboard, case: Case) -> None:
    pair = await pair_on(board, case)
    expected = await outcome(case.call(pair.here, NAMESPACE))
    found = await outcome(case.call(pair.over, NAMESPACE))  # type: ignore[arg-type]
    assert found == expected, case.name
    for namespace in (NAMESPACE, OTHER + NAMESPACE):
        seen = await everything(pair.behind, namespace)
        assert seen == await everything(pair.here, namespace), case.name


@pytest.mark.parametrize("name", ["undo to a difference", "a transaction over a tree", "purge"])
async def test_everything_that_can_be_seen_is_the_same(board: Switchboard, name: str) -> None:
    pair = await pair_on(board, ALL[name])
    await ALL[name].call(pair.behind, NAMESPACE)
    for namespace in (NAMESPACE, OTHER + NAMESPACE):
        seen = await everything(pair.over, namespace)
        assert seen == await everything(pair.behind, namespace)


# -- random walks

Call = Callable[[Any], Awaitable[Any]]
PATHS = ["/workspace/a", "/workspace/b.md", "/workspace/d/x.json", "/workspace/d/y", "/outputs/r"]
ODD_PATHS = [
    "/workspace",
    "/",
    "/else/a",
    "a",
    "/workspace/../a",
    "/workspace/d/",
    "/workspace/%2e%2e",
    "/workspace/é\u0301 b%",
]
CONTENTS: list[Any] = [
    "", "one\ntwo\n", "\x00\r\n\u2028", "é" * 150, {"k": [1, 1.0, None, 2**70, -0.0]}, [], None, False, b"", b"\xff\x00" * 150,
]  # fmt: skip
NO_CONTENTS: list[Any] = ["\ud800", {1: 2}, float("nan"), {"t": (1,)}]


def random_call(pick: random.Random, known: list[Any]) -> tuple[str, Call]:
    """Return one call with its description; most of them make sense, none is wrong in two ways."""
    flaw = pick.choice([None] * 12 + ["path", "content", "version", "key", "metadata", "status"])
    path = pick.choice(ODD_PATHS if flaw == "path" else PATHS)
    other = pick.choice(PATHS)
    content = pick.choice(NO_CONTENTS if flaw == "content" else CONTENTS)
    if_version = -1 if flaw == "version" else pick.choice([None, None, None, 0, 1, 2, *known[-2:]])
    key = "" if flaw == "key" else pick.choice([None, None, None, "k1", "k2"])
    number = pick.choice([None, 1, 2, 3, 99])
    guards: dict[str, Any] = {"if_version": if_version, "idempotency_key": key}
    metadata = {"bad": {1}} if flaw == "metadata" else pick.choice([None, {}, {"n": 1.5}])
    status = "other" if flaw == "status" else pick.choice([None, None, "draft", "final"])
    start, end = pick.choice([(None, None), (1, 1), (2, 9), (0, 1), (99, None)])
    edits = pick.choice([[Edit("o", "0")], [Edit("one", "two"), Edit("", "x")], []])
    calls: dict[str, Call] = {
        "write": lambda ws: ws.write(path, content, metadata=metadata, status=status, **guards),
        "write utf-8": lambda ws: ws.write(path, content, encoding="utf-8", mime_type="text/x", **guards),
        "write latin": lambda ws: ws.write(path, content, encoding="latin-1", **guards),
        "append": lambda ws: ws.append(path, content, **guards),
        "edit": lambda ws: ws.edit(path, "o", "0", occurrence=number, **guards),
        "edits": lambda ws: ws.edit(path, edits=edits, **guards),
        "update": lambda ws: ws.update(path, lambda value: [str(value)], **guards),
        "set": lambda ws: ws.set(path, metadata=metadata, status=status, kind=pick.choice(["k"]), **guards),
        "rename": lambda ws: ws.rename(path, other, **guards),
        "move over": lambda ws: ws.move(path, other, overwrite=True, **guards),
        "move a tree": lambda ws: ws.move("/workspace/d", "/outputs/d", **guards),
        "copy": lambda ws: ws.copy(path, other, overwrite=True, **guards),
        "copy away": lambda ws: ws.copy(path, other, to_namespace="m", idempotency_key=key),
        "delete": lambda ws: ws.delete(path, **guards),
        "delete all": lambda ws: ws.delete(path, recursive=True, purge=number == 1),
        "undo": lambda ws: ws.undo(path, to_version=number, **guards),
        "redo": lambda ws: ws.redo(path, **guards),
        "finalize": lambda ws: ws.finalize(path, version=number, **guards),
        "withdraw": lambda ws: ws.withdraw(path, **guards),
        "list": lambda ws: ws.list(path, recursive=number == 1, limit=number),
        "glob": lambda ws: ws.list("/workspace/**/*.{md,json}"),
        "read": lambda ws: ws.read(path, version=number, start_line=start, end_line=end),
        "read on": lambda ws: ws.read(path, offset=number or 0, max_inline_bytes=number),
        "read text": lambda ws: ws.read_text(path, version=number),
        "read json": lambda ws: ws.read_json(path),
        "read bytes": lambda ws: ws.read_bytes(path, version=number),
        "stream": lambda ws: _streamed(ws, path, number),
        "stat": lambda ws: ws.stat(path),
        "exists": lambda ws: ws.exists(path),
        "is dir": lambda ws: ws.is_dir(path),
        "grep": lambda ws: ws.grep(pick.choice(["o"]), path=path, context_lines=1),
        "regex": lambda ws: ws.grep("o(", regex=True),
        "history": lambda ws: ws.history(path, limit=number),
        "diff": lambda ws: ws.diff(path, from_version=number),
        "artifacts": lambda ws: ws.artifacts(status=status),
        "log": lambda ws: ws.log(path=path, limit=5),
        "undo commit": lambda ws: _undo_commit(ws, number or 0),
        "at": lambda ws: ws.at(number or 0).list("/", recursive=True),
        "at a time": lambda ws: ws.at(datetime.fromtimestamp(10_000 + (number or 0), UTC)).stat(path),
        "usage": lambda ws: ws.usage(),
        "gc": lambda ws: ws.gc(dry_run=False),
        "cursor": lambda ws: ws.cursor(),
        "transaction": lambda ws: _transaction(ws, path, other, content, number),
    }  # fmt: skip
    name = pick.choice(list(calls))
    return f"{name} {path} {other} {content!r} {guards} {number}", calls[name]


async def _streamed(ws: Any, path: str, number: int | None) -> bytes:
    start = number or 0
    return b"".join([piece async for piece in ws.stream(path, offset=start, length=number)])


async def _undo_commit(ws: Any, number: int) -> Any:
    log = await ws.log(limit=4)
    return await ws.undo_commit(log[number % len(log)]) if log else None


async def _transaction(ws: Any, path: str, other: str, content: Any, number: int | None) -> Any:
    results: list[Any] = []
    async with ws.transaction() as tx:
        results.append(await tx.stat(other))
        results.append(await outcome(tx.write(path, content)))
        results.append(await tx.list("/", recursive=True))
        results.append(await outcome(tx.copy(path, other, overwrite=True)))
        results.append(await outcome(tx.read(other)))
        results.append(await outcome(tx.update(other, lambda value: [value])))
        results.append(await outcome(tx.delete(path, recursive=True)))
        results.append(await outcome(tx.finalize(other)))
        if number == 1:
            await tx.delete(other, purge=True)
    return results, tx.committed


OWN_WORDS = {"INVALID_ARGUMENT", "INVALID_CONTENT"}
"""Codes of what the client or the service refuses itself, in words of its own."""


def comparable(told: Any) -> Any:
    """Of arguments that are refused only class and code have to be the same."""
    if isinstance(told, tuple) and len(told) == 6 and told[1] in OWN_WORDS:
        return told[:2]
    if isinstance(told, tuple | list):
        return [comparable(each) for each in told]
    return told


@pytest.mark.parametrize("seed_number", range(1, WALKS + 1))
async def test_random_walks_give_the_same(board: Switchboard, seed_number: int) -> None:
    pair = await pair_on(board)
    known: tuple[list[Any], list[Any]] = ([], [])
    for step in range(STEPS):
        told = []
        views = pair.here.for_namespace("n"), pair.over.for_namespace("n")
        for ws, files in zip(views, known, strict=True):
            pick = random.Random(f"{seed_number}:{step}")
            name, call = random_call(pick, files)
            told.append((name, await outcome(call(ws))))
            if getattr(told[-1][1], "kind", None) == "file":
                files.append(told[-1][1])
        assert comparable(told[1][1]) == comparable(told[0][1]), f"step {step}: {told[0][0]}"
        pair.wait(7)
    assert await everything(pair.over, "n") == await everything(pair.here, "n")
