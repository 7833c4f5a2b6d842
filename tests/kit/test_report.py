"""Running a kit without pytest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from crux_workspace.storage.memory import MemoryAssetStore, MemoryRecordStore
from crux_workspace.storage.records import Record, RecordStore
from crux_workspace.testing import Hooks, check_asset_store, check_record_store
from crux_workspace.testing.broken_commits import ForgetsRevisions


async def test_report_of_a_sound_store() -> None:
    report = await check_asset_store(MemoryAssetStore)
    assert report.passed
    assert report.exit_code == 0
    assert str(report).startswith("assets: MemoryAssetStore   base ")
    assert "verdict: conforms (kit 2)" in str(report)
    assert json.loads(json.dumps(report.to_dict()))["passed"] is True


async def test_report_of_a_broken_store_names_check_and_reason() -> None:
    report = await check_record_store(ForgetsRevisions, only=["R-031", "R-042", "R-132"])
    assert [o.status for o in report.outcomes] == [
        "passed" if o.id == "R-042" else "skipped" if o.id == "R-132" else "failed"
        for o in report.outcomes
    ]
    assert report.exit_code == 1
    assert "FAILED R-031" in str(report)
    assert "does not conform" in str(report)
    assert "durable skipped" in str(report)
    assert report.to_dict()["groups"]["base"] == {"passed": 1, "run": 2, "skipped": 0}


async def test_factories_may_be_coroutines_or_context_managers() -> None:
    closed: list[str] = []

    @asynccontextmanager
    async def managed() -> AsyncIterator[RecordStore]:
        yield MemoryRecordStore()
        closed.append("managed")

    async def awaited() -> RecordStore:
        return MemoryRecordStore()

    for factory in (managed, awaited):
        report = await check_record_store(factory, only=["R-040"])
        assert report.passed
        assert report.subject == "MemoryRecordStore"
    assert closed == ["managed"]


async def test_nothing_run_is_not_conformance() -> None:
    report = await check_record_store(MemoryRecordStore, only=[])
    assert not report.passed


async def test_a_store_that_hangs_or_cannot_be_made_fails() -> None:
    class Hangs(MemoryRecordStore):
        async def sequences(self, partitions: object) -> list[int]:
            await asyncio.Event().wait()
            return []

    def impossible() -> RecordStore:
        raise OSError("no such server")

    report = await check_record_store(Hangs, only=["R-040"], timeout_s=0.05)
    assert report.failures[0].detail == "took longer than 0.05 s"
    report = await check_record_store(impossible, only=["R-040"])
    assert report.failures[0].detail == "OSError: no such server"


async def test_hooks_let_the_kit_look_behind_the_store() -> None:
    async def peek(
        store: RecordStore, partition: str, key: str
    ) -> tuple[bytes, bytes | None] | None:
        record: Record | None = (await store.get_many(partition, [key]))[0]
        return None if record is None else (record.value, record.body)

    async def lies(
        store: RecordStore, partition: str, key: str
    ) -> tuple[bytes, bytes | None] | None:
        return None

    assert (
        await check_record_store(MemoryRecordStore, hooks=Hooks(peek=peek), only=["R-134"])
    ).passed
    report = await check_record_store(MemoryRecordStore, hooks=Hooks(peek=lies), only=["R-134"])
    assert report.failures
