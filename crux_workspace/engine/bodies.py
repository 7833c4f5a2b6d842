"""The content of ended versions as it was written, whatever way their bodies are kept in."""

from __future__ import annotations

import hashlib

import msgspec

from crux_workspace.engine.compression import DIFFERENCE, GROUP, group_end, restored
from crux_workspace.engine.entry import PastState
from crux_workspace.engine.keys import state_key, states_prefix
from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.storage.layout import number
from crux_workspace.storage.records import Reader

__all__ = ["base_key", "readable"]

_TRIES = 3


async def readable(reader: Reader, state: PastState) -> PastState | None:
    """Return a version's last state with its content as it was written; None when it was collected meanwhile.

    The bytes are checked against the version's hash. Cost: nothing for a body that is kept as it is or compressed by itself, else
    1 read for the chain, which ends within the version's group.

    Raises:
        StorageError: The body, or one that it is the difference from, is damaged or missing (``RECORD_CORRUPT``).
    """
    for _ in range(_TRIES):
        if state.state.enc is None or not state.state.is_inline:
            return state if state.body is None else _checked(state, state.body)
        chain = await _chain(reader, state)
        if chain is not None:
            return _decoded(state, chain)
        # Its base may have been collected since: then the same commit wrote this state again, or deleted it.
        [record] = await reader.get_many([state.key])
        if record is None:
            return None
        if record.revision == state.revision:
            raise _damaged(state, "the newer version that it is the difference from is missing")
        state = PastState.of(record)
    raise _damaged(state, "it changed with each look at it")


def base_key(state: PastState) -> str | None:
    """Return the key of the state whose text a difference is from."""
    base = state.state.base
    return None if base is None else state_key(state.file_id, *base)


async def _chain(reader: Reader, state: PastState) -> list[PastState] | None:
    """Return the states that lead from a whole text to this one, the whole one first; None when one is missing."""
    chain = [state]
    prefix = states_prefix(state.file_id)
    before = prefix + number(group_end(state.version) + 1)
    after = state.key
    while chain[0].state.enc == DIFFERENCE:
        page = await reader.scan(prefix, after=after, before=before, limit=GROUP, bodies=True)
        for record in page.records:
            if record.key == base_key(chain[0]):
                chain.insert(0, PastState.of(record))
                if chain[0].state.enc != DIFFERENCE:
                    break
        if page.next is None:
            break
        after = page.next
    return None if chain[0].state.enc == DIFFERENCE else chain


def _decoded(state: PastState, chain: list[PastState]) -> PastState:
    bodies = [link.body for link in chain if link.body is not None]
    if len(bodies) != len(chain) or any(not link.state.is_inline for link in chain):
        raise _damaged(state, "a body that it needs is missing")
    sizes = [link.state.size for link in chain]
    is_raw = chain[0].state.enc is None
    try:
        data = restored(bodies[0], is_raw=is_raw, differences=bodies[1:], sizes=sizes)
    except ValueError as error:
        raise _damaged(state, "its bytes are not what was written") from error
    plain = msgspec.structs.replace(state.state, enc=None, base=None)
    return _checked(msgspec.structs.replace(state, state=plain, body=data), data)


def _checked(state: PastState, data: bytes) -> PastState:
    if hashlib.sha256(data).hexdigest() != state.state.sha256:
        raise _damaged(state, "its bytes do not match their hash")
    return state


def _damaged(state: PastState, why: str) -> StorageError:
    path = state.state.version_path or "a file"
    return StorageError(
        f"Version {state.version} of {path} cannot be read: {why}; restore it from a backup.",
        code=ErrorCode.RECORD_CORRUPT,
        details={"path": path, "version": state.version},
    )
