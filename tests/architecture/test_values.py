"""What users are given: frozen values that turn into plain data and whose repr tells no secrets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import FrozenInstanceError, fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

import crux_workspace
from crux_workspace import (
    Edit,
    WatchError,
    Workspace,
    open_workspace,
    open_workspace_sync,
    workspace,
)
from crux_workspace.errors import WatchGapError, WorkspaceError
from storage_adapters import open_storage

SECRET = "swordfish-47"  # noqa: S105 - what must not show
VALUES = [
    value
    for name in crux_workspace.__all__
    if isinstance(value := getattr(crux_workspace, name), type) and is_dataclass(value)
]
SETTINGS = {
    "ContentOptions", "Edit", "Limits", "Mount", "MountGrepOptions", "MountListOptions", "MountPathOptions", "MountReadOptions",
    "MountWriteOptions", "NamespaceRequest", "Retention", "RetrieverHit", "RetrieverQuery", "Telemetry",
    "Tool", "ToolOptions", "Versioning", "WorkspaceToolNames",
}  # fmt: skip
"""What users give rather than get: no `to_dict`."""


@pytest.fixture
async def results() -> AsyncIterator[dict[str, Any]]:
    """One of each result, made from content that must not show."""
    async with open_workspace("memory://") as ws:
        found = await _results(ws)
        yield found


async def _results(ws: Workspace) -> dict[str, Any]:
    path = "/workspace/a.md"
    await ws.write(path, f"before\n{SECRET}\n", metadata={"password": SECRET})
    file = await ws.write(path, f"{SECRET}\nafter {SECRET}\n", metadata={"password": SECRET})
    await ws.write("/workspace/a.json", {"password": SECRET})
    await ws.write("/workspace/a.bin", SECRET.encode())
    artifact = await ws.finalize(path, kind="report")
    diff = await ws.diff(path)
    grep = await ws.grep(SECRET, context_lines=1)
    log = await ws.log()
    async with ws.watch(start="oldest") as watched:
        event = await anext(watched)
    async with ws.transaction() as tx:
        await tx.write("/workspace/b.md", SECRET)
    return {
        "Artifact": artifact,
        "BinaryContent": await ws.read("/workspace/a.bin"),
        "Change": log[0].changes[0],
        "CommitEntry": log[0],
        "DiffHunk": diff.hunks[0],
        "DiffLine": diff.hunks[0].lines[0],
        "FileDiff": diff,
        "GcReport": await ws.gc(),
        "GrepMatch": grep.matches[0],
        "GrepResult": grep,
        "JsonContent": await ws.read("/workspace/a.json"),
        "ListResult": await ws.list("/workspace"),
        "NamespacePage": await ws.namespaces(),
        "Replayed": tx.committed,
        "TextContent": await ws.read(path),
        "ToolResult": await ws.as_tools()["readWorkspaceFile"].call({"path": path}),
        "Usage": await ws.usage(),
        "VersionEntry": (await ws.history(path))[0],
        "WatchError": WatchError(WatchGapError(f"lost {SECRET}"), 1, 0),
        "WorkspaceChangeEvent": event,
        "WorkspaceDirectory": (await ws.list("/")).entries[0],
        "WorkspaceFile": file,
    }


async def test_every_result_is_among_them(results: dict[str, Any]) -> None:
    assert set(results) == {kind.__name__ for kind in VALUES} - SETTINGS
    for name, value in results.items():
        assert type(value).__name__ == name


async def test_reprs_show_no_content(results: dict[str, Any]) -> None:
    for name, value in results.items():
        assert SECRET not in repr(value), name
        assert SECRET not in str(value), name
    assert SECRET not in repr(Edit(SECRET, SECRET))


@pytest.mark.parametrize("name", sorted({kind.__name__ for kind in VALUES} - SETTINGS))
async def test_a_result_turns_into_plain_data(results: dict[str, Any], name: str) -> None:
    plain = results[name].to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert {field.name for field in fields(results[name])} <= set(plain)


async def test_results_cannot_be_changed(results: dict[str, Any]) -> None:
    for value in results.values():
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(value, fields(value)[0].name, None)


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_values_are_frozen(kind: type) -> None:
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


async def test_the_errors_of_edits_show_no_content() -> None:
    ws = workspace(id="w", namespace="n")
    await ws.write("/workspace/a.md", f"{SECRET}\n")
    with pytest.raises(WorkspaceError) as caught:
        await ws.edit("/workspace/a.md", "not there", "x")
    assert SECRET not in json.dumps(caught.value.to_dict()["details"])


CREDENTIALS = f"other://user:{SECRET}@db.example/work?token={SECRET}"


def test_openings_show_no_credentials() -> None:
    assert SECRET not in repr(open_workspace(CREDENTIALS))
    assert SECRET not in repr(open_storage(CREDENTIALS, CREDENTIALS))


async def test_a_refused_url_shows_no_credentials() -> None:
    with pytest.raises(WorkspaceError) as caught:
        await open_workspace(CREDENTIALS)
    assert SECRET not in json.dumps(caught.value.to_dict())
    assert SECRET not in str(caught.value)


def test_workspaces_show_neither_content_nor_credentials() -> None:
    with open_workspace_sync("memory://") as sws:
        sws.write("/workspace/a.md", SECRET)
        view = sws.at(datetime.now(UTC))
        assert SECRET not in repr(sws) + repr(view) + repr(sws.for_namespace("x"))
