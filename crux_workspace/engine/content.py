"""From what a caller hands over to the bytes of a version, and back."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, TypeVar
from urllib.parse import quote

from msgspec import Struct

from crux_workspace.engine.changeset import NewContent, Upload
from crux_workspace.engine.codec import Attributes
from crux_workspace.engine.measuring import (
    Measure,
    Running,
    check_file_size,
    preview_of,
    remember,
)
from crux_workspace.engine.parts import asset_store, corrupt, load_parts, stream_parts
from crux_workspace.engine.ports import EnginePorts
from crux_workspace.errors import (
    ErrorCode,
    InvalidInputError,
    LimitExceededError,
    WorkspaceError,
)
from crux_workspace.model.jsontext import dump_compact, load, pretty
from crux_workspace.model.lines import count_lines
from crux_workspace.model.streams import check_encoding, chunks_of, is_stream, utf8
from crux_workspace.storage.assets import AssetTooLarge, PutOptions
from crux_workspace.storage.failures import unavailable

__all__ = [
    "Prepared",
    "asset_prefix",
    "content_value",
    "discard",
    "inline_text",
    "json_of",
    "load_text",
    "off_loop",
    "prepare",
    "prepare_text",
    "put_asset",
    "stored",
    "stream_bytes",
    "text_of",
]

_OFF_LOOP_BYTES = 1 << 20
_WHOLE_BYTES = 1 << 16
"""A stream of bytes up to here is handed on whole: an asset store then needs fewer trips than for one that may go on."""
_PARTS_ON_LOOP = 2_000
_T = TypeVar("_T")


class Prepared(Struct, gc=False):
    """Content that is ready to be planned with: analysed, and uploaded where it goes to the asset store."""

    content: NewContent

    @property
    def digest(self) -> str:
        """Kind and hash, for comparing requests."""
        return f"{self.content.kind}:{self.content.sha256}"


def asset_prefix(workspace_id: str, namespace: str) -> str:
    """Prefix of a namespace's asset keys; segments over 200 bytes are hashed."""
    return "".join(_segment(part) + "/" for part in (workspace_id, namespace))


def _segment(part: str) -> str:
    encoded = quote(part, safe="").replace(".", "%2E").replace("~", "%7E")
    return encoded if len(encoded) <= 200 else "~" + hashlib.sha256(part.encode()).hexdigest()


async def prepare(
    ports: EnginePorts,
    path: str,
    content: Any,  # noqa: ANN401 - whatever a caller hands over
    *,
    mime_type: str,
    encoding: str | None = None,
) -> Prepared:
    """Analyse content and upload it where it does not stay inline.

    Raises:
        InvalidInputError: It is no content (``INVALID_CONTENT``), or the encoding is not utf-8 (``INVALID_ARGUMENT``).
        LimitExceededError: It passes `max_file_bytes` (``FILE_TOO_LARGE``).
        StateError: It needs an asset store and there is none (``ASSET_STORE_REQUIRED``).
    """
    check_encoding(encoding)
    if isinstance(content, str):
        return await prepare_text(ports, path, content, mime_type=mime_type)
    if isinstance(content, bytes | bytearray | memoryview):
        data = bytes(content)
        if encoding is not None:
            return await prepare_text(ports, path, _decoded(path, data), mime_type=mime_type)
        check_file_size(ports, path, len(data))
        return await _binary(ports, path, data, mime_type)
    if is_stream(content):
        return await _stream(ports, path, chunks_of(path, content), mime_type, encoding)
    large = _has_many_parts(content)
    data = await asyncio.to_thread(dump_compact, content) if large else dump_compact(content)
    analysed = NewContent(
        kind="j",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        preview=preview_of(data.decode()),
        body=data,
    )
    if not _stays_inline(ports, path, analysed):
        await _upload(ports, path, analysed, data, mime_type)
    return Prepared(analysed)


def _has_many_parts(value: object) -> bool:
    """Tell whether a JSON value is so large that writing it out would hold the loop; looks at a bounded part of it."""
    waiting, seen = [value], 0
    while waiting:
        item = waiting.pop()
        seen += 1
        if seen + len(waiting) > _PARTS_ON_LOOP:
            return True
        if isinstance(item, dict | list):
            if len(item) > _PARTS_ON_LOOP:
                return True
            waiting += item.values() if isinstance(item, dict) else item
    return False


async def prepare_text(ports: EnginePorts, path: str, text: str, *, mime_type: str) -> Prepared:
    """Analyse text and upload it where it is too large to stay inline."""
    text = str.__str__(text)
    most = ports.content.inline_text_below_bytes
    if len(text) >= _OFF_LOOP_BYTES:
        content = await asyncio.to_thread(_analysed, path, text, most)
    else:
        content = _analysed(path, text, most)
    check_file_size(ports, path, content.size)
    if content.size > most:
        assert content.body is not None
        await _upload(ports, path, content, content.body, mime_type)
    return Prepared(content)


def _analysed(path: str, text: str, most_inline: int) -> NewContent:
    data = utf8(path, text)
    return (inline_text if len(data) <= most_inline else _large_text)(text, data)


def inline_text(text: str, data: bytes) -> NewContent:
    """Describe text that stays in the record."""
    return NewContent(
        kind="t",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        lines=count_lines(text),
        preview=preview_of(text),
        body=data,
    )


def _large_text(text: str, data: bytes) -> NewContent:
    """Describe text that goes to the asset store, and remember its state for appends."""
    running = Running()
    running.add(data)
    digest = running.hash.hexdigest()
    remember((digest,), running)
    return NewContent(
        kind="t",
        size=len(data),
        sha256=digest,
        lines=running.lines,
        preview=preview_of(text),
        body=data,
        line_index=running.index(),
    )


def _stays_inline(ports: EnginePorts, path: str, content: NewContent) -> bool:
    check_file_size(ports, path, content.size)
    return content.size <= ports.content.inline_text_below_bytes


async def _binary(ports: EnginePorts, path: str, data: bytes, mime_type: str) -> Prepared:
    digest = await off_loop(len(data), lambda: hashlib.sha256(data).hexdigest())
    content = NewContent(kind="b", size=len(data), sha256=digest)
    await _upload(ports, path, content, data, mime_type)
    return Prepared(content)


async def off_loop(size: int, work: Callable[[], _T]) -> _T:
    """Do work on `size` bytes, in a thread when it would hold the loop."""
    return work() if size < _OFF_LOOP_BYTES else await asyncio.to_thread(work)


def _decoded(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"The bytes for {path} are not UTF-8 (at byte {error.start}); leave encoding out to store them as binary.",
            code=ErrorCode.INVALID_CONTENT,
            details={"path": path, "position": error.start},
        ) from None


# -- streams


async def _stream(
    ports: EnginePorts,
    path: str,
    chunks: AsyncIterator[bytes],
    mime_type: str,
    encoding: str | None,
) -> Prepared:
    """Store a stream in constant memory; what turns out small is treated as if it had been given whole."""
    measure = Measure(ports, path, text=encoding is not None)
    head = bytearray()
    small = _WHOLE_BYTES if encoding is None else ports.content.inline_text_below_bytes
    async for chunk in chunks:
        await _measured(measure, chunk)
        head += chunk
        if len(head) > small:
            break
    else:
        data = bytes(head)
        if encoding is not None:
            return await prepare_text(ports, path, _decoded(path, data), mime_type=mime_type)
        return await _binary(ports, path, data, mime_type)

    broken: list[Exception] = []

    async def measured() -> AsyncIterator[bytes]:
        yield bytes(head)
        try:
            async for chunk in chunks:
                await _measured(measure, chunk)
                yield chunk
            measure.finish()
        except Exception as error:
            broken.append(error)
            raise

    try:
        upload = await put_asset(ports, path, measured(), mime_type)
    except Exception:
        if broken:
            # The caller's own stream failed, not the store.
            raise broken[0] from broken[0].__cause__
        raise
    content = measure.content()
    _placed_in(content, upload)
    return Prepared(content)


async def _measured(measure: Measure, chunk: bytes) -> None:
    """Measure a chunk, which may be as large as its giver likes."""
    await off_loop(len(chunk), lambda: measure.add(chunk))


# -- assets


async def _upload(
    ports: EnginePorts, path: str, content: NewContent, data: bytes, mime_type: str
) -> None:
    _placed_in(content, await put_asset(ports, path, data, mime_type))


def _placed_in(content: NewContent, upload: Upload) -> None:
    content.body = None
    content.asset, content.uri = upload.ref, upload.uri
    content.uploads = (upload,)


async def put_asset(
    ports: EnginePorts, path: str, data: bytes | AsyncIterator[bytes], mime_type: str
) -> Upload:
    """Store bytes under a key of their own.

    Raises:
        LimitExceededError: They pass `max_file_bytes` (``FILE_TOO_LARGE``).
        StateError: There is no asset store (``ASSET_STORE_REQUIRED``).
        StorageError: The store failed (``STORE_UNAVAILABLE``).
    """
    assets = asset_store(ports, path)
    key = asset_prefix(ports.workspace_id, ports.namespace) + ports.ids()
    limit = ports.limits.max_file_bytes
    options = PutOptions(key=key, mime_type=mime_type, max_bytes=limit)
    started = ports.clock()
    try:
        asset = await assets.put(data, options)
    except AssetTooLarge as large:
        raise LimitExceededError(
            f"{path} is larger than {large.limit} bytes, the most that may be stored; store less.",
            code=ErrorCode.FILE_TOO_LARGE,
            details={"path": path, "size": None, "limit": large.limit, "used": None},
        ) from None
    except WorkspaceError:
        raise
    except Exception as error:
        raise unavailable("asset store", error) from error
    at = min(started, asset.created_at)
    return Upload(asset.ref, asset.size, asset.sha256, asset.uri, at)


async def discard(ports: EnginePorts, *uploads: Upload) -> None:
    """Delete uploads; a failure leaves them to the orphan sweep."""
    for upload in uploads:
        if ports.assets is not None:
            with contextlib.suppress(Exception):  # gc deletes what stays behind
                await ports.assets.delete(upload.ref)


# -- back


async def stored(ports: EnginePorts, path: str, of: Attributes, body: bytes | None) -> bytes:
    """Return the bytes as they are stored, checked against their hash.

    Raises:
        StorageError: The asset is gone (``ASSET_MISSING``), or the bytes are not those that were written (``RECORD_CORRUPT``).
    """
    if not of.is_inline:
        return await load_parts(ports, path, of)
    if body is None:
        raise corrupt(path, "its content is missing")
    return body


async def load_text(ports: EnginePorts, path: str, of: Attributes, body: bytes | None) -> str:
    """Return a version as text; JSON in its pretty form. The caller has refused binary content."""
    data = await stored(ports, path, of, body)
    return await off_loop(len(data), lambda: text_of(path, of, data))


async def content_value(ports: EnginePorts, path: str, of: Attributes, body: bytes | None) -> Any:  # noqa: ANN401 - str, JSON value or bytes
    """Return a version as the value that was written."""
    data = await stored(ports, path, of, body)
    if of.kind == "t":
        return text_of(path, of, data)
    return json_of(path, data) if of.kind == "j" else data


def text_of(path: str, of: Attributes, data: bytes | None) -> str:
    """Decode a version's bytes; JSON in its pretty form.

    Raises:
        StorageError: They are not what was written (``RECORD_CORRUPT``).
    """
    try:
        if data is not None:
            return pretty(data) if of.kind == "j" else data.decode()
    except (ValueError, RecursionError) as error:
        raise corrupt(path, "its bytes are not what was written") from error
    raise corrupt(path, "its content is missing")


def json_of(path: str, data: bytes) -> Any:  # noqa: ANN401 - a JSON value
    """Load a version's JSON value.

    Raises:
        StorageError: The bytes are not what was written (``RECORD_CORRUPT``).
    """
    try:
        return load(data)
    except (ValueError, RecursionError) as error:
        raise corrupt(path, "its bytes are not what was written") from error


async def stream_bytes(
    ports: EnginePorts,
    path: str,
    of: Attributes,
    body: bytes | None,
    *,
    offset: int,
    length: int | None,
    chunk_bytes: int,
) -> AsyncGenerator[bytes, None]:
    """Iterate over a range of a version's bytes, in chunks of at most `chunk_bytes`; closes what it opened when left early."""
    if of.is_inline:
        data = await stored(ports, path, of, body)
        end = len(data) if length is None else min(len(data), offset + length)
        for start in range(offset, end, chunk_bytes):
            yield data[start : min(end, start + chunk_bytes)]
        return
    async with aclosing(stream_parts(ports, path, of, offset=offset, length=length)) as pieces:
        async for piece in pieces:
            for start in range(0, len(piece), chunk_bytes):
                yield piece[start : start + chunk_bytes]
