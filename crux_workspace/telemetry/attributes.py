"""The attributes of spans and metrics: their names, and what may stand in them.

Whatever cannot be an attribute is left out. It is never turned into text: the text of a foreign object may hold content.
"""

from __future__ import annotations

from crux_workspace.telemetry.path_hash import PathHash, is_path_hash

__all__ = [
    "ERROR_CODE",
    "OPERATION",
    "PATH_HASH",
    "RESULT_KIND",
    "SIZE",
    "STATUS",
    "VERSION",
    "WORKSPACE_ID",
    "Attributes",
    "measure_attributes",
    "outcome_attributes",
    "start_attributes",
    "version_attributes",
    "whole",
]

OPERATION = "crux.workspace.operation"
WORKSPACE_ID = "crux.workspace.id"
PATH_HASH = "crux.workspace.path_hash"
RESULT_KIND = "crux.workspace.result_kind"
SIZE = "crux.workspace.size"
STATUS = "crux.workspace.status"
ERROR_CODE = "crux.workspace.error_code"
VERSION = "crux.workspace.version"

Attributes = dict[str, str | int]

_INT64_MAX = (1 << 63) - 1


def _word(value: object) -> str | None:
    """Return a text as plain str that UTF-8 can carry; None for everything else."""
    if type(value) is str and value.isascii():
        return value
    if not isinstance(value, str):
        return None
    plain = str.__str__(value)
    return plain if plain.isascii() else plain.encode("utf-8", "replace").decode()


def whole(value: object) -> int | None:
    """Return a non-negative 64-bit number; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _INT64_MAX:
        return None
    return int(value)


def _hashed(value: object) -> str | None:
    return _word(value) if is_path_hash(value) else None


def _present(*named: tuple[str, str | int | None]) -> Attributes:
    made: Attributes = {}
    for name, value in named:
        if value is not None:
            made[name] = value
    return made


def start_attributes(operation: str, workspace_id: str) -> Attributes:
    """What is known when an operation starts."""
    return _present((OPERATION, _word(operation)), (WORKSPACE_ID, _word(workspace_id)))


def outcome_attributes(
    status: str,
    *,
    path_hash: PathHash | None = None,
    kind: str | None = None,
    size: int | None = None,
    error_code: str | None = None,
) -> Attributes:
    """What is known when an operation has ended."""
    return _present(
        (PATH_HASH, _hashed(path_hash)),
        (RESULT_KIND, _word(kind)),
        (SIZE, whole(size)),
        (STATUS, _word(status)),
        (ERROR_CODE, _word(error_code)),
    )


def version_attributes(path_hash: PathHash | None, version: int, operation: str) -> Attributes:
    """What a version marker says."""
    return _present(
        (VERSION, whole(version)), (OPERATION, _word(operation)), (PATH_HASH, _hashed(path_hash))
    )


def measure_attributes(
    operation: str, status: str | None = None, error_code: str | None = None
) -> Attributes:
    """What a measurement is split by; few values each, so no ids and no hashes."""
    return _present(
        (OPERATION, _word(operation)), (STATUS, _word(status)), (ERROR_CODE, _word(error_code))
    )
