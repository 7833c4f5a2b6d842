"""Batches and records as the scripts take and give them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgspec

from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.storage.layout import (
    FIELD_END,
    FORMAT,
    LOG_PREFIX,
    decode_meta,
    log_values,
    number,
)
from crux_workspace.storage.records import SEQUENCE_MARK, Batch, Put, Record, Take

__all__ = ["corrupt", "incarnation_of", "record_of", "records_of", "request_of"]

_STAMP = struct.Struct(">QQ")
_KEEP = "keep" + FIELD_END
_THIS_LOG = LOG_PREFIX + SEQUENCE_MARK + FIELD_END
_ABSENT, _THERE, _UNKNOWN = 0, 1, 2
_encode = msgspec.msgpack.Encoder().encode


def corrupt(key: str) -> StorageError:
    """Return the error of a record that cannot be read."""
    kind = key.partition(FIELD_END)[0]
    return StorageError(
        f"a record ({kind}) of the namespace cannot be read; restore the Redis data from a backup",
        code=ErrorCode.RECORD_CORRUPT,
    )


def record_of(key: str, packed: bytes | None, body: bytes | None = None) -> Record | None:
    """Read a record: its stamp (revision and time, 8 bytes each), and the value behind it."""
    if packed is None:
        return None
    try:
        revision, at = _STAMP.unpack_from(packed)
    except struct.error:
        raise corrupt(key) from None
    return Record(key, packed[16:], body, revision, at)


def incarnation_of(meta: Record | None) -> str:
    """Return the incarnation that a partition's `meta` names; empty where there is none, or it cannot be read."""
    if meta is None:
        return ""
    try:
        return decode_meta(meta.value).incarnation
    except msgspec.DecodeError:
        return ""


def records_of(
    keys: Sequence[str], values: Sequence[bytes | None], bodies: Sequence[bytes | None]
) -> list[Record | None]:
    """Read many records."""
    return [record_of(*each) for each in zip(keys, values, bodies, strict=True)]


def request_of(batch: Batch) -> list[bytes]:
    """Return what the commit script takes of a batch: what it judges, then the values and bodies."""
    puts = {put.key: put for put in batch.puts}
    rows = [*puts.values(), *_log_puts(batch)]
    expect = batch.expect
    request: dict[str, Any] = {
        "id": batch.commit_id,
        "now": batch.now,
        "incarnation": batch.incarnation or False,
        "puts": [put.key for put in rows],
        "bodies": [_body_mark(put.body) for put in rows],
        "before": [_before(put.key, expect) for put in rows],
    }
    if batch.incarnation is None:
        request["format"] = FORMAT
    if expect:
        request["expect"] = list(expect)
        request["revisions"] = list(expect.values())
    if batch.expect_empty:
        request["empty"] = [bound for low_high in batch.expect_empty for bound in low_high]
    if batch.counters:
        request["counters"] = [_counter(*counter) for counter in batch.counters.items()]
    _add_rest(request, batch, puts)
    arguments = [_encode(request)]
    for put in rows:
        arguments.append(put.value)
        if isinstance(put.body, bytes):
            arguments.append(put.body)
    return arguments


def _add_rest(request: dict[str, Any], batch: Batch, puts: dict[str, Put]) -> None:
    """Add what few batches have."""
    takes = {put.body.key for put in puts.values() if isinstance(put.body, Take)}
    if takes:
        request["takes"] = list(takes)
    deletes = [key for key in dict.fromkeys(batch.deletes) if key not in puts]
    if deletes:
        request["deletes"] = deletes
    if batch.expect_quiet:
        request["quiet"] = [part for path_subtree in batch.expect_quiet for part in path_subtree]
        request["since"] = batch.quiet_since or 0
    if any(key.startswith(_KEEP) for key in puts):
        request["protects"] = True
    optional = {
        "epoch": batch.epoch,
        "uploaded": batch.oldest_upload_at,
        "sweeping_to": batch.sweeping_to,
    }
    request.update({name: value for name, value in optional.items() if value is not None})


def _log_puts(batch: Batch) -> list[Put]:
    """Return the commit's log records; the script puts the sequence where the mark is."""
    return [
        Put(_THIS_LOG if part == 0 else _THIS_LOG + number(part) + FIELD_END, value, body)
        for part, (value, body) in enumerate(log_values(batch))
    ]


def _before(key: str, expect: dict[str, int]) -> int:
    """Tell what is known of a key that is put: absent, there, or nothing."""
    revision = expect.get(key)
    if revision is None:
        return _ABSENT if key.startswith(_THIS_LOG) else _UNKNOWN
    return _THERE if revision else _ABSENT


def _body_mark(body: bytes | Take | None) -> bool | str:
    return body.key if isinstance(body, Take) else body is not None


def _counter(name: str, change: tuple[int, int | None]) -> list[Any]:
    add, ceiling = change
    return [name, add, False if ceiling is None else ceiling]
