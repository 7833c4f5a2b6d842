"""From what a caller hands over to the bytes of a version, and back."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import hashlib
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, TypeVar
from urllib.parse import quote

from msgspec import Struct

from crux_workspace.engine.changeset import NewContent
from crux_workspace.engine.codec import Attributes
from crux_workspace.engine.ports import EnginePorts
from crux_workspace.errors import (
    ErrorCode,
    InvalidInputError,
    LimitExceededError,
    StateError,
    StorageError,
    WorkspaceError,
)
from crux_workspace.model.jsontext import dump_compact, load, pretty
from crux_workspace.model.lines import count_lines
from crux_workspace.storage.assets import (
    AssetNotFound,
    AssetStore,
    AssetTooLarge,
    PutOptions,
    StoredAsset,
)
from crux_workspace.storage.failures import unavailable

__all__ = [
    "PREVIEW_CHARACTERS",
    "Prepared",
    "asset_prefix",
    "check_file_size",
    "chunks_of",
    "content_value",
    "corrupt",
    "discard",
    "inline_text",
    "is_stream",
    "json_of",
    "load_text",
    "off_loop",
    "open_asset",
    "prepare",
    "prepare_text",
    "stored",
    "stream_bytes",
    "text_of",
    "utf8",
]

PREVIEW_CHARACTERS = 240
_CHUNK = 1 << 18
_OFF_LOOP_BYTES = 1 << 20
_PARTS_ON_LOOP = 2_000
_T = TypeVar("_T")


class Prepared(Struct):
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


def preview_of(text: str) -> str:
    """Cut text to a preview."""
    return text if len(text) <= PREVIEW_CHARACTERS else text[: PREVIEW_CHARACTERS - 3] + "..."


def check_file_size(ports: EnginePorts, path: str, size: int) -> None:
    """Refuse a file above `max_file_bytes` (``FILE_TOO_LARGE``)."""
    limit = ports.limits.max_file_bytes
    if limit is not None and size > limit:
        raise LimitExceededError(
            f"{path} would have {size} bytes, max_file_bytes is {limit}.",
            code=ErrorCode.FILE_TOO_LARGE,
            details={"path": path, "size": size, "limit": limit, "used": None},
        )


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
    if encoding is not None and not _is_utf8(encoding):
        raise InvalidInputError("encoding must be 'utf-8' or None.", details={"option": "encoding"})
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
    large = len(text) >= _OFF_LOOP_BYTES
    content = await asyncio.to_thread(_analysed, path, text) if large else _analysed(path, text)
    assert content.body is not None
    if not _stays_inline(ports, path, content):
        await _upload(ports, path, content, content.body, mime_type)
    return Prepared(content)


def _analysed(path: str, text: str) -> NewContent:
    return inline_text(text, utf8(path, text))


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


def _is_utf8(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name == "utf-8"
    except (LookupError, TypeError, ValueError):
        return False


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


class _Measure:
    """Runs along a stream: size, hash, and for text its validity, lines and first characters."""

    def __init__(self, ports: EnginePorts, path: str, *, text: bool) -> None:
        self.ports = ports
        self.path = path
        self.size = 0
        self.hash = hashlib.sha256()
        self.decoder = codecs.getincrementaldecoder("utf-8")() if text else None
        self.newlines = 0
        self.last = b""
        self.start = ""

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        check_file_size(self.ports, self.path, self.size)
        self.hash.update(chunk)
        if self.decoder is not None and chunk:
            self.newlines += chunk.count(b"\n")
            self.last = chunk[-1:]
            self.decode(chunk)

    def decode(self, chunk: bytes, *, final: bool = False) -> None:
        assert self.decoder is not None
        try:
            text = self.decoder.decode(chunk, final)
        except UnicodeDecodeError:
            raise InvalidInputError(
                f"The stream for {self.path} is not UTF-8; leave encoding out to store it as binary.",
                code=ErrorCode.INVALID_CONTENT,
                details={"path": self.path},
            ) from None
        if len(self.start) <= PREVIEW_CHARACTERS:
            self.start += text[: PREVIEW_CHARACTERS + 1]

    def content(self) -> NewContent:
        if self.decoder is None:
            return NewContent(kind="b", size=self.size, sha256=self.hash.hexdigest())
        return NewContent(
            kind="t",
            size=self.size,
            sha256=self.hash.hexdigest(),
            lines=self.newlines + (self.size > 0 and self.last != b"\n"),
            preview=preview_of(self.start),
        )


async def _stream(
    ports: EnginePorts,
    path: str,
    chunks: AsyncIterator[bytes],
    mime_type: str,
    encoding: str | None,
) -> Prepared:
    """Store a stream in constant memory; text that turns out small stays inline."""
    measure = _Measure(ports, path, text=encoding is not None)
    head = bytearray()
    small = ports.content.inline_text_below_bytes
    async for chunk in chunks:
        measure.add(chunk)
        head += chunk
        if encoding is None or len(head) > small:
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
                measure.add(chunk)
                yield chunk
            if measure.decoder is not None:
                measure.decode(b"", final=True)
        except Exception as error:
            broken.append(error)
            raise

    started = ports.clock()
    try:
        asset = await _put(ports, path, measured(), mime_type)
    except Exception:
        if broken:
            raise broken[0] from None  # the caller's own stream failed, not the store
        raise
    content = measure.content()
    _placed_in(content, asset, started)
    return Prepared(content)


# -- assets


def _assets(ports: EnginePorts, path: str) -> AssetStore:
    if ports.assets is None:
        raise StateError(
            f"{path} needs an asset store (binary content, or text above "
            f"{ports.content.inline_text_below_bytes} bytes), and this workspace has none.",
            code=ErrorCode.ASSET_STORE_REQUIRED,
            details={"path": path},
            hint="Open the storage with an assets URL, or pass storage(records=..., assets=...).",
        )
    return ports.assets


async def _upload(
    ports: EnginePorts, path: str, content: NewContent, data: bytes, mime_type: str
) -> None:
    started = ports.clock()
    _placed_in(content, await _put(ports, path, data, mime_type), started)


def _placed_in(content: NewContent, asset: StoredAsset, started: int) -> None:
    content.body = None
    content.asset, content.uri = asset.ref, asset.uri
    content.uploaded_at = min(started, asset.created_at)


async def _put(
    ports: EnginePorts, path: str, data: bytes | AsyncIterator[bytes], mime_type: str
) -> StoredAsset:
    assets = _assets(ports, path)
    key = asset_prefix(ports.workspace_id, ports.namespace) + ports.ids()
    limit = ports.limits.max_file_bytes
    options = PutOptions(key=key, mime_type=mime_type, max_bytes=limit)
    try:
        return await assets.put(data, options)
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


async def discard(ports: EnginePorts, content: NewContent | None) -> None:
    """Delete an upload that nothing refers to; a failure leaves it to the orphan sweep."""
    if content is None or content.uploaded_at is None or ports.assets is None:
        return
    assert content.asset is not None
    with contextlib.suppress(Exception):  # gc deletes what stays behind
        await ports.assets.delete(content.asset)


# -- back


async def stored(ports: EnginePorts, path: str, of: Attributes, body: bytes | None) -> bytes:
    """Return the bytes as they are stored, checked against their hash.

    Raises:
        StorageError: The asset is gone (``ASSET_MISSING``), or the bytes are not those that were written (``RECORD_CORRUPT``).
    """
    if of.asset is None:
        if body is None:
            raise corrupt(path, "its content is missing")
        return body
    data = await open_asset(ports, of.asset, path)
    digest = await off_loop(len(data), lambda: hashlib.sha256(data).hexdigest())
    if digest != of.sha256:
        raise corrupt(path, "its bytes do not match their hash")
    return data


async def open_asset(ports: EnginePorts, ref: str, path: str = "The asset") -> bytes:
    """Return an asset's bytes (`ASSET_MISSING` when they are gone)."""
    assets = _assets(ports, path)
    try:
        return await assets.get(ref)
    except AssetNotFound:
        raise _asset_missing(path) from None
    except WorkspaceError:
        raise
    except Exception as error:
        raise unavailable("asset store", error) from error


def _asset_missing(path: str) -> StorageError:
    return StorageError(
        f"The bytes of {path} are not in the asset store any more.",
        code=ErrorCode.ASSET_MISSING,
        details={"path": path},
    )


def corrupt(path: str, why: str) -> StorageError:
    """Make the error of content that is damaged."""
    return StorageError(
        f"{path} cannot be read: {why}; restore it from a backup.",
        code=ErrorCode.RECORD_CORRUPT,
        details={"path": path},
    )


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
    if of.asset is None:
        data = await stored(ports, path, of, body)
        end = len(data) if length is None else min(len(data), offset + length)
        for start in range(offset, end, chunk_bytes):
            yield data[start : min(end, start + chunk_bytes)]
        return
    if offset and offset >= of.size:
        return
    whole = offset == 0 and (length is None or length >= of.size)
    digest = hashlib.sha256()
    async with aclosing(_asset_pieces(ports, path, of.asset, offset, length)) as pieces:
        async for piece in pieces:
            if whole:
                digest.update(piece)
            for start in range(0, len(piece), chunk_bytes):
                yield piece[start : start + chunk_bytes]
    if whole and digest.hexdigest() != of.sha256:
        raise corrupt(path, "its bytes do not match their hash")


async def _asset_pieces(
    ports: EnginePorts, path: str, ref: str, offset: int, length: int | None
) -> AsyncGenerator[bytes, None]:
    """Iterate over a range of an asset's bytes as the store gives them."""
    pieces = _assets(ports, path).stream(ref, offset, length)
    try:
        async for piece in pieces:
            yield piece
    except AssetNotFound:
        raise _asset_missing(path) from None
    except WorkspaceError:
        raise
    except Exception as error:
        raise unavailable("asset store", error) from error
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()
