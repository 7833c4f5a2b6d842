"""Conformance kits, doubles, strategies and oracles for users and implementers.

Only the two mixins need pytest; it comes with the extra ``crux-workspace[testing]``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from crux_workspace.testing.records import RecordStoreContract
    from crux_workspace.testing.report import Report, check_asset_store, check_record_store

__all__ = [
    "AssetStoreContract",
    "CommitOnlyRecordStore",
    "CountingAssetStore",
    "CountingRecordStore",
    "DelegatingAssetStore",
    "DelegatingRecordStore",
    "FaultyAssetStore",
    "FaultyRecordStore",
    "FixedClock",
    "Hooks",
    "LatencyRecordStore",
    "RecordStoreContract",
    "Report",
    "SequentialIds",
    "check_asset_store",
    "check_record_store",
]

_HOMES = {
    "AssetStoreContract": "assets",
    "CommitOnlyRecordStore": "doubles",
    "CountingAssetStore": "counting",
    "CountingRecordStore": "counting",
    "DelegatingAssetStore": "delegating",
    "DelegatingRecordStore": "delegating",
    "FaultyAssetStore": "faults",
    "FaultyRecordStore": "faults",
    "FixedClock": "doubles",
    "Hooks": "checks",
    "LatencyRecordStore": "doubles",
    "RecordStoreContract": "records",
    "Report": "report",
    "SequentialIds": "doubles",
    "check_asset_store": "report",
    "check_record_store": "report",
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
