"""Keys of the engine's own records; `storage.layout` owns how fields become keys."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from crux_workspace.model.paths import ROOT, parent
from crux_workspace.storage.layout import FIELD_END, key, number, path_field, path_of_field
from crux_workspace.storage.records import SEQUENCE_MARK

__all__ = [
    "ART_PREFIX",
    "ASSET_PREFIX",
    "EXPIRY_PREFIX",
    "HEAD_PREFIX",
    "JOB_PREFIX",
    "OP_PREFIX",
    "PATH_HASH_KEY",
    "STATE_PREFIX",
    "TRASH_PREFIX",
    "WAS_PREFIX",
    "artifact_key",
    "asset_key",
    "expiry_key",
    "file_key",
    "gone_key",
    "head_key",
    "job_key",
    "op_key",
    "path_in_key",
    "state_key",
    "state_key_parts",
    "states_prefix",
    "trash_key",
    "version_prefix",
    "was_key",
    "was_key_parts",
    "was_prefix",
    "way_keys",
]

HEAD_PREFIX = "head" + FIELD_END
ART_PREFIX = "art" + FIELD_END
WAS_PREFIX = "was" + FIELD_END
EXPIRY_PREFIX = "exp" + FIELD_END
TRASH_PREFIX = "trash" + FIELD_END
ASSET_PREFIX = "asset" + FIELD_END
OP_PREFIX = "op" + FIELD_END
JOB_PREFIX = "job" + FIELD_END
STATE_PREFIX = "state" + FIELD_END
PATH_HASH_KEY = key("key", "path_hash")
_KEPT = 4096
"""Most keys of paths that are kept: a write asks for its own and its directories' several times."""


@lru_cache(maxsize=_KEPT)
def head_key(path: str) -> str:
    """Key of the live file at `path`."""
    return f"{HEAD_PREFIX}{path_field(path)}{FIELD_END}"


@lru_cache(maxsize=_KEPT)
def gone_key(path: str) -> str:
    """Key of the file to go on with when `path` is written again."""
    return f"gone{FIELD_END}{path_field(path)}{FIELD_END}"


@lru_cache(maxsize=_KEPT)
def _heads_of(directory: str) -> tuple[str, ...]:
    """Keys of the files that would stand where a directory and those above it are."""
    return () if directory == ROOT else (head_key(directory), *_heads_of(parent(directory)))


def way_keys(path: str) -> tuple[str, ...]:
    """Keys that tell whether a file can come to `path`: its head, its deleted file, and the heads above it."""
    return (head_key(path), gone_key(path), *_heads_of(parent(path)))


def artifact_key(path: str) -> str:
    """Key of the artifact at `path`."""
    return key("art", path_field(path))


def path_in_key(record_key: str) -> str:
    """Read the path out of a `head/`, `gone/`, `art/` or `was/` key."""
    return path_of_field(record_key.split(FIELD_END, 2)[1])


def states_prefix(file_id: str) -> str:
    """Prefix of all ended states of a file."""
    return key("state", file_id)


def version_prefix(file_id: str, version: int) -> str:
    """Prefix of the ended states of one version."""
    return key("state", file_id, number(version))


def state_key(file_id: str, version: int, start: int | None) -> str:
    """Key of an ended state; None says that it starts with the commit that writes it."""
    begins = SEQUENCE_MARK if start is None else f"{start:016d}"
    return f"{STATE_PREFIX}{file_id}{FIELD_END}{version:016d}{FIELD_END}{begins}{FIELD_END}"


def state_key_parts(record_key: str) -> tuple[str, int, int]:
    """Return (file id, version, start sequence) of a state's key."""
    _, file_id, version, start, _ = record_key.split(FIELD_END)
    return file_id, int(version), int(start)


def was_prefix(path: str) -> str:
    """Prefix of the ended bindings of one path."""
    return key("was", path_field(path))


def was_key(path: str) -> str:
    """Key of the binding that the commit ends."""
    return key("was", path_field(path), SEQUENCE_MARK)


def was_key_parts(record_key: str) -> tuple[str, int]:
    """Return (path, end sequence) of a `was/` key."""
    _, field, end, _ = record_key.split(FIELD_END)
    return path_of_field(field), int(end)


def file_key(file_id: str) -> str:
    """Key of a file's current place, once it was renamed or deleted."""
    return key("file", file_id)


def asset_key(ref: str) -> str:
    """Key of an asset's reference count."""
    return f"{ASSET_PREFIX}{ref}{FIELD_END}"


def trash_key(due: int, ref: str) -> str:
    """Key of a released asset that gc may delete from `due` on."""
    return f"{TRASH_PREFIX}{number(due)}{FIELD_END}{ref}{FIELD_END}"


def expiry_key(due: int, file_id: str) -> str:
    """Key of a file in the order of time to live."""
    return f"{EXPIRY_PREFIX}{number(due)}{FIELD_END}{file_id}{FIELD_END}"


def op_key(idempotency_key: str) -> str:
    """Key under which the result of an idempotent call is remembered."""
    return OP_PREFIX + hashlib.sha256(idempotency_key.encode()).hexdigest() + FIELD_END


def job_key(file_id: str) -> str:
    """Key of an unfinished purge."""
    return key("job", file_id)
