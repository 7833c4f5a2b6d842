from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import count

import pytest

from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.storage.layout import (
    DEPLOYMENT_PARTITION,
    META_KEY,
    decode_log,
    decode_meta,
    log_key,
)
from crux_workspace.storage.memory import MemoryRecordStore
from crux_workspace.storage.planning import commit_replanned
from crux_workspace.storage.records import (
    Batch,
    Committed,
    OutcomeUnknown,
    Plan,
    PreconditionFailed,
    Put,
    Record,
)
from crux_workspace.telemetry.key import KEY_RECORD, deployment_key

_numbers = count(1)


def clock() -> int:
    return 1_000


def ids() -> str:
    return f"{next(_numbers):032x}"


class SlowRecordStore(MemoryRecordStore):
    """Gives way to others before every call, and plans without a lock."""

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        found = await super().get_many(partition, keys, bodies=bodies)
        await asyncio.sleep(0)
        return found

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        return await commit_replanned(self, partition, plan)


class LossyRecordStore(MemoryRecordStore):
    """Applies or loses the first commit, and does not say which."""

    def __init__(self, *, applies: bool, losses: int = 1) -> None:
        super().__init__()
        self.applies = applies
        self.losses = losses

    async def commit(self, partition: str, batch: Batch) -> Committed:
        if not self.losses:
            return await super().commit(partition, batch)
        self.losses -= 1
        if self.applies:
            await super().commit(partition, batch)
        raise OutcomeUnknown


async def stored(records: MemoryRecordStore) -> Record:
    (record,) = await records.get_many(DEPLOYMENT_PARTITION, [KEY_RECORD])
    assert record is not None
    return record


async def put(records: MemoryRecordStore, key: str, value: bytes) -> None:
    (meta,) = await records.get_many(DEPLOYMENT_PARTITION, [META_KEY])
    incarnation = None if meta is None else decode_meta(meta.value).incarnation
    batch = Batch(commit_id=ids(), verb="test", now=1, incarnation=incarnation)
    batch.puts = [Put(key, value)]
    await records.commit(DEPLOYMENT_PARTITION, batch)


async def test_the_first_call_creates_the_key_and_later_ones_read_it() -> None:
    records = MemoryRecordStore()
    made = await deployment_key(records, clock, ids)
    assert len(made) == 32
    record = await stored(records)
    assert record.key == "key\x01path_hash\x01"
    assert json.loads(record.value) == {"key": made.hex()}
    assert await deployment_key(records, clock, ids) == made
    assert await records.sequences([DEPLOYMENT_PARTITION]) == [1]
    (log,) = await records.get_many(DEPLOYMENT_PARTITION, [log_key(1)])
    assert log is not None
    assert log.at == 1_000
    assert decode_log(log.value).verb == "key"


async def test_each_deployment_has_its_own_key() -> None:
    stores = [MemoryRecordStore(), MemoryRecordStore()]
    assert len({await deployment_key(store, clock, lambda: "0" * 32) for store in stores}) == 2


@pytest.mark.parametrize("store", [MemoryRecordStore, SlowRecordStore])
async def test_racing_creators_converge_on_one_key(store: type[MemoryRecordStore]) -> None:
    records = store()
    keys = await asyncio.gather(*(deployment_key(records, clock, ids) for _ in range(20)))
    assert len(set(keys)) == 1
    assert json.loads((await stored(records)).value) == {"key": keys[0].hex()}
    assert await records.sequences([DEPLOYMENT_PARTITION]) == [1]


async def test_a_partition_that_holds_other_records_gets_its_key() -> None:
    records = MemoryRecordStore()
    await put(records, "other\x01", b"{}")
    made = await deployment_key(records, clock, ids)
    assert (await stored(records)).revision == 2
    assert await deployment_key(records, clock, ids) == made


@pytest.mark.parametrize("applies", [True, False])
async def test_a_lost_answer_still_ends_with_the_stored_key(applies: bool) -> None:
    records = LossyRecordStore(applies=applies)
    made = await deployment_key(records, clock, ids)
    assert json.loads((await stored(records)).value) == {"key": made.hex()}


async def test_a_store_that_never_answers_is_a_storage_error() -> None:
    with pytest.raises(StorageError) as caught:
        await deployment_key(LossyRecordStore(applies=False, losses=99), clock, ids)
    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    assert isinstance(caught.value.__cause__, OutcomeUnknown)


async def test_a_refusal_is_no_error_when_the_key_is_there_afterwards() -> None:
    class Refusing(MemoryRecordStore):
        async def commit_planned(self, partition: str, plan: Plan) -> Committed:
            await super().commit_planned(partition, plan)
            raise PreconditionFailed("revision", KEY_RECORD)

    records = Refusing()
    made = await deployment_key(records, clock, ids)
    assert json.loads((await stored(records)).value) == {"key": made.hex()}


@pytest.mark.parametrize("value", [b"not json", b"{}", b'{"key": "zz"}', b'{"key": "00"}'])
async def test_a_damaged_record_is_reported_and_never_replaced(value: bytes) -> None:
    records = MemoryRecordStore()
    await put(records, KEY_RECORD, value)
    with pytest.raises(StorageError) as caught:
        await deployment_key(records, clock, ids)
    assert caught.value.code is ErrorCode.RECORD_CORRUPT
    assert (await stored(records)).value == value
