"""Contents as callers hand them over: text that has to be UTF-8, and streams of bytes."""

from __future__ import annotations

import asyncio
import codecs
import inspect
from collections.abc import AsyncIterator
from typing import Any

from crux_workspace.errors import ErrorCode, InvalidInputError

__all__ = ["at_most", "check_encoding", "chunks_of", "is_stream", "utf8"]

_CHUNK = 1 << 18


def check_encoding(encoding: str | None) -> None:
    """Refuse an encoding of bytes other than UTF-8 (``INVALID_ARGUMENT``)."""
    if encoding is not None and not _is_utf8(encoding):
        raise InvalidInputError("encoding must be 'utf-8' or None.", details={"option": "encoding"})


def _is_utf8(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name == "utf-8"
    except (LookupError, TypeError, ValueError):
        return False


def utf8(path: str, text: str) -> bytes:
    """Encode text, or refuse lone surrogates (``INVALID_CONTENT``)."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"The text for {path} has a lone surrogate at character {error.start + 1}, which UTF-8 cannot write.",
            code=ErrorCode.INVALID_CONTENT,
            details={"path": path, "position": error.start},
        ) from None


async def at_most(chunks: AsyncIterator[bytes], most: int) -> bytes | None:
    """Return the bytes of a stream, None when there are more than `most`: then no more than one chunk beyond them is taken.

    A generator is closed either way.
    """
    held = bytearray()
    close = getattr(chunks, "aclose", None)
    try:
        async for chunk in chunks:
            held += chunk
            if len(held) > most:
                return None
    finally:
        if close is not None:
            await close()
    return bytes(held)


def is_stream(content: object) -> bool:
    """Tell whether content is an async iterator or a file object."""
    return hasattr(content, "__aiter__") or hasattr(content, "read")


def chunks_of(path: str, content: Any) -> AsyncIterator[bytes]:  # noqa: ANN401 - a stream
    """Iterate over the bytes of a stream.

    Raises:
        InvalidInputError: It gives something else than bytes (``INVALID_CONTENT``).
    """
    if hasattr(content, "__aiter__"):
        return _checked_chunks(path, content)
    return _file_chunks(path, content)


async def _checked_chunks(path: str, source: Any) -> AsyncIterator[bytes]:  # noqa: ANN401
    async for chunk in source:
        yield _as_bytes(path, chunk)


async def _file_chunks(path: str, source: Any) -> AsyncIterator[bytes]:  # noqa: ANN401
    while True:
        chunk = _as_bytes(path, await asyncio.to_thread(source.read, _CHUNK))
        if not chunk:
            return
        yield chunk


def _as_bytes(path: str, chunk: object) -> bytes:
    if isinstance(chunk, bytes | bytearray | memoryview):
        return bytes(chunk)
    if inspect.iscoroutine(chunk):
        chunk.close()
    raise InvalidInputError(
        f"The stream for {path} gave {type(chunk).__name__} instead of bytes; open the file in binary mode.",
        code=ErrorCode.INVALID_CONTENT,
        details={"path": path},
        hint="Of an asynchronous file pass an async iterator of its chunks.",
    )
