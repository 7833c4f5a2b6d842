"""The deployment's key of path hashes, kept in the store: one per deployment, whoever comes first creates it."""

from __future__ import annotations

import secrets

import msgspec

from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.model.clocks import Clock, IdSource
from crux_workspace.storage.layout import DEPLOYMENT_PARTITION, META_KEY, decode_meta, key
from crux_workspace.storage.records import (
    Batch,
    OutcomeUnknown,
    Plan,
    PreconditionFailed,
    Put,
    Reader,
    Record,
    RecordStore,
)

__all__ = ["KEY_RECORD", "deployment_key"]

KEY_RECORD = key("key", "path_hash")
"""Key of the record, in the deployment's partition."""

_KEY_BYTES = 32
_ATTEMPTS = 5


class _KeyExists(Exception):
    """Somebody else has created the key meanwhile."""


class _KeyValue(msgspec.Struct):
    key: str


async def deployment_key(records: RecordStore, clock: Clock, ids: IdSource) -> bytes:
    """Return the deployment's key of path hashes, and create it when there is none.

    All who ask, at the same time or years apart, get the same 32 bytes: a key is returned only after the store has it.

    Args:
        records: The deployment's record store.
        clock: Time of the commit that creates the key.
        ids: Identity of that commit. The key itself is drawn from the system's own randomness, never from `ids`.

    Raises:
        StorageError: The record is not a key (``RECORD_CORRUPT``), or the store kept refusing or not answering
            (``STORE_UNAVAILABLE``).
        StoreError: What the store raised.

    Cost:
        1 read; the first time in a deployment 1 more read and 1 commit.
    """
    trouble: Exception | None = None
    for _ in range(_ATTEMPTS):
        (record,) = await records.get_many(DEPLOYMENT_PARTITION, [KEY_RECORD], bodies=False)
        if record is not None:
            return _read(record)
        fresh = secrets.token_bytes(_KEY_BYTES)
        try:
            await records.commit_planned(DEPLOYMENT_PARTITION, _creation(fresh, clock(), ids()))
        except (_KeyExists, PreconditionFailed, OutcomeUnknown) as error:
            trouble = error
        else:
            return fresh
    message = "The path hash key could not be created because the store did not settle on one."
    raise StorageError(message, hint="Repeat the call.") from trouble


def _read(record: Record) -> bytes:
    try:
        found = bytes.fromhex(msgspec.json.decode(record.value, type=_KeyValue).key)
    except (msgspec.DecodeError, ValueError):
        found = b""
    if len(found) == _KEY_BYTES:
        return found
    message = "The path hash key could not be read because its record is damaged."
    raise StorageError(
        message, code=ErrorCode.RECORD_CORRUPT, hint="Give Telemetry a path_hash_key of your own."
    )


def _creation(fresh: bytes, now: int, commit_id: str) -> Plan:
    value = msgspec.json.encode(_KeyValue(fresh.hex()))

    async def plan(reader: Reader) -> Batch:
        meta, record = await reader.get_many([META_KEY, KEY_RECORD], bodies=False)
        if record is not None:
            raise _KeyExists
        return Batch(
            commit_id=commit_id,
            verb="key",
            now=now,
            incarnation=None if meta is None else decode_meta(meta.value).incarnation,
            expect={KEY_RECORD: 0},
            puts=[Put(KEY_RECORD, value)],
        )

    return plan
