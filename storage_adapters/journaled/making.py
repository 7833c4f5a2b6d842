"""From a minimal store to a record store."""

from __future__ import annotations

from crux_workspace.errors import InvalidInputError
from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.storage.minimal import CreatingStore, MinimalStore
from storage_adapters.journaled.owner import SoleProcess
from storage_adapters.journaled.store import JournaledRecordStore

__all__ = ["journaled"]

_LEAST_VALUE_BYTES = 256 << 10


def journaled(
    store: MinimalStore,
    *,
    prefix: str = "",
    durable: bool = False,
    max_value_bytes: int | None = None,
    beat_s: float = 2.0,
    lease_s: float = 10.0,
) -> JournaledRecordStore:
    """Make a record store of one that only knows get, put, delete and list, and perhaps create.

    It gives transactions, versions, watching and crash recovery: a commit is one `create`, and nothing that is half done counts. With
    an atomic ``create`` (`CreatingStore`) any number of processes may use it; without one, one process at a time.

    Args:
        store: The store; the caller closes it.
        prefix: What all keys begin with; ASCII letters, digits and ``/._-``.
        durable: Whether what the store acknowledges survives the death of the process.
        max_value_bytes: Most bytes of JSON that the store takes as one value, at least 256 KiB; a commit is one value.
        beat_s: Without create: how often the owner's record is renewed.
        lease_s: Without create: how long an owner is believed to live that shows no sign of life; at least twice `beat_s`.

    Returns:
        The record store; it does nothing until it is used.

    Raises:
        InvalidInputError: An argument is out of its range.
    """
    if max_value_bytes is not None and max_value_bytes < _LEAST_VALUE_BYTES:
        raise InvalidInputError("max_value_bytes must be at least 262,144.")
    if not prefix.isascii() or not all(c.isalnum() or c in "/._-" for c in prefix):
        raise InvalidInputError("A prefix has ASCII letters, digits and /._- only.")
    if not 0 < beat_s <= lease_s / 2:
        raise InvalidInputError("lease_s must be at least twice beat_s, and beat_s more than 0.")
    capabilities = StoreCapabilities(
        multi_process=isinstance(store, CreatingStore),
        durable=durable,
        max_commit_bytes=None if max_value_bytes is None else max_value_bytes // 2,
    )
    if isinstance(store, CreatingStore):
        return JournaledRecordStore(store, prefix, capabilities, max_value_bytes)
    sole = SoleProcess(store, f"{prefix}owner", beat_s=beat_s, lease_s=lease_s)
    return JournaledRecordStore(sole, prefix, capabilities, max_value_bytes)
