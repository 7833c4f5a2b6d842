"""Every option of every verb with values that are wrong, or odd: a client refuses what the workspace refuses, in the same words."""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from crux_workspace import Edit, Workspace
from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.http import HttpWorkspace
from crux_workspace.model.options import MOST
from crux_workspace.model.sendable import writable
from crux_workspace.server import service_app
from crux_workspace.storage import memory_storage
from crux_workspace.testing import FixedClock
from tests.support.http_workspaces import numbered_ids
from tests.support.verb_cases import make

A = "/workspace/a.md"
GONE = "\ud800"
"""No UTF-8 has it."""

NUMBERS: list[Any] = [
    *(1.0, 1.5, True, False, "1", [1], None, float("nan"), 1 + 0j),
    *(-1, 0, 1, 99, MOST, MOST + 1, -(10**30), 10**30, 10**5_000),
]
FLAGS: list[Any] = [1, 0, "x", "", "true", None, [], 2.5]
TEXTS: list[Any] = [1, b"x", "", " ", None, ["x"], "x" * 300, "é" * 300, "x" * 5_000, GONE, "a\0b"]
PATHS: list[Any] = [
    *(1, None, b"/workspace/a", "", "a", "/", "/workspace", "/else/x", f"{A}/", Path(A)),
    *("/workspace/../a", "/workspace/%2e%2e/x", "/workspace/{a", "/workspace/[", "/workspace/gone"),
    *(f"/workspace/{GONE}", "/workspace/" + "x/" * 3_000, "/workspace/" + "*" * 5_000),
]
OBJECTS: list[Any] = [object(), {1}, {1: 2}, {"a": {1}}, float("nan"), (1,), GONE, {"a": GONE}]
EDITS: list[Any] = [1, "x", [1], [], iter([Edit("one", "1")])]
EDITS += [
    [Edit("one", "1", *more)]  # type: ignore[arg-type]
    for more in [(1.0,), (True,), (0,), (10**30,), (None, "x"), (1, True)]
]
EDITS += [[Edit("", "b")], [Edit("one", 1)], [Edit(1, "b")]]  # type: ignore[arg-type]

GUARDS = {"if_version": NUMBERS, "idempotency_key": TEXTS}
RELOCATION = {"src": PATHS, "dst": PATHS, "overwrite": FLAGS, **GUARDS}
MOVED = {"src": A, "dst": "/workspace/b"}
AT_A = {"path": A}


@dataclass(frozen=True)
class Verb:
    """A call that is right, and the values that each of its options is given instead."""

    name: str
    right: dict[str, Any]
    options: dict[str, list[Any]]

    def __repr__(self) -> str:
        return self.name


VERBS = [
    Verb(
        "list",
        {},
        {
            "path": PATHS,
            "recursive": FLAGS,
            "glob": FLAGS,
            "limit": NUMBERS,
            "cursor": TEXTS,
            "partial": FLAGS,
        },
    ),
    Verb("walk", {}, {"path": PATHS}),
    Verb(
        "read",
        AT_A,
        {
            "path": PATHS,
            **dict.fromkeys(
                ("version", "offset", "max_inline_bytes", "start_line", "end_line"), NUMBERS
            ),
        },
    ),
    Verb("read_text", AT_A, {"path": PATHS, "version": NUMBERS}),
    Verb("read_bytes", AT_A, {"path": PATHS, "version": NUMBERS}),
    Verb("read_json", AT_A, {"path": PATHS, "version": NUMBERS}),
    Verb(
        "read_many",
        {},
        {"paths": [1, None, "x", [], [1], [A] * 1_001, {A: 1}, *([path] for path in PATHS)]},
    ),
    Verb(
        "stream",
        AT_A,
        {"path": PATHS, **dict.fromkeys(("version", "offset", "length", "chunk_bytes"), NUMBERS)},
    ),
    Verb("exists", AT_A, {"path": PATHS}),
    Verb("is_dir", AT_A, {"path": PATHS}),
    Verb("stat", AT_A, {"path": PATHS, "namespace": TEXTS}),
    Verb(
        "grep",
        {"query": "one"},
        {
            "query": [*TEXTS, "("],
            "path": PATHS,
            "max_results": [*NUMBERS, 20_000],
            "context_lines": [*NUMBERS, 1_000],
            **dict.fromkeys(("ignore_case", "regex", "partial"), FLAGS),
        },
    ),
    Verb(
        "artifacts",
        {},
        {
            "status": [*TEXTS, "other"],
            "kind": TEXTS,
            "path": PATHS,
            "limit": NUMBERS,
            "after": PATHS,
        },
    ),
    Verb("history", AT_A, {"path": PATHS, "limit": NUMBERS, "before": NUMBERS}),
    Verb(
        "diff",
        AT_A,
        {
            "path": PATHS,
            "context_lines": [*NUMBERS, 20_000],
            "from_version": NUMBERS,
            "to_version": NUMBERS,
        },
    ),
    Verb("resolve", {}, {"uri": [*TEXTS, "x" * 9_000]}),
    Verb("log", {}, {"path": PATHS, "limit": NUMBERS, "cursor": TEXTS}),
    Verb("usage", {}, {"namespace": TEXTS}),
    Verb("cursor", {}, {"namespace": TEXTS}),
    Verb("namespaces", {}, {"prefix": TEXTS, "limit": NUMBERS, "cursor": TEXTS}),
    Verb("gc", {}, {"dry_run": [True, 1, "x"]}),
    Verb(
        "write",
        {"path": "/workspace/new", "content": "x"},
        {
            "path": PATHS,
            "content": OBJECTS,
            "mime_type": TEXTS,
            "metadata": [1, "x", *OBJECTS],
            "status": TEXTS,
            "kind": TEXTS,
            "encoding": TEXTS,
            **GUARDS,
        },
    ),
    Verb(
        "edit",
        {**AT_A, "find": "one", "replace": "1"},
        {
            "path": PATHS,
            "find": TEXTS,
            "replace": TEXTS,
            "occurrence": NUMBERS,
            "replace_all": FLAGS,
            "mime_type": TEXTS,
            **GUARDS,
        },
    ),
    Verb("edit", AT_A, {"edits": EDITS}),
    Verb(
        "append",
        {**AT_A, "text": "x"},
        {"path": PATHS, "text": TEXTS, "mime_type": TEXTS, **GUARDS},
    ),
    Verb(
        "update",
        {**AT_A, "fn": str},
        {
            "path": PATHS,
            "fn": [1, None, lambda _: object(), lambda _: {1}],
            "max_attempts": NUMBERS,
            **GUARDS,
        },
    ),
    Verb(
        "set",
        {**AT_A, "kind": "k"},
        {
            "path": PATHS,
            "mime_type": TEXTS,
            "metadata": [1, "x", *OBJECTS],
            "status": TEXTS,
            "kind": TEXTS,
            **GUARDS,
        },
    ),
    Verb("rename", MOVED, RELOCATION),
    Verb("move", MOVED, RELOCATION),
    Verb("copy", MOVED, {**RELOCATION, "to_namespace": TEXTS}),
    Verb("delete", AT_A, {"path": PATHS, "recursive": FLAGS, "purge": FLAGS, **GUARDS}),
    Verb("undo", AT_A, {"path": PATHS, "to_version": NUMBERS, **GUARDS}),
    Verb("redo", AT_A, {"path": PATHS, **GUARDS}),
    Verb("finalize", AT_A, {"path": PATHS, "kind": TEXTS, "version": NUMBERS, **GUARDS}),
    Verb("withdraw", AT_A, {"path": PATHS, **GUARDS}),
    Verb("undo_commit", {"commit": "1-a"}, {"commit": TEXTS, "idempotency_key": TEXTS}),
    Verb("drop_namespace", {}, {"name": TEXTS}),
]

LESS = {
    ("read_many", "paths"): 1_000,
    ("grep", "query"): 4_096,
    ("grep", "context_lines"): 100,
    ("diff", "context_lines"): 10_000,
}
"""What can be asked for at once is less than a local workspace gives: what is above is refused, and the refusal says so."""
OWN_CODES = {("edit", "find", GONE): ErrorCode.INVALID_CONTENT}
"""What no request can carry is refused before it is known whether the file has it."""


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[Workspace, HttpWorkspace]]:
    """Give two equal workspaces, the second behind a client."""
    made = []
    for _ in range(2):
        storage = memory_storage()
        assert storage.assets is not None
        ws = make(storage.records, storage.assets, FixedClock(), ids=numbered_ids())
        here = ws.for_namespace("n")
        await here.write(A, "one\ntwo\n")
        await here.write(A, "one\nthree\n")
        await here.write("/workspace/d/x.json", {"a": 1}, status="draft")
        made.append(ws)
    service = service_app(made[1], write=True)
    client = httpx.AsyncClient(transport=httpx.ASGITransport(service))
    over = HttpWorkspace("http://files.test", namespace="n", max_attempts=1, client=client)
    try:
        yield made[0], over
    finally:
        await over.aclose()
        await client.aclose()
        await service.aclose()


async def told(ws: Any, verb: str, arguments: dict[str, Any]) -> Any:
    """Return the result of a call, or what is told of its refusal; any other error is one."""
    if isinstance(ws, Workspace) and verb not in ("namespaces", "drop_namespace"):
        ws = ws if arguments.get("namespace") is not None else ws.for_namespace("n")
    try:
        work = getattr(ws, verb)(**arguments)
        return [each async for each in work] if hasattr(work, "__aiter__") else await work
    except WorkspaceError as error:
        check_complete(error)
        return type(error), error.code, error.message, error.details, error.hint


def check_complete(error: WorkspaceError) -> None:
    """Check that an error says what failed and what to do, not twice the same, and that it travels."""
    assert error.message
    assert error.hint
    assert error.hint not in error.message
    for back in (pickle.loads(pickle.dumps(error)), copy(error), deepcopy(error)):  # noqa: S301
        assert (type(back), str(back)) == (type(error), str(error))
        assert back.to_dict() == error.to_dict()


def check(verb: str, option: str, value: Any, here: Any, over: Any) -> None:
    """Compare what both told."""
    if here == over:
        return
    size = len(value) if isinstance(value, str | list) else value
    if isinstance(over, tuple) and (verb, option) in LESS and size > LESS[verb, option]:
        assert over[1] == ErrorCode.INVALID_ARGUMENT
        assert over[3] == {"option": option, "limit": LESS[verb, option]}
        return
    if isinstance(value, str) and (code := OWN_CODES.get((verb, option, value))) is not None:
        assert over[1] == code
        return
    if isinstance(value, str) and GONE in value:  # an answer tells it as far as UTF-8 can
        assert list(over) == writable(here)
        return
    pytest.fail(f"{verb}({option}={value!r:.60}): {over!r:.500} instead of {here!r:.500}")


@pytest.mark.parametrize("verb", VERBS, ids=repr)
async def test_a_client_refuses_what_the_workspace_refuses(verb: Verb) -> None:
    for option, values in verb.options.items():
        waiting = list(values)
        while waiting:
            async with pair() as (here, over):
                while waiting:
                    value = waiting.pop()
                    arguments = {**verb.right, option: value}
                    expected = await told(here, verb.name, arguments)
                    found = await told(over, verb.name, arguments)
                    check(verb.name, option, value, expected, found)
                    if not isinstance(expected, tuple):
                        break  # it may have changed something


@pytest.mark.parametrize("number", [10**15, 10**18, MOST])
async def test_a_streamed_write_may_expect_every_version_that_there_can_be(number: int) -> None:
    async with pair() as (here, over):
        entry = await here.for_namespace("n").stat(A)
        assert entry is not None
        for expected in (number, replace(entry, version=number)):
            local, remote = [
                await told(
                    ws, "write", {"path": A, "content": BytesIO(b"x"), "if_version": expected}
                )
                for ws in (here, over)
            ]
            assert remote == local
            assert local[1] == ErrorCode.VERSION_CONFLICT
