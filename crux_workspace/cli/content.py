"""Content on its way in: from stdin, a file or the command line, in constant memory, told apart into text and binary."""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from typing import IO, BinaryIO, Literal, TypeAlias

from crux_workspace.errors import ErrorCode, InvalidInputError

__all__ = ["SMALL_BYTES", "Incoming", "Taken", "incoming", "open_argument", "text_of"]

SMALL_BYTES = 1 << 20
"""Up to this size content is handed over whole."""
_CHUNK_BYTES = 1 << 20

Source: TypeAlias = "bytes | AsyncIterator[bytes]"


class Taken(StrEnum):
    """How bytes are taken: as they look, or as the caller says."""

    AS_IT_LOOKS = "auto"
    TEXT = "text"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Incoming:
    """What `write` is given."""

    content: Source
    encoding: Literal["utf-8"] | None
    """For text; None makes the bytes binary."""


def open_argument(text: str | None, file: Path | None) -> IO[bytes]:
    """Return a rewindable file with what TEXT, a file or (for ``-`` and for nothing) stdin holds.

    What cannot be rewound is kept in a temporary file, so memory stays constant. Call it outside a running loop: there Ctrl-C could
    not interrupt it.
    """
    if text is not None and text != "-":
        return BytesIO(os.fsencode(text))
    if file is None:
        return _spooled(sys.stdin.buffer)
    opened = file.open("rb")
    if opened.seekable():
        return opened
    with opened:
        return _spooled(opened)


def incoming(
    file: IO[bytes], taken: Taken = Taken.AS_IT_LOOKS, read: Callable[[int], None] | None = None
) -> Incoming:
    """Return a rewindable file as content.

    Args:
        file: Read from its start; the caller closes it after the write.
        taken: As it looks, valid UTF-8 without NUL is text and everything else is binary.
        read: Called with the number of bytes of each part that was read.
    """
    is_text = _looks_like_text(file) if taken is Taken.AS_IT_LOOKS else taken is Taken.TEXT
    file.seek(0)
    head = file.read(SMALL_BYTES)
    content: Source = head
    if len(head) < SMALL_BYTES:
        _told(read, head)
    else:
        file.seek(0)
        content = _chunks(file, read)
    return Incoming(content, "utf-8" if is_text else None)


def text_of(file: IO[bytes]) -> str:
    """Return the whole of a file as text.

    Raises:
        InvalidInputError: It is not UTF-8 (``INVALID_CONTENT``).
    """
    try:
        return file.read().decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"The content is not UTF-8: byte {error.start} cannot be decoded.",
            code=ErrorCode.INVALID_CONTENT,
            hint="Convert it to UTF-8 first, or store it as binary by crux-workspace write --binary.",
        ) from None


def _spooled(stream: BinaryIO) -> IO[bytes]:
    kept = tempfile.SpooledTemporaryFile(max_size=SMALL_BYTES)  # noqa: SIM115 - the caller closes it
    read = getattr(stream, "read1", stream.read)  # one system call each, so Ctrl-C is heard between
    while data := read(_CHUNK_BYTES):
        kept.write(data)
    kept.seek(0)
    return kept


def _looks_like_text(file: IO[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    file.seek(0)
    try:
        while data := file.read(_CHUNK_BYTES):
            if b"\0" in data:
                return False
            decoder.decode(data)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


async def _chunks(file: IO[bytes], read: Callable[[int], None] | None) -> AsyncIterator[bytes]:
    while data := await asyncio.to_thread(file.read, _CHUNK_BYTES):
        _told(read, data)
        yield data


def _told(read: Callable[[int], None] | None, data: bytes) -> None:
    if read is not None:
        read(len(data))
