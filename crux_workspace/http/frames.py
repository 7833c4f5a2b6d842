"""Server-sent events as they arrive: cut into frames, each bounded in size."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from crux_workspace.http.problems import corrupt, parsed

__all__ = ["MAX_FRAME_BYTES", "Frame", "frames"]

MAX_FRAME_BYTES = 1 << 20
"""Longest frame that is taken in."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One event as it was sent."""

    name: str
    id: str | None
    data: str = field(repr=False)

    def json(self) -> dict[str, Any]:
        """Return the JSON object that it holds.

        Raises:
            StorageError: It holds none (``RECORD_CORRUPT``).
        """
        value = parsed(self.data.encode())
        if not isinstance(value, dict):
            raise corrupt("it is no event")
        return value


async def frames(body: AsyncIterator[bytes]) -> AsyncIterator[Frame]:
    """Iterate over the frames of a body; comments and what is cut off at the end are no frames.

    Raises:
        StorageError: A frame is too long, or no UTF-8 (``RECORD_CORRUPT``).
    """
    lines: list[bytes] = []
    size = 0
    async for line in _lines(body):
        if line:
            size += len(line)
            if size > MAX_FRAME_BYTES:
                raise corrupt("an event is too long")
            lines.append(line)
            continue
        if (frame := _frame(lines)) is not None:
            yield frame
        lines, size = [], 0


async def _lines(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Iterate over the lines of a body; they end in LF, CRLF or CR."""
    rest = b""
    async for chunk in body:
        rest += chunk
        if rest.endswith(b"\r"):
            continue  # the LF that belongs to it may be on its way
        *whole, rest = rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield line
        if len(rest) > MAX_FRAME_BYTES:
            raise corrupt("an event is too long")


def _frame(lines: list[bytes]) -> Frame | None:
    name, found_id, data = "message", None, []
    try:
        for line in lines:
            key, _, value = line.decode().partition(":")
            value = value.removeprefix(" ")
            if key == "event":
                name = value
            elif key == "id":
                found_id = value
            elif key == "data":
                data.append(value)
    except UnicodeDecodeError:
        raise corrupt("an event is no UTF-8") from None
    if found_id is None and not data:
        return None
    return Frame(name, found_id, "\n".join(data))
