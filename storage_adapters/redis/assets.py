"""Assets in Redis or Valkey, in pieces, so that neither side holds a large one whole."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable
from heapq import merge
from itertools import islice
from types import TracebackType

import msgspec

from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.model.clocks import wall_clock_ms
from crux_workspace.storage.assets import (
    AssetInfo,
    AssetNotFound,
    AssetPage,
    AssetTooLarge,
    PutOptions,
    StoredAsset,
)
from storage_adapters.redis.keyspace import BUCKETS, Keyspace
from storage_adapters.redis.link import Link
from storage_adapters.redis.ranges import range_of
from storage_adapters.redis.scripts import (
    ASSET_ABORT,
    ASSET_DELETE,
    ASSET_LIST,
    ASSET_PIECE,
    ASSET_SEAL,
)
from storage_adapters.redis.target import Target, parse_target
from storage_adapters.redis.wire import Command

__all__ = ["RedisAssetStore"]

_PIECE_BYTES = 256 << 10
_PIECES_PER_READ = 8
_UPLOAD_EXPIRES_S = 86_400
"""An upload that was left behind by a crash goes by itself when nobody collects; an asset never does."""
_TIME_DIGITS = 16


class _About(msgspec.Struct):
    """What is kept of an asset beside its bytes."""

    size: int
    created_at: int
    sha256: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_About).decode


class RedisAssetStore:
    """An `AssetStore` over one Redis or Valkey server, or a Cluster of them.

    Everything is in the server's memory: for much or large content choose another place. An asset is a hash of pieces of 256 KiB;
    what is listed is whole.
    """

    def __init__(
        self, target: Target, link: Link, *, clock: Callable[[], int] = wall_clock_ms
    ) -> None:
        """Use `open`."""
        self._target = target
        self._link = link
        self._keys = Keyspace(target.prefix, target.database)
        self._clock = clock

    def __repr__(self) -> str:
        state = "closed" if self._link.closed else "open"
        return f"RedisAssetStore({self._target.place!r}, {state})"

    @classmethod
    async def open(cls, url: str, *, clock: Callable[[], int] = wall_clock_ms) -> RedisAssetStore:
        """Connect to the servers that a URL names; see `RedisRecordStore.open`."""
        target = parse_target(url)
        return cls(target, await Link.open(target), clock=clock)

    async def __aenter__(self) -> RedisAssetStore:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """See `AssetStore.put`."""
        upload = _Upload(self._link, self._keys, options, self._clock)
        try:
            if isinstance(data, bytes):
                await upload.add(data)
            else:
                async for chunk in data:
                    await upload.add(chunk)
            about = _About(upload.size, self._clock(), upload.digest.hexdigest())
            await upload.seal(about)
        except BaseException:
            await upload.abandon()
            raise
        uri = f"{self._target.place}#{options.key}"
        return StoredAsset(options.key, uri, about.size, about.sha256, about.created_at)

    async def get(self, ref: str) -> bytes:
        """See `AssetStore.get`."""
        return b"".join([piece async for piece in self.stream(ref)])

    async def stream(
        self, ref: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """See `AssetStore.stream`."""
        about = await self._about(ref)
        end = about.size if length is None else min(about.size, offset + length)
        key, bucket = self._keys.asset(ref), self._keys.asset_bucket(ref)
        start = offset
        while start < end:
            first = start // _PIECE_BYTES
            last = min(first + _PIECES_PER_READ - 1, (end - 1) // _PIECE_BYTES)
            command: Command = (b"HMGET", key, *range(first, last + 1))
            for number, piece in enumerate(await self._link.ask(bucket, command), first):
                if piece is None:
                    raise AssetNotFound(ref)  # deleted while it was read
                begins = number * _PIECE_BYTES
                if len(piece) != min(_PIECE_BYTES, about.size - begins):
                    raise _damaged()
                part = piece[max(0, start - begins) : end - begins]
                start += len(part)
                yield part

    async def delete(self, ref: str) -> None:
        """See `AssetStore.delete`."""
        bucket = self._keys.asset_bucket(ref)
        keys = (self._keys.asset(ref), *self._keys.assets(bucket))
        await self._link.ask(bucket, ASSET_DELETE.call(keys, ref))

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """See `AssetStore.list`; one command for each of the 256 buckets, sent together."""
        low_high = range_of(prefix, after, None, None)
        if low_high is None or limit < 1:
            return AssetPage([])
        answers = await self._link.ask_all(
            [
                (bucket, ASSET_LIST.call(self._keys.assets(bucket), *low_high, limit + 1))
                for bucket in range(BUCKETS)
            ]
        )
        found = list(islice(merge(*(zip(*answer, strict=True) for answer in answers)), limit + 1))
        infos = []
        for ref, description in found[:limit]:
            about = _about_of(description)
            infos.append(AssetInfo(ref.decode(), about.size, about.created_at))
        return AssetPage(infos, infos[-1].ref if len(found) > limit else None)

    async def abort_stale_uploads(self, *, older_than_ms: int) -> int:
        """See `AbortsStaleUploads`; one command for each of the 256 buckets, sent together."""
        horizon = f"({_note(self._clock() - older_than_ms + 1)}"
        stale = await self._link.ask_all(
            [
                (bucket, (b"ZRANGEBYLEX", self._keys.uploads(bucket), b"-", horizon))
                for bucket in range(BUCKETS)
            ]
        )
        removals = [
            (bucket, _abort(self._keys.uploads(bucket), note[_TIME_DIGITS:], note))
            for bucket, notes in enumerate(stale)
            for note in notes
        ]
        return sum(await self._link.ask_all(removals))

    async def aclose(self) -> None:
        """See `AssetStore.aclose`."""
        await self._link.aclose()

    async def _about(self, ref: str) -> _About:
        bucket = self._keys.asset_bucket(ref)
        _, about = self._keys.assets(bucket)
        description = await self._link.ask(bucket, (b"HGET", about, ref))
        if description is None:
            raise AssetNotFound(ref)
        return _about_of(description)


def _about_of(description: bytes) -> _About:
    try:
        return _decode(description)
    except msgspec.MsgspecError:
        raise _damaged() from None


def _damaged() -> StorageError:
    return StorageError(
        "an asset on the Redis server is not what was stored; restore the Redis data from a backup",
        code=ErrorCode.RECORD_CORRUPT,
    )


def _note(at: int) -> str:
    """Return how the note of an upload begins whose last piece came at a time: so that order is that of times."""
    return f"{max(0, at):0{_TIME_DIGITS}d}"


def _abort(uploads: bytes, upload: bytes, *notes: bytes) -> Command:
    return ASSET_ABORT.call((uploads, *(upload for _ in notes)), *notes)


class _Upload:
    """Pieces on their way; nobody sees them before `seal`."""

    def __init__(
        self, link: Link, keys: Keyspace, options: PutOptions, clock: Callable[[], int]
    ) -> None:
        self._link = link
        self._keys = keys
        self._options = options
        self._clock = clock
        self._bucket = keys.asset_bucket(options.key)
        self._uploads = keys.uploads(self._bucket)
        self._noted: tuple[bytes, ...] = ()
        self._key = keys.asset(options.key, upload=secrets.token_hex(8))
        self._rest = bytearray()
        self._pieces = 0
        self.size = 0
        self.digest = hashlib.sha256()

    async def add(self, data: bytes) -> None:
        """Take more bytes and send them when they fill pieces; between two pieces the loop has its turn."""
        self.size += len(data)
        if self._options.max_bytes is not None and self.size > self._options.max_bytes:
            raise AssetTooLarge(self._options.max_bytes)
        view = memoryview(data)
        for start in range(0, len(data), _PIECE_BYTES):
            part = view[start : start + _PIECE_BYTES]
            self.digest.update(part)
            self._rest += part
            if len(self._rest) > _PIECE_BYTES:
                await self._send()

    async def _send(self) -> None:
        piece = bytes(self._rest[:_PIECE_BYTES])
        del self._rest[:_PIECE_BYTES]
        note, before = _note(self._clock()).encode() + self._key, b"".join(self._noted[-1:])
        self._noted = (before, note)  # until the answer is here, either may be what the server has
        arguments = (self._pieces, piece, _UPLOAD_EXPIRES_S, note, before)
        await self._link.ask(self._bucket, ASSET_PIECE.call((self._key, self._uploads), *arguments))
        self._pieces += 1

    async def seal(self, about: _About) -> None:
        """Send the last piece and make the asset."""
        asset = self._keys.asset(self._options.key)
        keys = (self._key, asset, *self._keys.assets(self._bucket), self._uploads)
        rest = bytes(self._rest)
        arguments = (
            self._options.key,
            _encode(about),
            self._pieces + 1,
            rest,
            b"".join(self._noted[-1:]),
        )
        sealed = await self._link.ask(self._bucket, ASSET_SEAL.call(keys, *arguments))
        if not sealed:
            raise StorageError(
                "pieces of an upload were lost on the Redis server; nothing was stored, try again",
                code=ErrorCode.STORE_UNAVAILABLE,
            )

    async def abandon(self) -> None:
        """Remove what was sent; what cannot be removed now expires."""
        if not self._noted:
            return
        removal = _abort(self._uploads, self._key, *self._noted)
        with contextlib.suppress(StorageError):
            await asyncio.shield(self._link.ask(self._bucket, removal))
