"""Content in the asset store: one asset, or several one behind the other; read back in pieces and checked.

Every part that is read from its first byte to its last is held against its own hash, wherever it lies in the content. A range that
begins or ends within a part reads that piece of it only, unchecked, but for small parts: those are always read whole, and checked
before anything of them is given.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

from crux_workspace.engine.codec import Attributes, Part
from crux_workspace.engine.measuring import Running, recall
from crux_workspace.engine.ports import EnginePorts
from crux_workspace.errors import ErrorCode, StateError, StorageError, WorkspaceError
from crux_workspace.model.digests import ON_LOOP_BYTES, add_to
from crux_workspace.storage.assets import AssetNotFound, AssetStore
from crux_workspace.storage.failures import unavailable

__all__ = [
    "MAX_PARTS",
    "asset_store",
    "corrupt",
    "kept_parts",
    "load_parts",
    "open_asset",
    "running_of",
    "stream_parts",
]

MAX_PARTS = 64
"""Most assets that hold one content; an append to so many joins the last ones."""
_SMALL = 1 << 18


def corrupt(path: str, why: str) -> StorageError:
    """Make the error of content that is damaged."""
    return StorageError(
        f"{path} cannot be read: {why}; restore it from a backup.",
        code=ErrorCode.RECORD_CORRUPT,
        details={"path": path},
    )


def asset_store(ports: EnginePorts, path: str) -> AssetStore:
    """Return the asset store (``ASSET_STORE_REQUIRED`` where there is none)."""
    if ports.assets is None:
        raise StateError(
            f"{path} needs an asset store (binary content, or text above "
            f"{ports.content.inline_text_below_bytes} bytes), and this workspace has none.",
            code=ErrorCode.ASSET_STORE_REQUIRED,
            details={"path": path},
            hint="Open the storage with an assets URL, or pass storage(records=..., assets=...).",
        )
    return ports.assets


def _missing(path: str) -> StorageError:
    return StorageError(
        f"The bytes of {path} are not in the asset store any more.",
        code=ErrorCode.ASSET_MISSING,
        details={"path": path},
    )


async def open_asset(
    ports: EnginePorts, ref: str, path: str = "The asset", *, sha256: str | None
) -> bytes:
    """Return an asset's bytes, checked against their hash where it is known.

    Raises:
        StorageError: They are gone (``ASSET_MISSING``), or not what was written (``RECORD_CORRUPT``).
    """
    assets = asset_store(ports, path)
    try:
        data = await assets.get(ref)
    except AssetNotFound:
        raise _missing(path) from None
    except WorkspaceError:
        raise
    except Exception as error:
        raise unavailable("asset store", error) from error
    if sha256 is not None:
        hasher = hashlib.sha256()
        await add_to(hasher, data)
        _check(path, sha256, hasher.hexdigest())
    return data


async def load_parts(ports: EnginePorts, path: str, of: Attributes) -> bytes:
    """Return all bytes of a content.

    Raises:
        StorageError: An asset is gone (``ASSET_MISSING``), or is not what was written (``RECORD_CORRUPT``).
    """
    parts = of.pieces()
    if len(parts) == 1:
        return await _whole_part(ports, path, parts[0])
    data = bytearray()
    for part in parts:
        data += await _whole_part(ports, path, part)
    return bytes(data)


async def _whole_part(ports: EnginePorts, path: str, part: Part) -> bytes:
    return await open_asset(ports, part.ref, path, sha256=part.sha256)


def _check(path: str, expected: str, digest: str) -> None:
    if digest != expected:
        raise corrupt(path, "its bytes do not match their hash")


async def stream_parts(
    ports: EnginePorts, path: str, of: Attributes, *, offset: int = 0, length: int | None = None
) -> AsyncGenerator[bytes, None]:
    """Iterate over a range of a content as the store gives it; closes what it opened when left early."""
    end = of.size if length is None else min(of.size, offset + length)
    start = 0
    for part in of.pieces():
        first, last = max(offset - start, 0), min(end - start, part.size)
        start += part.size
        if first < last:
            async with aclosing(_piece(ports, path, part, first, last)) as chunks:
                async for chunk in chunks:
                    yield chunk


async def _piece(
    ports: EnginePorts, path: str, part: Part, first: int, last: int
) -> AsyncGenerator[bytes, None]:
    """Iterate over bytes `first` to `last` of one part."""
    if part.size <= _SMALL:
        yield (await _whole_part(ports, path, part))[first:last]
        return
    whole = (first, last) == (0, part.size)
    hasher = hashlib.sha256()
    length = None if whole else last - first
    got = 0
    async with aclosing(_chunks(ports, path, part.ref, first, length)) as chunks:
        async for chunk in chunks:
            got += len(chunk)
            if whole:
                await add_to(hasher, chunk)
            yield chunk
    if got != last - first:
        raise corrupt(path, "its asset is of another size")
    if whole:
        _check(path, part.sha256, hasher.hexdigest())


async def _chunks(
    ports: EnginePorts, path: str, ref: str, offset: int, length: int | None
) -> AsyncGenerator[bytes, None]:
    """Iterate over a range of an asset's bytes as the store gives them."""
    pieces = asset_store(ports, path).stream(ref, offset, length)
    try:
        async for piece in pieces:
            yield piece
    except AssetNotFound:
        raise _missing(path) from None
    except WorkspaceError:
        raise
    except Exception as error:
        raise unavailable("asset store", error) from error
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


# -- appending


async def running_of(ports: EnginePorts, path: str, of: Attributes) -> Running:
    """Return hash and line ends of a text, ready to be gone on with.

    Cost: nothing for a text that this process wrote, appended to or came through here with lately; else its parts are read.
    """
    parts = of.pieces()
    known, running = recall([part.sha256 for part in parts])
    offset = sum(part.size for part in parts[:known])
    if known < len(parts):
        async with aclosing(stream_parts(ports, path, of, offset=offset)) as chunks:
            async for chunk in chunks:
                if len(chunk) <= ON_LOOP_BYTES:
                    running.add(chunk)
                else:
                    await asyncio.to_thread(running.add, chunk)
    if running.hash.hexdigest() != of.sha256:
        raise corrupt(path, "its bytes do not match their hash")
    return running


def kept_parts(parts: tuple[Part, ...]) -> int:
    """Return how many of the first parts an append keeps: all, or, when there are too many, those before the ones that it joins.

    The last half is joined, and whatever lies before and is not larger than what is joined so far: a byte is joined a number of
    times that grows with the logarithm of the content, and a large first part stays.
    """
    if len(parts) < MAX_PARTS:
        return len(parts)
    kept = len(parts)
    joined = 0
    while kept and (len(parts) - kept < MAX_PARTS // 2 or parts[kept - 1].size <= joined):
        kept -= 1
        joined += parts[kept].size
    return kept
