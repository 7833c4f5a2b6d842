"""Assets as objects of whatever obstore reaches."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from datetime import timedelta
from heapq import nsmallest
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from crux_workspace.errors import ErrorCode, InvalidInputError, StateError, UnsupportedError
from crux_workspace.model.clocks import Clock, wall_clock_ms
from crux_workspace.model.digests import add_to
from crux_workspace.storage.assets import (
    AssetInfo,
    AssetPage,
    AssetTooLarge,
    PutOptions,
    StoredAsset,
)
from crux_workspace.storage.extras import need
from crux_workspace.storage.object_names import created_at_of, name_of, readable, stem_of
from storage_adapters.object_stores.failures import AlreadyThere, damaged, reporting
from storage_adapters.object_stores.feeding import feed

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["ObstoreAssetStore"]

_PART_BYTES = 8 << 20
_PARALLEL_PARTS = 3
_CHUNK_BYTES = 1 << 20
_LISTED = 1_000
_LONGEST_PREFIX_BYTES = 400


class ObstoreAssetStore:
    """An `AssetStore` over an obstore object store, shared by any number of processes and machines.

    Each put makes an object of its own, wholly there or absent. Streams are handled a part at a time. Where the store keeps
    attributes, assets of one part carry their hash and `get` holds them to it; of all others the workspace itself knows the hash.
    """

    def __init__(
        self,
        store: ObjectStore,
        prefix: str = "",
        *,
        base_uri: str = "obstore:///",
        lists_in_order: bool = True,
        clock: Clock = wall_clock_ms,
    ) -> None:
        """Use a store that the caller configured.

        Args:
            store: Any store of `obstore.store`.
            prefix: Where in the store; nothing else should be below it.
            base_uri: What the URIs of assets begin with; ends with a slash.
            lists_in_order: False for one that lists in no order, as a local folder does; then each page reads the whole listing.
            clock: Gives assets their time of creation.
        """
        prefix = prefix.strip("/")
        if "\0" in prefix or "//" in prefix or len(prefix.encode()) > _LONGEST_PREFIX_BYTES:
            raise InvalidInputError(
                f"The prefix of the assets has at most {_LONGEST_PREFIX_BYTES} bytes, and no empty segment."
            )
        self._module = need("obstore", "obstore")
        self._store = store
        self._prefix = prefix + "/" if prefix else ""
        self._base_uri = base_uri + readable(self._prefix)
        self._in_order = lists_in_order
        self._clock = clock
        self._attributes = True
        self._closed = False

    def __repr__(self) -> str:
        return f"ObstoreAssetStore({type(self._store).__name__})"

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """See `AssetStore.put`; what fits into one part is created only where there is nothing."""
        self._check()
        created_at = self._clock()
        ref = name_of(options.key, created_at)
        source = _Measured(_once(data) if isinstance(data, bytes) else data, options.max_bytes)
        async with aclosing(source.parts()) as parts:
            first = await anext(parts, b"")
            if source.ended:
                await self._create(ref, first, options, source)
            else:
                with reporting():
                    await feed(_with_first(first, parts), lambda chunks: self._send(ref, chunks))
        return StoredAsset(ref, self._base_uri + ref, source.size, source.sha256, created_at)

    async def get(self, ref: str) -> bytes:
        """See `AssetStore.get`."""
        self._check()
        with reporting(ref):
            found = await self._module.get_async(self._store, self._path(ref))
            data = bytes(await found.bytes_async())
            told = found.attributes.get("sha256")
        digest = hashlib.sha256()
        await add_to(digest, data)
        if told not in (None, digest.hexdigest()):
            raise damaged()
        return data

    async def stream(
        self, ref: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """See `AssetStore.stream`."""
        self._check()
        path = self._path(ref)
        with reporting(ref):
            size = (await self._module.head_async(self._store, path))["size"]
        end = size if length is None else min(size, offset + length)
        if offset >= end:
            return
        with reporting(ref):
            found = await self._module.get_async(
                self._store, path, options={"range": (offset, end)}
            )
            async for chunk in found.stream(min_chunk_size=_CHUNK_BYTES):
                for start in range(0, len(chunk), _PART_BYTES):
                    yield bytes(memoryview(chunk)[start : start + _PART_BYTES])

    async def delete(self, ref: str) -> None:
        """See `AssetStore.delete`."""
        await self.delete_many([ref])

    async def delete_many(self, refs: Sequence[str]) -> None:
        """See `DeletesMany.delete_many`; as many in a request as the store takes."""
        self._check()
        if not refs:
            return
        try:
            with reporting():
                await self._module.delete_async(self._store, [self._path(ref) for ref in refs])
        except Exception as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            for ref in refs if len(refs) > 1 else ():  # one that is absent may hide the others
                await self.delete_many([ref])

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """See `AssetStore.list`; objects that no put of ours made are left out."""
        self._check()
        stem = stem_of(prefix)
        found: list[AssetInfo] = []
        async for info in self._find(stem, after):
            found.append(info)
            if self._in_order and len(found) > limit:
                break
        if not self._in_order:
            found = nsmallest(limit + 1, found, key=lambda info: info.ref)
        return AssetPage(found[:limit], found[limit - 1].ref if len(found) > limit else None)

    async def presign(
        self, ref: str, *, expires_s: int = 3_600, filename: str | None = None
    ) -> str:
        """See `Presigns.presign`; only clouds sign, and only without a filename (``CAPABILITY_MISSING``).

        For Google and Azure obstore signs plain names only: a name with ``%``, for Azure one with any character that a URL escapes,
        is refused.
        """
        self._check()
        if filename is not None or not hasattr(self._store, "client_options"):
            raise UnsupportedError(
                "This object store signs no URLs, or none with a file name; leave the name out, or use s3://."
            )
        ref = ref.removeprefix(self._base_uri)
        with reporting():
            url: str = await self._module.sign_async(
                self._store, "GET", self._path(ref), timedelta(seconds=expires_s)
            )
        if not self._is_sound(url, ref):
            raise UnsupportedError(
                "This object store signs no URL for a name with such characters; "
                "use a prefix, an id and a namespace of plain letters, or s3://."
            )
        return url

    async def aclose(self) -> None:
        """See `AssetStore.aclose`; obstore keeps its connections for itself."""
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise StateError(
                "The asset store is closed; open it again.", code=ErrorCode.WORKSPACE_CLOSED
            )

    def _is_sound(self, url: str, ref: str) -> bool:
        """Whether a signed URL leads to the asset: obstore escapes no percent signs for Google, and signs escaped names for Azure."""
        path = urlsplit(url).path
        if type(self._store).__name__ == "AzureStore" and "%" in path:
            return False
        return unquote(path).endswith("/" + self._path(ref))

    def _path(self, ref: str) -> str:
        return self._prefix + ref

    async def _create(self, ref: str, data: bytes, options: PutOptions, source: _Measured) -> None:
        request: dict[str, Any] = {"mode": "create", "use_multipart": False}
        if self._attributes:
            request["attributes"] = {"Content-Type": options.mime_type, "sha256": source.sha256}
        try:
            with reporting():
                await self._module.put_async(self._store, self._path(ref), data, **request)
        except Exception as error:
            cause = error.__cause__
            if isinstance(cause, NotImplementedError) and "attributes" in request:
                self._attributes = False
                return await self._create(ref, data, options, source)
            if not isinstance(cause, AlreadyThere) or await self.get(ref) != data:
                raise
            # An earlier attempt of this put stored it, and its answer was lost.

    async def _send(self, ref: str, chunks: AsyncIterator[bytes]) -> None:
        await self._module.put_async(
            self._store,
            self._path(ref),
            chunks,
            use_multipart=True,
            chunk_size=_PART_BYTES,
            max_concurrency=_PARALLEL_PARTS,
        )

    async def _find(self, stem: str, after: str | None) -> AsyncIterator[AssetInfo]:
        """Yield what starts with the stem; obstore's prefixes are whole segments, so it asks for the folder and looks."""
        start = self._path(stem)
        folder = start.rpartition("/")[0]
        behind = None if after is None else self._path(after)
        pages = self._module.list(self._store, folder or None, offset=behind, chunk_size=_LISTED)
        with reporting():
            async for page in pages:
                for found in page:
                    path: str = found["path"]
                    if behind is not None and path <= behind:
                        continue  # not every server knows where to start
                    if not path.startswith(start):
                        if self._in_order and path > start:
                            return
                        continue
                    ref = path.removeprefix(self._prefix)
                    created_at = created_at_of(ref)
                    if created_at is not None:
                        yield AssetInfo(ref, found["size"], created_at)


class _Measured:
    """A stream that is cut into parts, counted and hashed as it goes by."""

    def __init__(self, chunks: AsyncIterator[bytes], max_bytes: int | None) -> None:
        self._chunks = chunks
        self._limit = max_bytes
        self._digest = hashlib.sha256()
        self.size = 0
        self.ended = False
        """Whether the part that was given last is the last."""

    @property
    def sha256(self) -> str:
        """Hash of what went by."""
        return self._digest.hexdigest()

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """Yield parts; a last one, perhaps empty, when `ended`."""
        rest = bytearray()
        async for chunk in self._chunks:
            self.size += len(chunk)
            if self._limit is not None and self.size > self._limit:
                raise AssetTooLarge(self._limit)
            rest += chunk
            while len(rest) > _PART_BYTES:
                part = bytes(memoryview(rest)[:_PART_BYTES])
                del rest[:_PART_BYTES]
                await add_to(self._digest, part)
                yield part
        await add_to(self._digest, rest)
        self.ended = True
        yield bytes(rest)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _with_first(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for part in rest:
        yield part
