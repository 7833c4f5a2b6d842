"""A commit that follows exactly the one that its plan knew to be the last: one statement that finds all as it was told, or does nothing.

The function that commits judges in steps, each a statement of its own, for it learns under the lock what was committed before. Where nobody
has committed since, there is nothing to learn: `meta` under the lock is the one that the plan was told, and the one that the
statement's snapshot shows, so that the snapshot is the namespace as it is. Then all can be judged and written at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from crux_workspace.storage.layout import (
    META_KEY,
    Meta,
    advance,
    decode_meta,
    log_rows,
    resolve_key,
)
from crux_workspace.storage.records import SEQUENCE_MARK, Batch, Record, Take

__all__ = ["following"]

_encode = msgspec.json.Encoder().encode


def following(partition: str, batch: Batch, told: Record) -> Sequence[Any] | None:
    """Return the parameters of `Texts.follow` for a batch made on `meta` as it was told; None for one that needs the function.

    That need those that delete, copy or replace bodies, collect, hold what others look at, or would pass a ceiling.
    """
    meta = decode_meta(told.value)
    if not _is_simple(batch) or batch.incarnation != meta.incarnation or _passes(meta, batch):
        return None
    sequence = told.revision + 1
    rows = log_rows(batch, sequence)
    if len(rows) > 1:
        return None
    expect = batch.expect.copy()
    keys, values, bodies, takes = [], [], [], []
    for put in batch.puts:
        expect.setdefault(put.key, 0)
        taken = put.body.key if isinstance(put.body, Take) else None
        if taken is not None and not batch.expect.get(taken):
            return None
        keys.append(resolve_key(put.key, sequence))
        values.append(put.value)
        bodies.append(None if isinstance(put.body, Take) else put.body)
        takes.append(taken)
    if not _moves_all(batch, expect, takes):
        return None
    [(key, value, body)] = rows
    after = advance(meta, batch)
    return (
        partition,
        told.revision,
        meta.incarnation,
        [key for key in expect if SEQUENCE_MARK not in key],
        [revision for key, revision in expect.items() if SEQUENCE_MARK not in key],
        [low for low, _ in batch.expect_empty],
        [high for _, high in batch.expect_empty],
        [*keys, key],
        [*values, value],
        [*bodies, body],
        [*takes, None],
        after.at,
        _encode({"seq": sequence, "at": after.at, "n": after.counters}).decode(),
    )


def _is_simple(batch: Batch) -> bool:
    if batch.deletes or batch.expect_quiet or not batch.puts or META_KEY in batch.expect:
        return False
    if (
        batch.epoch is not None
        or batch.oldest_upload_at is not None
        or batch.sweeping_to is not None
    ):
        return False
    return len({put.key for put in batch.puts}) == len(batch.puts) and not any(
        put.key.startswith("keep\x01") for put in batch.puts
    )


def _passes(meta: Meta, batch: Batch) -> bool:
    return any(
        ceiling is not None and add > 0 and meta.counters.get(name, 0) + add > ceiling
        for name, (add, ceiling) in batch.counters.items()
    )


def _moves_all(batch: Batch, expect: dict[str, int], takes: list[str | None]) -> bool:
    """Tell whether each body that a put replaces goes to one other record, so that none is copied and none is to be deleted."""
    replaced = {put.key for put in batch.puts if expect[put.key]}
    taken = [key for key in takes if key is not None]
    return len(taken) == len(replaced) and set(taken) == replaced
