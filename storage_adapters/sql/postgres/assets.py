"""Assets in the database, in pieces."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from typing import Self
from urllib.parse import quote

from crux_workspace.errors import StorageError
from crux_workspace.storage.assets import (
    AssetInfo,
    AssetNotFound,
    AssetPage,
    AssetTooLarge,
    PutOptions,
    StoredAsset,
)
from crux_workspace.storage.failures import closed_error
from crux_workspace.storage.layout import prefix_end
from storage_adapters.sql.listing import FIRST_BEHIND
from storage_adapters.sql.postgres.address import parse
from storage_adapters.sql.postgres.database import Database, Query, Rows
from storage_adapters.sql.postgres.sweeping import Sweeper
from storage_adapters.sql.postgres.versions import check_version

__all__ = ["PIECE_BYTES", "PostgresAssetStore"]

PIECE_BYTES = 1 << 18


class PostgresAssetStore:
    """An `AssetStore` over one schema of a PostgreSQL database.

    An asset of at most one piece is one statement. A larger one is written piece by piece, no transaction being open meanwhile, and
    becomes visible with its last statement; what a crash leaves of one is deleted by `abort_stale_uploads`, which collection calls, or
    when a storage is opened a day later.
    """

    def __init__(self, database: Database) -> None:
        """Use `open`, or share a database that is open."""
        self._database = database.enter()
        self._sweeper = Sweeper(database)
        self._closed = False

    def __repr__(self) -> str:
        return f"PostgresAssetStore({self._database.address.shown!r})"

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect to a database whose schema is up to date; see `PostgresRecordStore.open`."""
        store = cls(Database(parse(url)))
        try:
            if await check_version(store._database):
                store._sweeper.start()
        except BaseException:
            await store.aclose()
            raise
        return store

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """See `AssetStore.put`. A stream that breaks or is cancelled leaves nothing."""
        self._check()
        pieces = _pieces(data, options.max_bytes)
        first = await anext(pieces, b"")
        if len(first) < PIECE_BYTES:
            digest = hashlib.sha256(first).hexdigest()
            [row] = await self._change(
                self._database.texts.put_whole, options.key, len(first), digest, first
            )
            return self._stored(options.key, len(first), digest, row[0])
        return await self._upload(options.key, first, pieces)

    async def get(self, ref: str) -> bytes:
        """See `AssetStore.get`; one statement."""
        rows = await self._rows(self._database.texts.pieces, ref)
        if not rows:
            raise AssetNotFound(ref)
        content = b"".join(row[1] or b"" for row in rows)
        if len(content) != rows[0][0]:
            raise AssetNotFound(ref)
        return content

    async def stream(
        self, ref: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """See `AssetStore.stream`; one statement a piece, no connection is held between them."""
        found = await self._rows(self._database.texts.asset, ref)
        if not found:
            raise AssetNotFound(ref)
        asset, size = found[0]
        end = size if length is None else min(size, offset + length)
        while offset < end:
            number, start = divmod(offset, PIECE_BYTES)
            wanted = min(PIECE_BYTES - start, end - offset)
            rows = await self._rows(self._database.texts.piece, asset, number, start + 1, wanted)
            if not rows or len(rows[0][0]) != wanted:
                raise AssetNotFound(ref)
            offset += wanted
            yield rows[0][0]

    async def delete(self, ref: str) -> None:
        """See `AssetStore.delete`."""
        await self._change(self._database.texts.delete_asset, ref)

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """See `AssetStore.list`."""
        low, high = prefix, prefix_end(prefix)
        if after is not None and after >= prefix:
            low = after + FIRST_BEHIND
        bound = () if high is None else (high,)
        text = self._database.texts.assets(bounded=high is not None)
        rows = await self._rows(text, low, limit + 1, *bound)
        infos = [AssetInfo(*row) for row in rows[:limit]]
        return AssetPage(infos, infos[-1].ref if infos and len(rows) > limit else None)

    async def abort_stale_uploads(self, *, older_than_ms: int) -> int:
        """See `AbortsStaleUploads`; one statement for each, times are the server's."""
        removed = 0
        while await self._change(self._database.texts.sweep_uploads, older_than_ms):
            removed += 1
        return removed

    async def aclose(self) -> None:
        """See `AssetStore.aclose`."""
        if self._closed or self._database.is_elsewhere:
            return
        self._closed = True
        try:
            await self._sweeper.aclose()
        finally:
            await self._database.leave()

    async def _upload(self, ref: str, first: bytes, rest: AsyncIterator[bytes]) -> StoredAsset:
        texts = self._database.texts
        [[asset]] = await self._change(texts.begin_upload, ref)
        try:
            digest, size, number = hashlib.sha256(), 0, 0
            piece: bytes | None = first
            while piece is not None:
                digest.update(piece)
                size += len(piece)
                if not await self._change(texts.add_piece, asset, number, piece):
                    raise _given_up()
                number += 1
                piece = await anext(rest, None)
            made = await self._change(texts.end_upload, asset, size, digest.hexdigest())
            if not made:
                raise _given_up()
        except BaseException:
            giving_up = asyncio.ensure_future(self._change(texts.give_up, asset))
            with contextlib.suppress(Exception):  # the error that led here is the one to report
                await asyncio.shield(giving_up)
            raise
        return self._stored(ref, size, digest.hexdigest(), made[0][0])

    def _stored(self, ref: str, size: int, digest: str, at: int) -> StoredAsset:
        schema = quote(self._database.address.options.schema, safe="")
        uri = f"{self._database.address.shown}?schema={schema}&asset={quote(ref)}"
        return StoredAsset(ref, uri, size, digest, at)

    def _check(self) -> None:
        if self._closed:
            raise closed_error()
        self._database.check()

    async def _change(self, text: str, *parameters: object) -> Rows:
        self._check()
        return await self._database.change(text, parameters)

    async def _rows(self, text: str, *parameters: object) -> Rows:
        self._check()

        def query() -> Query[Rows]:
            return (yield text, parameters)

        return await self._database.read(query)


async def _pieces(data: bytes | AsyncIterator[bytes], limit: int | None) -> AsyncIterator[bytes]:
    """Cut into pieces of `PIECE_BYTES`, all but the last of that size.

    Raises:
        AssetTooLarge: As soon as more bytes than `limit` came.
    """
    if isinstance(data, bytes):
        if limit is not None and len(data) > limit:
            raise AssetTooLarge(limit)
        for start in range(0, len(data), PIECE_BYTES):
            yield data[start : start + PIECE_BYTES]
        return
    held, size = bytearray(), 0
    async for chunk in data:
        size += len(chunk)
        if limit is not None and size > limit:
            raise AssetTooLarge(limit)
        held += chunk
        while len(held) >= PIECE_BYTES:
            yield bytes(held[:PIECE_BYTES])
            del held[:PIECE_BYTES]
    if held:
        yield bytes(held)


def _given_up() -> StorageError:
    return StorageError(
        "nothing of the upload came for so long that it was taken for abandoned; repeat it"
    )
