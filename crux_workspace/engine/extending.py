"""Adding text to content in the asset store: a part more instead of the whole again."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import aclosing

from crux_workspace.engine.changeset import NewContent
from crux_workspace.engine.codec import Attributes, Part
from crux_workspace.engine.content import Prepared, off_loop, put_asset
from crux_workspace.engine.measuring import Running, check_file_size, preview_of, remember
from crux_workspace.engine.parts import kept_parts, running_of, stream_parts
from crux_workspace.engine.ports import EnginePorts
from crux_workspace.model.streams import utf8

__all__ = ["extended"]


async def extended(
    ports: EnginePorts, path: str, of: Attributes, text: str, mime_type: str
) -> Prepared:
    """Upload text that goes behind a content, which shares its assets with the version before.

    Memory: the added text, and a chunk of what is there.
    Cost: one asset call; reading what is there, where this process does not know its hash state; at 64 parts the last ones are joined.

    Raises:
        LimitExceededError: The file would pass `max_file_bytes` (``FILE_TOO_LARGE``).
        StorageError: An asset is gone (``ASSET_MISSING``) or damaged (``RECORD_CORRUPT``), or the store failed.
    """
    data = utf8(path, text)
    check_file_size(ports, path, of.size + len(data))
    content = NewContent.again(of, None)
    if data:
        running = await running_of(ports, path, of)
        await off_loop(len(data), lambda: running.add(data))
        await _extend(ports, path, of, content, data, mime_type)
        _describe(content, of, text, running)
        hashes = [part.sha256 for part in content.parts] or [content.sha256]
        remember(hashes, running)
    return Prepared(content)


async def _extend(
    ports: EnginePorts,
    path: str,
    of: Attributes,
    content: NewContent,
    data: bytes,
    mime_type: str,
) -> None:
    """Place the content: its parts as they are, and one more; or the first ones, and one that joins the others."""
    parts = of.pieces()
    kept = kept_parts(parts)
    hasher = hashlib.sha256()
    if kept == len(parts):
        hasher.update(data)
        upload = await put_asset(ports, path, data, mime_type)
    else:
        offset = sum(part.size for part in parts[:kept])

        async def joined() -> AsyncIterator[bytes]:
            async with aclosing(stream_parts(ports, path, of, offset=offset)) as chunks:
                async for chunk in chunks:
                    hasher.update(chunk)
                    yield chunk
            hasher.update(data)
            yield data

        upload = await put_asset(ports, path, joined(), mime_type)
    size = of.size + len(data) - sum(part.size for part in parts[:kept])
    content.uploads = (upload,)
    if kept:
        content.asset, content.uri = None, None
        content.parts = (*parts[:kept], Part(upload.ref, size, hasher.hexdigest()))
    else:
        content.asset, content.uri, content.parts = upload.ref, upload.uri, ()


def _describe(content: NewContent, of: Attributes, text: str, running: Running) -> None:
    shown = of.preview or ""
    if len(shown.encode()) == of.size:
        content.preview = preview_of(shown + text)
    content.size, content.sha256 = running.size, running.hash.hexdigest()
    content.lines, content.line_index = running.lines, running.index()
