"""The expectations that need the database: revisions, empty ranges, quiet paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from crux_workspace.model.changes import Change
from crux_workspace.storage.layout import (
    LOG_PREFIX,
    META_KEY,
    Meta,
    decode_changes,
    decode_log,
    is_log_head,
    log_key,
    prefix_end,
    quiet_violation,
)
from crux_workspace.storage.records import Batch, PreconditionFailed
from storage_adapters.sql import statements
from storage_adapters.sql.transaction import PartitionState, Transaction

__all__ = ["judge_empty", "judge_expected", "judge_log", "judge_quiet"]

_RANGES_PER_STATEMENT = 32


def judge_expected(revisions: Mapping[str, int], meta: Meta | None, batch: Batch) -> None:
    """Refuse a batch whose keys have other revisions than it expects."""
    for key, revision in batch.expect.items():
        actual = (0 if meta is None else meta.sequence) if key == META_KEY else revisions[key]
        if actual != revision:
            raise PreconditionFailed("revision", key)


def judge_empty(transaction: Transaction, state: PartitionState, batch: Batch) -> None:
    """Refuse a batch when one of the ranges it expects to be empty is not."""
    if state.id is None:
        return
    ranges = batch.expect_empty
    if state.waiting and any(state.touches_range(low, high) for low, high in ranges):
        transaction.flush()
    for start in range(0, len(ranges), _RANGES_PER_STATEMENT):
        chunk = ranges[start : start + _RANGES_PER_STATEMENT]
        chunk += chunk[:1] * (statements.padded_count(len(chunk)) - len(chunk))
        text = statements.any_in_ranges(len(chunk))
        for (low,) in transaction.rows(text, (state.id, *chain.from_iterable(chunk))):
            raise PreconditionFailed("empty", low)
    if state.meta_waits and any(low <= META_KEY < high for low, high in ranges):
        raise PreconditionFailed("empty", META_KEY)


def judge_quiet(transaction: Transaction, state: PartitionState, batch: Batch) -> None:
    """Refuse a batch when a commit since `quiet_since` touched one of its paths, or is no longer in the log."""
    since = batch.quiet_since or 0
    last = 0 if state.meta is None else state.meta.sequence
    if since >= last:
        return
    if state.waiting:
        transaction.flush()
    end = prefix_end(LOG_PREFIX)
    rows = transaction.rows(statements.LOG_SINCE, (state.id, log_key(since + 1), end))
    judge_log(rows, since, last, batch)


def judge_log(rows: Iterable[Sequence[Any]], since: int, last: int, batch: Batch) -> None:
    """Refuse a batch when one of the commits behind `since` touched a quiet path, or they do not reach to `last` without a gap.

    Args:
        rows: Key, value and body of the log's records behind `since`, in order.
        since: The last commit known to have left the paths alone.
        last: The newest commit.
        batch: What expects them to be quiet.
    """
    expected = since + 1
    for key, value, body in rows:
        changes: list[Change] = []
        if is_log_head(key):
            if key != log_key(expected):
                break
            expected += 1
            changes = decode_log(value).inline_changes()
        if body is not None:
            changes.extend(decode_changes(body))
        touched = quiet_violation(changes, batch.expect_quiet)
        if touched is not None:
            raise PreconditionFailed("quiet", touched)
    if expected <= last:
        raise PreconditionFailed("quiet", batch.expect_quiet[0][0])
