"""What a workspace says of itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from crux_workspace import (
    ContentOptions,
    Limits,
    Mount,
    Retention,
    ToolOptions,
    Versioning,
    open_workspace,
    open_workspace_sync,
    retriever_workspace_mount_source,
    workspace,
)
from crux_workspace.storage import StoreCapabilities, storage
from crux_workspace.storage.memory import MemoryRecordStore
from crux_workspace.testing import CountingRecordStore


def test_a_workspace_describes_everything_that_was_set() -> None:
    papers = retriever_workspace_mount_source(lambda query: [query])
    ws = workspace(
        id="research",
        namespace="thread:secret",
        storage=storage(records=MemoryRecordStore()),
        mounts=[Mount("/outputs", description="Reports"), Mount("/papers", "read", source=papers)],
        content=ContentOptions(inline_text_below_bytes=10),
        limits=Limits(max_file_bytes=1, max_namespace_bytes=2, max_files=3, max_history_bytes=4),
        retention=Retention(ttl_ms=5, log_ms=6, asset_grace_ms=7),
        versioning=Versioning(max_versions=8),
        tools=ToolOptions(prefix="lab", undo=True),
    )
    described = ws.describe()
    assert described == {
        "id": "research",
        "namespace": "fixed",
        "mounts": [
            {"path": "/outputs", "access": "readwrite", "description": "Reports", "source": None},
            {"path": "/papers", "access": "read", "description": None, "source": "retriever"},
        ],
        "tools": [
            "listLabWorkspace",
            "readLabWorkspaceFile",
            "writeLabWorkspaceFile",
            "editLabWorkspaceFile",
            "renameLabWorkspaceFile",
            "grepLabWorkspace",
            "undoLabWorkspaceFile",
        ],
        "records": {
            "store": "MemoryRecordStore",
            "capabilities": asdict(MemoryRecordStore().capabilities),
        },
        "assets": {"store": None, "inline_text_below_bytes": 10, "accepts_binary": False},
        "retention": {"ttl_ms": 5, "log_ms": 6, "asset_grace_ms": 7},
        "limits": {
            "max_file_bytes": 1,
            "max_namespace_bytes": 2,
            "max_files": 3,
            "max_history_bytes": 4,
        },
        "versioning": {"max_versions": 8},
    }
    assert json.loads(json.dumps(described)) == described
    assert "secret" not in json.dumps(described)


def test_how_a_namespace_is_found_is_told_and_never_which() -> None:
    assert workspace(id="w").describe()["namespace"] == "none"
    assert workspace(id="w", namespace="n").describe()["namespace"] == "fixed"
    computed = workspace(id="w", namespace=lambda request: "n")
    assert computed.describe()["namespace"] == "computed"
    assert computed.for_namespace("x").acting_as("y").describe() == computed.describe()


async def test_a_description_costs_no_call_of_the_store_and_outlives_the_workspace() -> None:
    records = CountingRecordStore(MemoryRecordStore())
    ws = workspace(id="w", namespace="n", records=records)
    before = ws.describe()
    assert not records.counts
    await ws.aclose()
    assert ws.describe() == before


async def test_no_part_of_a_url_is_told(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/secret.db"
    async with open_workspace(url) as ws:
        told = ws.describe()
    assert "secret" not in json.dumps(told)
    assert told["assets"] == {
        "store": "LocalFilesAssetStore",
        "inline_text_below_bytes": 64_000,
        "accepts_binary": True,
    }
    capabilities = told["records"]["capabilities"]  # type: ignore[index]
    assert capabilities.keys() == StoreCapabilities.__dataclass_fields__.keys()


def test_the_blocking_form_describes_the_same() -> None:
    with open_workspace_sync("memory://", id="w") as sws:
        assert sws.describe()["id"] == "w"
        assert sws.describe().keys() == workspace(id="w").describe().keys()
