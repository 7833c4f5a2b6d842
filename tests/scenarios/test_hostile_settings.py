"""Every setting of every constructor with values that nobody expects: it is taken, or refused by a typed error that can be shown."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from crux_workspace import (
    ContentOptions,
    Limits,
    Mount,
    Retention,
    Telemetry,
    ToolOptions,
    Versioning,
    agent,
    local_runtime,
    open_workspace,
    workspace,
    workspace_tool_names,
)
from crux_workspace.errors import InvalidInputError, WorkspaceError
from crux_workspace.http import HttpWorkspace
from crux_workspace.model.options import MOST, seconds, shown
from crux_workspace.server import ServiceLimits, service_app
from crux_workspace.telemetry import path_hash

HUGE = 10**5_000
"""More digits than Python turns into text."""


class Unspeakable:
    """Its repr raises."""

    def __repr__(self) -> str:
        raise RuntimeError


VALUES: list[Any] = [
    *(None, True, 0, 1, -1, HUGE, -HUGE, 1.5, math.nan, math.inf, object(), Unspeakable(), int),
    *("", " ", "x", "x" * 100_000, "\ud800", "a\0b", b"x"),
    *([], [1], [HUGE], ["x"], [Unspeakable()], (-HUGE,), {1}, range(3)),
    *({}, {1: 2}, {HUGE: ["x"]}, {"x": 1}, {"bash": [HUGE]}, {"bash": {"x"}}, {"unknown": ["x"]}),
    *({"readFile": ["\ud800"]}, {"readFile": ["a\0b"]}, {"bash": Unspeakable()}),
]
SETTINGS: list[type[Any]] = [Limits, Retention, Versioning, ContentOptions, ToolOptions]
RULES: list[type[Any]] = [
    *(agent.PermissionPolicy, agent.Approve, agent.Delegation, agent.DelegationRule),
    *(agent.ToolOutput, agent.PathRequest, agent.CommandRequest, agent.ToolRequest),
]
SAMPLES: dict[str, Any] = {
    "action": "allow",
    "operation": "readFile",
    "path": "/workspace/a",
    "command": "ls",
    "name": "x",
    "arguments": {},
}


def _right(kind: type[Any]) -> dict[str, Any]:
    right = {}
    for each in dataclasses.fields(kind):
        if not each.init:
            continue
        if each.default is not dataclasses.MISSING:
            right[each.name] = each.default
        elif each.default_factory is not dataclasses.MISSING:
            right[each.name] = each.default_factory()
        else:
            right[each.name] = SAMPLES[each.name]
    return right


def _options(call: Callable[..., Any], **right: Any) -> dict[str, Any]:
    known = inspect.signature(call).parameters.values()
    return {each.name: right.get(each.name, each.default) for each in known}


def _calls(folder: Path) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    for kind in (*SETTINGS, *RULES, ServiceLimits):
        yield kind.__name__, kind, _right(kind)
    yield "Mount", Mount, _right(Mount) | {"path": "/workspace"}
    served = workspace(id="x")
    files = agent.local_filesystem(folder)
    others: list[tuple[Any, dict[str, Any]]] = [
        (workspace, {"id": "x"}),
        (open_workspace, {"url": "memory://"}),
        (local_runtime, {}),
        (workspace_tool_names, {}),
        (path_hash, {"path": "/a", "key": b"k"}),
        (service_app, {"workspace": served}),
        (agent.agent_tools, {"filesystem": files}),
        (agent.agent_context, {"filesystem": files}),
        (agent.local_filesystem, {"root": folder}),
        (agent.local_shell, {}),
        (agent.PermissionGate, {}),
        (agent.memory_permission_store, {}),
        (agent.file_permission_store, {}),
    ]
    for call, given in others:
        yield call.__name__, call, _options(call, **given)
    http = {"base_url": "http://h", "timeout_ms": 1, "max_attempts": 1}
    yield "HttpWorkspace", HttpWorkspace, http


NAMES = [name for name, _, _ in _calls(Path("/"))]


@pytest.mark.parametrize("name", NAMES)
async def test_a_setting_is_taken_or_refused_in_words(name: str, tmp_path: Path) -> None:
    call, right = next((call, right) for found, call, right in _calls(tmp_path) if found == name)
    call(**right)
    for option in right:
        for value in VALUES:
            try:
                call(**{**right, option: value})
            except WorkspaceError as error:
                _check(error)


def _check(error: WorkspaceError) -> None:
    assert isinstance(error, InvalidInputError)
    assert error.hint
    assert 10 < len(error.message) < 500
    json.dumps(error.to_dict()).encode()
    error.message.encode()


@pytest.mark.parametrize("kind", SETTINGS, ids=lambda kind: kind.__name__)
async def test_a_number_that_is_taken_can_be_sent(kind: type[Any]) -> None:
    """What no store and no wire can hold is refused when the setting is made, not when it is told."""
    for each in dataclasses.fields(kind):
        if "int" not in str(each.type):
            continue
        with pytest.raises(InvalidInputError, match=each.name):
            kind(**{each.name: MOST + 1})
        async with open_workspace("memory://", **{_NAMES[kind]: kind(**{each.name: MOST})}) as ws:
            await ws.write("/workspace/a", b"x")
            await ws.delete("/workspace/a", purge=True)
            await ws.write("/workspace/a", "x")
            await ws.gc(dry_run=False)
            assert await ws.exists("/workspace/a")
            assert json.loads(json.dumps(ws.describe()))


_NAMES = {
    Limits: "limits",
    Retention: "retention",
    Versioning: "versioning",
    ContentOptions: "content",
    ToolOptions: "tools",
}


def test_any_value_can_be_shown() -> None:
    for value in (HUGE, -HUGE, [HUGE], Unspeakable(), [Unspeakable()], "x" * 9_000):
        assert 0 < len(shown(value)) < 100


def test_seconds_are_what_a_clock_can_wait_for() -> None:
    for value in (0, -1, math.nan, math.inf, HUGE, True, None, "1"):
        with pytest.raises(InvalidInputError, match="wait must be a number of seconds"):
            seconds("wait", value)
    seconds("wait", 0.001)


async def test_a_watch_refuses_a_pause_that_no_clock_has() -> None:
    async with open_workspace("memory://") as ws:
        for option in ("poll_interval_ms", "limit"):
            with pytest.raises(InvalidInputError, match=option):
                ws.watch(**cast("Any", {option: HUGE}))


async def test_a_telemetry_that_is_none_is_refused_by_the_service() -> None:
    ws = workspace(id="x")
    with pytest.raises(InvalidInputError, match="telemetry"):
        service_app(ws, telemetry="x")  # type: ignore[arg-type]
    assert service_app(ws, telemetry=Telemetry()) is not None
