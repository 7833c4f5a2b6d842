"""Hashing that leaves the event loop free."""

from __future__ import annotations

import asyncio
import hashlib

__all__ = ["ON_LOOP_BYTES", "add_to"]

ON_LOOP_BYTES = 1 << 16
"""More than that is hashed in a thread, which costs about as much as hashing this."""


async def add_to(digest: hashlib._Hash, data: bytes | bytearray) -> None:
    """Hash more bytes; many of them beside the loop. Nobody changes `data` meanwhile."""
    if len(data) <= ON_LOOP_BYTES:
        digest.update(data)
    else:
        await asyncio.to_thread(digest.update, data)
