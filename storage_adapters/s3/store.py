"""Assets as objects of an S3 bucket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from crux_workspace.errors import InvalidInputError, StorageError
from crux_workspace.model.clocks import Clock, wall_clock_ms
from crux_workspace.storage.assets import AssetInfo, AssetPage, PutOptions, StoredAsset
from crux_workspace.storage.object_names import created_at_of, name_of, readable, stem_of
from storage_adapters.s3.bucket import Bucket
from storage_adapters.s3.failures import reporting, status_of
from storage_adapters.s3.reading import Download
from storage_adapters.s3.settings import S3Settings
from storage_adapters.s3.uploading import Upload

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

__all__ = ["S3AssetStore"]

_LONGEST_PREFIX_BYTES = 400
_PER_DELETE = 1_000
_STALE_MS = 86_400_000
_LONGEST_PRESIGNED_S = 604_800


class S3AssetStore:
    """An `AssetStore` over a bucket, shared by any number of processes and machines.

    Each put makes an object of its own, by one request or, above `S3Settings.part_bytes`, by a multipart upload; it is wholly there
    or absent. Streams are handled a part at a time, in threads. Requests are repeated as the SDK does it.
    """

    def __init__(
        self,
        client: S3Client,
        bucket: str,
        prefix: str = "",
        *,
        settings: S3Settings | None = None,
        clock: Clock = wall_clock_ms,
    ) -> None:
        """Use a client that the caller made and will close; `open` makes one.

        Args:
            client: A boto3 client for S3; its own retries and timeouts hold.
            bucket: Name of the bucket, which exists.
            prefix: Where in the bucket; nothing else should be below it.
            settings: How to split uploads, and whether to ask for checksums.
            clock: Gives assets their time of creation.
        """
        prefix = prefix.strip("/")
        if "\0" in prefix or "//" in prefix or len(prefix.encode()) > _LONGEST_PREFIX_BYTES:
            raise InvalidInputError(
                f"The prefix of the assets has at most {_LONGEST_PREFIX_BYTES} bytes, and no empty segment."
            )
        full = prefix + "/" if prefix else ""
        self._bucket = Bucket(client, bucket, full, settings or S3Settings())
        self._base_uri = f"s3://{bucket}/{readable(full)}"
        self._clock = clock
        self._owned = False
        self._swept = False

    def __repr__(self) -> str:
        return f"S3AssetStore({self._bucket.name!r})"

    @classmethod
    async def open(
        cls,
        bucket: str,
        prefix: str = "",
        *,
        settings: S3Settings | None = None,
        clock: Clock = wall_clock_ms,
    ) -> S3AssetStore:
        """Make a client and use it; nothing is asked of the server yet.

        Args:
            bucket: Name of the bucket, which exists.
            prefix: Where in the bucket; nothing else should be below it.
            settings: How to reach the server, and how hard to try.
            clock: Gives assets their time of creation.

        Raises:
            UnsupportedError: boto3 is not installed (``CAPABILITY_MISSING``).
            InvalidInputError: The SDK does not take these settings.
        """
        settings = settings or S3Settings()
        try:
            client = await asyncio.to_thread(settings.make_client)
        except ValueError as error:
            raise InvalidInputError(
                "The SDK does not take the settings of the S3 assets; check endpoint and region."
            ) from error
        store = cls(client, bucket, prefix, settings=settings, clock=clock)
        store._owned = True
        return store

    async def __aenter__(self) -> S3AssetStore:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """See `AssetStore.put`.

        The object is created only where there is none, if the server knows conditions; the bytes are sent with checksums that the
        server verifies. A put that fails or is cancelled takes back what it stored; when the server does not answer, that is done
        behind the error, and what remains is left to the sweeps.
        """
        created_at = self._clock()
        ref = name_of(options.key, created_at)
        upload = Upload(self._bucket, ref, options)
        await upload.run(data)
        if upload.in_parts:
            await self._sweep_once()
        return StoredAsset(ref, self._base_uri + ref, upload.size, upload.sha256, created_at)

    async def get(self, ref: str) -> bytes:
        """See `AssetStore.get`; the bytes are held to the asset's checksums."""
        download = Download(self._bucket, ref)
        try:
            found = await self._bucket.run(download.open)
            return await self._bucket.run(download.read_all) if found else b""
        finally:
            download.close()

    async def stream(
        self, ref: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """See `AssetStore.stream`; read whole, the bytes are held to the asset's checksums, behind the last chunk."""
        download = Download(self._bucket, ref, offset, length)
        try:
            if not await self._bucket.run(download.open):
                return
            while chunk := await self._bucket.run(download.read):
                yield chunk
        finally:
            download.close()

    async def delete(self, ref: str) -> None:
        """See `AssetStore.delete`."""

        def remove() -> None:
            with reporting():
                self._bucket.client.delete_object(
                    Bucket=self._bucket.name, Key=self._bucket.key(ref)
                )

        await self._bucket.run(remove)

    async def delete_many(self, refs: Sequence[str]) -> None:
        """See `DeletesMany.delete_many`; a thousand in a request."""
        for start in range(0, len(refs), _PER_DELETE):
            batch = refs[start : start + _PER_DELETE]
            await self._bucket.run(lambda batch=batch: self._remove_many(batch))  # type: ignore[misc]

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """See `AssetStore.list`; objects that no put of ours made are left out."""

        def find() -> AssetPage:
            with reporting():
                found = list(islice(self._find(stem_of(prefix), after), limit + 1))
            return AssetPage(found[:limit], found[limit - 1].ref if len(found) > limit else None)

        return await self._bucket.run(find)

    async def presign(
        self, ref: str, *, expires_s: int = 3_600, filename: str | None = None
    ) -> str:
        """See `Presigns.presign`; an expiry of at most seven days, and not beyond the end of the session's credentials."""
        if not 1 <= expires_s <= _LONGEST_PRESIGNED_S:
            raise InvalidInputError("A presigned URL is valid for 1 to 604,800 seconds.")
        request = {"Bucket": self._bucket.name, "Key": self._bucket.key(self._ref_of(ref))}
        if filename is not None:
            named = f"attachment; filename*=UTF-8''{quote(filename, safe='')}"
            request["ResponseContentDisposition"] = named

        def sign() -> str:
            with reporting():
                return self._bucket.client.generate_presigned_url(
                    "get_object", Params=request, ExpiresIn=expires_s
                )

        return await self._bucket.run(sign)

    async def abort_stale_uploads(self, *, older_than_ms: int = _STALE_MS) -> int:
        """Abort multipart uploads below the prefix that no longer go on, as of processes that died; return how many.

        A store does it by itself with the first large put; no listing shows what such uploads hold.

        Args:
            older_than_ms: How long ago they were begun, by the server's clock.

        Raises:
            StorageError: The server cannot be reached, or does not allow it.
        """

        def abort() -> int:
            with reporting():
                return self._abort(self._clock() - older_than_ms)

        return await self._bucket.run(abort)

    async def aclose(self) -> None:
        """See `AssetStore.aclose`; waits for what puts that failed are still taking back."""
        await self._bucket.aclose()
        if self._owned:
            self._bucket.client.close()

    def _ref_of(self, ref: str) -> str:
        """Return a ref, given one or a URI of this store."""
        return ref.removeprefix(self._base_uri)

    def _find(self, stem: str, after: str | None) -> Iterator[AssetInfo]:
        request: Any = {"Bucket": self._bucket.name, "Prefix": self._bucket.key(stem)}
        if after is not None:
            request["StartAfter"] = self._bucket.key(after)
        pages = self._bucket.client.get_paginator("list_objects_v2").paginate(**request)
        for page in pages:
            for found in page.get("Contents", ()):
                ref = found["Key"].removeprefix(self._bucket.prefix)
                created_at = created_at_of(ref)
                if created_at is not None:
                    yield AssetInfo(ref, found["Size"], created_at)

    def _remove_many(self, refs: Sequence[str]) -> None:
        client, name = self._bucket.client, self._bucket.name
        keys = [self._bucket.key(ref) for ref in refs]
        with reporting():
            try:
                answer = client.delete_objects(
                    Bucket=name, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
                )
            except Exception as error:
                if status_of(error) != 501:
                    raise
                for key in keys:
                    client.delete_object(Bucket=name, Key=key)
                return
        errors = answer.get("Errors", [])
        if errors:
            raise StorageError(
                f"The S3 server did not delete {len(errors)} of {len(keys)} assets"
                f" ({errors[0].get('Code', 'no reason given')}); try again."
            )

    async def _sweep_once(self) -> None:
        if not self._swept:
            self._swept = True
            # Whoever may not list uploads has a lifecycle rule for them.
            with suppress(StorageError):
                await self.abort_stale_uploads()

    def _abort(self, oldest: int) -> int:
        client, name = self._bucket.client, self._bucket.name
        aborted = 0
        pages: Any = client.get_paginator("list_multipart_uploads").paginate(
            Bucket=name, Prefix=self._bucket.prefix
        )
        for page in pages:
            for upload in page.get("Uploads", ()):
                if upload["Initiated"].timestamp() * 1000 <= oldest:
                    client.abort_multipart_upload(
                        Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"]
                    )
                    aborted += 1
        return aborted
