"""Judging what was expected to stay quiet over many commits: page by page here, so that no script holds the server for long."""

from __future__ import annotations

from crux_workspace.model.changes import Change
from crux_workspace.storage.layout import (
    LOG_PREFIX,
    decode_changes,
    decode_log,
    is_log_head,
    log_key,
    quiet_violation,
)
from crux_workspace.storage.records import Batch, PreconditionFailed, Record, RecordStore

__all__ = ["judge_quiet"]

_COMMITS_PER_PAGE = 500


async def judge_quiet(store: RecordStore, partition: str, batch: Batch, last: int) -> None:
    """Judge the commits after `quiet_since` up to `last`.

    Raises:
        PreconditionFailed: One of them touched a path that was expected quiet, or is no longer in the log (``quiet``).
    """
    expected = (batch.quiet_since or 0) + 1
    after = log_key(expected - 1) + "\x7f"
    before = log_key(last) + "\x7f"
    while expected <= last:
        page = await store.scan(
            partition, LOG_PREFIX, after=after, before=before, limit=_COMMITS_PER_PAGE, bodies=True
        )
        for record in page.records:
            if is_log_head(record.key):
                if record.key != log_key(expected):
                    raise PreconditionFailed("quiet", batch.expect_quiet[0][0])
                expected += 1
            touched = quiet_violation(_changes(record), batch.expect_quiet)
            if touched is not None:
                raise PreconditionFailed("quiet", touched)
        if page.next is None:
            break
        after = page.next
    if expected <= last:
        raise PreconditionFailed("quiet", batch.expect_quiet[0][0])


def _changes(record: Record) -> list[Change]:
    changes = decode_log(record.value).inline_changes() if is_log_head(record.key) else []
    return changes + (decode_changes(record.body) if record.body is not None else [])
