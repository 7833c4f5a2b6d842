"""The kits reject each store of the gallery, by the check that is meant for it."""

from __future__ import annotations

import pytest

from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.memory import MemoryAssetStore, MemoryRecordStore
from crux_workspace.storage.minimal import MinimalStore
from crux_workspace.storage.records import RecordStore
from crux_workspace.testing import (
    MemoryMinimalStore,
    Report,
    check_asset_store,
    check_minimal_store,
    check_record_store,
)
from crux_workspace.testing.gallery import (
    BROKEN_ASSET_STORES,
    BROKEN_MINIMAL_STORES,
    BROKEN_RECORD_STORES,
)

_ACCIDENTS = ("TypeError", "AttributeError", "IndexError", "NameError", "DecodeError")


def _rejected(report: Report, check_id: str) -> None:
    (outcome,) = report.outcomes
    assert (outcome.id, outcome.status) == (check_id, "failed")
    assert not outcome.detail.startswith(_ACCIDENTS), outcome.detail
    assert not report.passed


@pytest.mark.parametrize(
    ("broken", "check_id"),
    [pytest.param(*item, id=item[0].__name__) for item in BROKEN_RECORD_STORES.items()],
)
async def test_broken_record_store_is_rejected(broken: type[RecordStore], check_id: str) -> None:
    _rejected(await check_record_store(broken, only=[check_id]), check_id)


@pytest.mark.parametrize(
    ("broken", "check_id"),
    [pytest.param(*item, id=item[0].__name__) for item in BROKEN_ASSET_STORES.items()],
)
async def test_broken_asset_store_is_rejected(broken: type[AssetStore], check_id: str) -> None:
    _rejected(await check_asset_store(broken, only=[check_id]), check_id)


@pytest.mark.parametrize(
    ("broken", "check_id"),
    [pytest.param(*item, id=item[0].__name__) for item in BROKEN_MINIMAL_STORES.items()],
)
async def test_broken_minimal_store_is_rejected(broken: type[MinimalStore], check_id: str) -> None:
    _rejected(await check_minimal_store(broken, only=[check_id]), check_id)


async def test_sound_stores_pass_the_same_checks() -> None:
    records = await check_record_store(
        MemoryRecordStore, only=set(BROKEN_RECORD_STORES.values()) - {"R-073", "R-122"}
    )
    assets = await check_asset_store(
        MemoryAssetStore, only=set(BROKEN_ASSET_STORES.values()) - {"A-025"}
    )
    minimal = await check_minimal_store(MemoryMinimalStore)
    outcomes = (*records.outcomes, *assets.outcomes, *minimal.outcomes)
    assert {o.status for o in outcomes} == {"passed"}
