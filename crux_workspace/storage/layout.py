"""How keys are written, and the two records that stores write themselves: `meta` and `log/`.

A key is its fields, each followed by U+0001. A path inside a key is written without its first slash and with ``/`` as U+0002, so
order is segment by segment and no name can look like another record. Numbers are 16 decimal digits. The functions that judge a batch
stand here too, so that every store judges alike. `docs/format.md` records all of it; a test holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from crux_workspace.model.changes import Change, ChangeType
from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.storage.records import (
    SEQUENCE_MARK,
    Batch,
    BatchTooLarge,
    CeilingExceeded,
    PreconditionFailed,
    Put,
)

__all__ = [
    "DEPLOYMENT_PARTITION",
    "FIELD_END",
    "FORMAT",
    "LOG_NAME",
    "LOG_PREFIX",
    "META_KEY",
    "SEGMENT_END",
    "LogRecord",
    "Meta",
    "advance",
    "check_size",
    "decode_changes",
    "decode_log",
    "decode_meta",
    "encode_changes",
    "encode_log",
    "encode_meta",
    "is_log_head",
    "judge_ceilings",
    "judge_identity",
    "key",
    "log_key",
    "log_rows",
    "log_values",
    "number",
    "partition_name",
    "path_field",
    "path_of_field",
    "prefix_end",
    "quiet_violation",
    "redact",
    "resolve_key",
    "split_partition",
    "subtree_range",
]

FORMAT = 1
"""Format of the records of a partition; a newer one is refused, never guessed."""

FIELD_END = "\x01"
SEGMENT_END = "\x02"
AFTER_SEGMENT_END = "\x03"

META_KEY = "meta" + FIELD_END
LOG_NAME = "log"
LOG_PREFIX = LOG_NAME + FIELD_END
DEPLOYMENT_PARTITION = FIELD_END
"""The deployment's own partition; it holds `key/path_hash`."""

_KEEP_PREFIX = "keep" + FIELD_END

CHANGES_IN_VALUE = 16
CHANGES_PER_BODY = 1000


def key(*fields: str) -> str:
    """Join fields to a key: each followed by U+0001."""
    return FIELD_END.join(fields) + FIELD_END


def number(value: int) -> str:
    """Write a number as it stands in keys: 16 decimal digits."""
    return f"{value:016d}"


def path_field(path: str) -> str:
    """Write a normalised absolute path as it stands in keys."""
    return path[1:].replace("/", SEGMENT_END)


def path_of_field(field: str) -> str:
    """Read a path back from a key."""
    return "/" + field.replace(SEGMENT_END, "/")


def prefix_end(prefix: str) -> str | None:
    """Return the first key behind everything that starts with `prefix`; None when there is no such bound."""
    while prefix:
        last = ord(prefix[-1])
        if last < 0x10FFFF:
            return prefix[:-1] + chr(0xE000 if last == 0xD7FF else last + 1)
        prefix = prefix[:-1]
    return None


def subtree_range(kind: str, path: str) -> tuple[str, str]:
    """Return the key range [low, high) of everything below `path`, the path itself left out."""
    if path == "/":
        return f"{kind}{FIELD_END}", f"{kind}{SEGMENT_END}"
    stem = f"{kind}{FIELD_END}{path_field(path)}"
    return stem + SEGMENT_END, stem + AFTER_SEGMENT_END


def partition_name(workspace_id: str, namespace: str) -> str:
    """Name the partition of one namespace of one workspace."""
    return f"{workspace_id}{FIELD_END}{namespace}{FIELD_END}"


def split_partition(partition: str) -> tuple[str, str]:
    """Return (workspace id, namespace) of a partition's name."""
    workspace_id, namespace, _ = partition.split(FIELD_END)
    return workspace_id, namespace


def log_key(sequence: int) -> str:
    """Key of a commit's log record."""
    return f"{LOG_PREFIX}{sequence:016d}{FIELD_END}"


def is_log_head(log_record_key: str) -> bool:
    """Tell a commit's first log record from the further ones that carry more of its changes."""
    return log_record_key.count(FIELD_END) == 2


def resolve_key(put_key: str, sequence: int) -> str:
    """Put the commit's sequence where a put's key has the mark."""
    return put_key.replace(SEQUENCE_MARK, number(sequence)) if SEQUENCE_MARK in put_key else put_key


class Meta(msgspec.Struct, omit_defaults=True, kw_only=True, frozen=True, gc=False):
    """The record `meta` of a partition."""

    sequence: int = msgspec.field(name="seq")
    incarnation: str = msgspec.field(name="inc")
    at: int
    counters: dict[str, int] = msgspec.field(name="n", default_factory=dict)
    epoch: int = 0
    swept: int = 0
    """Orphaned uploads up to this time (ms) may be gone."""
    base: str | None = None
    """Where a fork comes from."""
    format: int = msgspec.field(name="fmt", default=1)
    """Absent means 1, whatever `FORMAT` is."""


class _Change(msgspec.Struct, omit_defaults=True, gc=False):
    """A `Change` as the log writes it."""

    t: ChangeType
    p: str
    i: str = ""
    f: str | None = None
    r: str | None = None
    v: int | None = None
    w: int | None = None
    a: bool = False


class LogRecord(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """The record `log/<sequence>`; its sequence and time are the record's own stamp."""

    commit_id: str = msgspec.field(name="id")
    verb: str
    actor: str | None = None
    changes: list[_Change] = []
    bodies: int = 0
    """How many bodies hold the changes: the first in this record, the others in `log/<sequence>/<k>`, k from 1."""
    at: int | None = None
    """Written out only when the record was rewritten later (redaction)."""

    @property
    def tells(self) -> bool:
        """Whether the commit changed something that the log tells of; upkeep does not."""
        return bool(self.changes or self.bodies)

    def inline_changes(self) -> list[Change]:
        """The changes kept in the value."""
        return [_change(c) for c in self.changes]


_encode = msgspec.json.Encoder().encode
_decode_meta = msgspec.json.Decoder(Meta).decode
_decode_log = msgspec.json.Decoder(LogRecord).decode
_decode_changes = msgspec.json.Decoder(list[_Change]).decode


def _packed(change: Change) -> _Change:
    return _Change(
        change.type,
        change.path,
        change.file_id,
        change.from_path,
        change.replaced,
        change.version,
        change.previous_version,
        change.attributes,
    )


def _change(packed: _Change) -> Change:
    return Change(packed.t, packed.p, packed.f, packed.i, packed.r, packed.v, packed.w, packed.a)


class _Latest:
    """The last `meta` that was encoded or decoded: a commit's store and its plan both ask for the one that is there."""

    __slots__ = ("pair",)

    def __init__(self) -> None:
        self.pair: tuple[bytes, Meta | None] = (b"", None)


_latest = _Latest()


def encode_meta(meta: Meta) -> bytes:
    """Encode `meta`'s value."""
    value = _encode(meta)
    _latest.pair = (value, meta)
    return value


def decode_meta(value: bytes) -> Meta:
    """Decode `meta`'s value; raises `msgspec.DecodeError` when it is not one."""
    known, meta = _latest.pair
    if known is not value or meta is None:
        meta = _decode_meta(value)
        _latest.pair = (value, meta)
    return meta


def encode_changes(changes: Iterable[Change]) -> bytes:
    """Encode changes as a log body."""
    return _encode([_packed(c) for c in changes])


def decode_changes(body: bytes) -> list[Change]:
    """Decode a log body."""
    return [_change(c) for c in _decode_changes(body)]


def encode_log(record: LogRecord) -> bytes:
    """Encode a log record's value."""
    return _encode(record)


def decode_log(value: bytes) -> LogRecord:
    """Decode a log record's value."""
    return _decode_log(value)


def redact(record: LogRecord, file_id: str, instead: str) -> bool:
    """Replace the paths of one file's changes in a log record's value; True when there were any."""
    found = [c for c in record.changes if c.i == file_id and c.p != instead]
    for change in found:
        change.p = instead
        change.f = None if change.f is None else instead
    return bool(found)


def log_values(batch: Batch) -> list[tuple[bytes, bytes | None]]:
    """Return (value, body) of a commit's log records: the first one's, then those that carry more of its changes."""
    if len(batch.changes) <= CHANGES_IN_VALUE:
        changes = [_packed(c) for c in batch.changes]
        record = LogRecord(
            commit_id=batch.commit_id, verb=batch.verb, actor=batch.actor, changes=changes
        )
        return [(_encode(record), None)]
    record = LogRecord(commit_id=batch.commit_id, verb=batch.verb, actor=batch.actor)
    bodies = [
        encode_changes(batch.changes[start : start + CHANGES_PER_BODY])
        for start in range(0, len(batch.changes), CHANGES_PER_BODY)
    ]
    record.bodies = len(bodies)
    return [(_encode(record), bodies[0]), *((b"{}", body) for body in bodies[1:])]


def log_rows(batch: Batch, sequence: int) -> list[tuple[str, bytes, bytes | None]]:
    """Return the log records of a commit as (key, value, body)."""
    head = log_key(sequence)
    (value, body), *further = log_values(batch)
    rows = [(head, value, body)]
    for k, (value, body) in enumerate(further, 1):
        rows.append((head + number(k) + FIELD_END, value, body))
    return rows


def judge_identity(meta: Meta | None, batch: Batch) -> None:
    """Refuse a batch made for another incarnation or protect epoch, or with uploads that may have been swept."""
    if batch.incarnation != (None if meta is None else meta.incarnation):
        raise PreconditionFailed("incarnation")
    if batch.epoch is not None and batch.epoch != (0 if meta is None else meta.epoch):
        raise PreconditionFailed("epoch")
    if meta is not None and batch.oldest_upload_at is not None:
        if batch.oldest_upload_at <= meta.swept:
            raise PreconditionFailed("upload")


def judge_ceilings(meta: Meta | None, batch: Batch) -> None:
    """Refuse a positive net addition that ends above its ceiling."""
    for name, (add, ceiling) in batch.counters.items():
        if ceiling is not None and add > 0:
            used = 0 if meta is None else meta.counters.get(name, 0)
            if used + add > ceiling:
                raise CeilingExceeded(name, ceiling, used, add)


def advance(meta: Meta | None, batch: Batch) -> Meta:
    """Return `meta` as it is after the batch, which has been judged; time never goes back before the last commit."""
    counters = meta.counters.copy() if meta is not None else {}
    for name, (add, _) in batch.counters.items():
        counters[name] = counters.get(name, 0) + add
    protects = False
    for put in batch.puts:
        if put.key.startswith(_KEEP_PREFIX):
            protects = True
    swept = batch.sweeping_to or 0
    if meta is None:
        return Meta(
            sequence=1,
            incarnation=batch.commit_id,
            at=batch.now,
            counters=counters,
            epoch=1 if protects else 0,
            swept=swept,
            format=FORMAT,
        )
    return Meta(
        sequence=meta.sequence + 1,
        incarnation=meta.incarnation,
        at=batch.now if batch.now > meta.at else meta.at,
        counters=counters,
        epoch=meta.epoch + protects,
        swept=swept if swept > meta.swept else meta.swept,
        base=meta.base,
        format=meta.format,
    )


def _covers(path: str, subtree: bool, touched: str | None) -> bool:
    if touched is None:
        return False
    if touched[:1] != "/":
        return True  # the name was erased: it may have been anywhere
    return touched == path or (subtree and (path == "/" or touched.startswith(path + "/")))


def quiet_violation(
    changes: Iterable[Change], expect_quiet: Sequence[tuple[str, bool]]
) -> str | None:
    """Return the first expected-quiet path that one of the changes touches, or None."""
    for change in changes:
        for path, subtree in expect_quiet:
            if _covers(path, subtree, change.path) or _covers(path, subtree, change.from_path):
                return path
    return None


def _size(put: Put) -> int:
    return len(put.value) + (len(put.body) if isinstance(put.body, bytes) else 0)


def check_size(batch: Batch, capabilities: StoreCapabilities) -> None:
    """Refuse a batch beyond the declared ceilings."""
    if not capabilities.has_ceilings:
        return
    limit = capabilities.max_commit_paths
    if limit is not None and len(batch.changes) > limit:
        raise BatchTooLarge("paths", len(batch.changes), limit)
    if capabilities.max_commit_bytes is not None:
        size = sum(_size(put) for put in batch.puts)
        if size > capabilities.max_commit_bytes:
            raise BatchTooLarge("bytes", size, capabilities.max_commit_bytes)
    for put in batch.puts:
        if (
            capabilities.max_value_bytes is not None
            and len(put.value) > capabilities.max_value_bytes
        ):
            raise BatchTooLarge("value", len(put.value), capabilities.max_value_bytes)
        if isinstance(put.body, bytes) and capabilities.max_body_bytes is not None:
            if len(put.body) > capabilities.max_body_bytes:
                raise BatchTooLarge("body", len(put.body), capabilities.max_body_bytes)
