"""Conformance kits, doubles, strategies and oracles for users and implementers.

The mixins need pytest, the machines Hypothesis; both come with the extra ``crux-workspace[testing]``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crux_workspace.testing.agent import (
        AgentHarness,
        AgentRun,
        AgentToolCall,
        InterruptExpectation,
        agent_harness,
        expect_interrupt,
        expect_no_interrupt,
        expect_no_tool_errors,
        expect_offloaded,
    )
    from crux_workspace.testing.assets import AssetStoreContract
    from crux_workspace.testing.checks import Hooks
    from crux_workspace.testing.counting import CountingAssetStore, CountingRecordStore
    from crux_workspace.testing.delegating import DelegatingAssetStore, DelegatingRecordStore
    from crux_workspace.testing.doubles import (
        CommitOnlyRecordStore,
        FixedClock,
        LatencyRecordStore,
        SequentialIds,
    )
    from crux_workspace.testing.faults import FaultyAssetStore, FaultyRecordStore
    from crux_workspace.testing.filesystems import FilesystemBackendContract
    from crux_workspace.testing.machines import WorkspaceMachine
    from crux_workspace.testing.memory_source import MemorySource
    from crux_workspace.testing.minimal import MinimalStoreContract
    from crux_workspace.testing.minimal_stores import MemoryMinimalStore, MemorySoleStore
    from crux_workspace.testing.model import ModelWorkspace
    from crux_workspace.testing.permission_stores import PermissionStoreContract
    from crux_workspace.testing.records import RecordStoreContract
    from crux_workspace.testing.report import (
        Report,
        check_asset_store,
        check_minimal_store,
        check_mount_source,
        check_record_store,
    )
    from crux_workspace.testing.sources import MountSourceContract
    from crux_workspace.testing.watch import WatchContract
    from crux_workspace.testing.workspace import WorkspaceContract, refused

__all__ = [
    "AgentHarness",
    "AgentRun",
    "AgentToolCall",
    "AssetStoreContract",
    "CommitOnlyRecordStore",
    "CountingAssetStore",
    "CountingRecordStore",
    "DelegatingAssetStore",
    "DelegatingRecordStore",
    "FaultyAssetStore",
    "FaultyRecordStore",
    "FilesystemBackendContract",
    "FixedClock",
    "Hooks",
    "InterruptExpectation",
    "LatencyRecordStore",
    "MemoryMinimalStore",
    "MemorySoleStore",
    "MemorySource",
    "MinimalStoreContract",
    "ModelWorkspace",
    "MountSourceContract",
    "PermissionStoreContract",
    "RecordStoreContract",
    "Report",
    "SequentialIds",
    "WatchContract",
    "WorkspaceContract",
    "WorkspaceMachine",
    "agent_harness",
    "check_asset_store",
    "check_minimal_store",
    "check_mount_source",
    "check_record_store",
    "expect_interrupt",
    "expect_no_interrupt",
    "expect_no_tool_errors",
    "expect_offloaded",
    "refused",
]

_HOMES = {
    "AgentHarness": "agent",
    "AgentRun": "agent",
    "AgentToolCall": "agent",
    "AssetStoreContract": "assets",
    "CommitOnlyRecordStore": "doubles",
    "CountingAssetStore": "counting",
    "CountingRecordStore": "counting",
    "DelegatingAssetStore": "delegating",
    "DelegatingRecordStore": "delegating",
    "FaultyAssetStore": "faults",
    "FaultyRecordStore": "faults",
    "FilesystemBackendContract": "filesystems",
    "FixedClock": "doubles",
    "Hooks": "checks",
    "InterruptExpectation": "agent",
    "LatencyRecordStore": "doubles",
    "MemoryMinimalStore": "minimal_stores",
    "MemorySoleStore": "minimal_stores",
    "MemorySource": "memory_source",
    "MinimalStoreContract": "minimal",
    "ModelWorkspace": "model",
    "MountSourceContract": "sources",
    "PermissionStoreContract": "permission_stores",
    "RecordStoreContract": "records",
    "Report": "report",
    "SequentialIds": "doubles",
    "WatchContract": "watch",
    "WorkspaceContract": "workspace",
    "WorkspaceMachine": "machines",
    "agent_harness": "agent",
    "check_asset_store": "report",
    "check_minimal_store": "report",
    "check_mount_source": "report",
    "check_record_store": "report",
    "expect_interrupt": "agent",
    "expect_no_interrupt": "agent",
    "expect_no_tool_errors": "agent",
    "expect_offloaded": "agent",
    "refused": "workspace",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        return getattr(import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as exc:
        if exc.name not in {"hypothesis", "pytest", "pytest_asyncio"}:
            raise
        message = f"{__name__}.{name} needs {exc.name}: pip install 'crux-workspace[testing]'"
        raise ImportError(message) from exc
