"""One put: in one request, or, of more than one part, as a multipart upload in constant memory."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import zlib
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from crux_workspace.errors import InvalidInputError, StorageError
from crux_workspace.storage.assets import AssetTooLarge, PutOptions
from storage_adapters.s3.bucket import Bucket
from storage_adapters.s3.failures import answered, code_of, reporting, status_of

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

__all__ = ["Upload"]

_MOST_PARTS = 10_000
_CANCEL_GRACE_S = 5.0


class Upload:
    """One put; used once."""

    def __init__(self, bucket: Bucket, ref: str, options: PutOptions) -> None:
        self._bucket = bucket
        self._key = bucket.key(ref)
        self._options = options
        self._whole = hashlib.sha256()
        self._crc = 0
        self._upload_id: str | None = None
        self._adds_up = False
        """Whether the server keeps the checksum of the whole, not of the parts only."""
        self._part = 0
        self._parts: list[CompletedPartTypeDef] = []
        self._pending: set[Future[CompletedPartTypeDef]] = set()
        self._last: Future[Any] | None = None
        self._may_stand = False
        """Whether the object may be there under its name."""
        self.size = 0

    @property
    def sha256(self) -> str:
        """Hash of what has been sent."""
        return self._whole.hexdigest()

    @property
    def in_parts(self) -> bool:
        """Whether it took a multipart upload."""
        return self._part > 0

    async def run(self, data: bytes | AsyncIterator[bytes]) -> None:
        """Send everything; whatever fails, nothing stays behind."""
        try:
            await self._send(data)
        except BaseException as error:
            # Who hears of a server in trouble need not wait for it a second time.
            patience_s = 0.0 if isinstance(error, StorageError) else _CANCEL_GRACE_S
            await self._bucket.tidy(self._take_back(), wait_s=patience_s)
            raise

    async def _send(self, data: bytes | AsyncIterator[bytes]) -> None:
        size = self._bucket.settings.part_bytes
        rest = bytearray()
        if isinstance(data, bytes):
            self._grow(len(data))
            if len(data) <= size:
                return await self._put_whole(data)
            for start in range(0, len(data), size):
                await self._send_part(data[start : start + size])
            return await self._finish()
        async for chunk in data:
            self._grow(len(chunk))
            left = memoryview(chunk)
            while left:
                if len(rest) == size:  # and there is more: so it is a part
                    await self._send_part(rest)
                    rest = bytearray()
                room = size - len(rest)
                rest += left[:room]
                left = left[room:]
        if self._part == 0:
            return await self._put_whole(rest)
        await self._send_part(rest)
        return await self._finish()

    def _grow(self, by: int) -> None:
        self.size += by
        limit = self._options.max_bytes
        if limit is not None and self.size > limit:
            raise AssetTooLarge(limit)
        most = _MOST_PARTS * self._bucket.settings.part_bytes
        if self.size > most:
            raise AssetTooLarge(most)

    def _hash(self, data: bytes | bytearray) -> None:
        self._whole.update(data)
        self._crc = zlib.crc32(data, self._crc)

    # -- one request

    async def _put_whole(self, data: bytes | bytearray) -> None:
        def put() -> None:
            self._hash(data)
            with reporting():
                self._put_object(data)

        self._last = self._bucket.begin(put)
        await asyncio.wrap_future(self._last)

    def _put_object(self, data: bytes | bytearray) -> None:
        bucket = self._bucket
        request: dict[str, Any] = {
            "Bucket": bucket.name,
            "Key": self._key,
            "Body": data,
            "ContentType": self._options.mime_type,
            "Metadata": {"sha256": self.sha256},
        }
        self._may_stand = True
        if bucket.settings.checksums == "when_supported":
            request["ChecksumSHA256"] = base64.b64encode(self._whole.digest()).decode()
        try:
            if bucket.conditional and self._create_object(request):
                return
            bucket.client.put_object(**request)
        except Exception as error:
            self._may_stand = self._may_stand and not answered(error)
            raise

    def _create_object(self, request: dict[str, Any]) -> bool:
        """Store the object if there is none of its name; False when the server knows no conditions."""
        try:
            self._bucket.client.put_object(**request, IfNoneMatch="*")
        except Exception as error:
            if status_of(error) == 412:
                self._recognise()
            elif status_of(error) == 501:
                self._bucket.conditional = False
                return False
            else:
                raise
        return True

    def _recognise(self) -> None:
        """The object is there already: an earlier attempt of this put stored it and its answer was lost, or the key is taken."""
        held = self._bucket.client.head_object(Bucket=self._bucket.name, Key=self._key)
        if held["ContentLength"] == self.size and held["Metadata"].get("sha256") == self.sha256:
            return
        self._may_stand = False
        raise InvalidInputError(
            "An asset with this key and time is there already; keys are used once."
        )

    # -- multipart

    async def _send_part(self, data: bytes | bytearray) -> None:
        if self._part == 0:
            self._last = self._bucket.begin(self._create)
            await asyncio.wrap_future(self._last)
        await self._bucket.run(lambda: self._hash(data))
        while len(self._pending) >= self._bucket.settings.parallel_parts:
            await self._collect(asyncio.FIRST_COMPLETED)
        self._part += 1
        number = self._part
        self._pending.add(self._bucket.begin(lambda: self._upload_part(number, data)))

    async def _collect(self, when: str) -> None:
        waiting = {asyncio.wrap_future(future): future for future in self._pending}
        done, _ = await asyncio.wait(waiting, return_when=when)
        for future in done:
            self._pending.discard(waiting[future])
            self._parts.append(await future)

    def _create(self) -> None:
        request: dict[str, Any] = {
            "Bucket": self._bucket.name,
            "Key": self._key,
            "ContentType": self._options.mime_type,
        }
        wanted = self._bucket.settings.checksums == "when_supported"
        if wanted:
            request |= {"ChecksumAlgorithm": "CRC32", "ChecksumType": "FULL_OBJECT"}
        with reporting():
            made = self._bucket.client.create_multipart_upload(**request)
        self._upload_id = made["UploadId"]
        self._adds_up = wanted and made.get("ChecksumType") == "FULL_OBJECT"

    def _upload_part(self, number: int, data: bytes | bytearray) -> CompletedPartTypeDef:
        assert self._upload_id is not None
        with reporting():
            sent = self._bucket.client.upload_part(
                Bucket=self._bucket.name,
                Key=self._key,
                UploadId=self._upload_id,
                PartNumber=number,
                Body=cast("bytes", data),
            )
        part: CompletedPartTypeDef = {"PartNumber": number, "ETag": sent["ETag"]}
        if "ChecksumCRC32" in sent:
            part["ChecksumCRC32"] = sent["ChecksumCRC32"]
        return part

    async def _finish(self) -> None:
        while self._pending:
            await self._collect(asyncio.FIRST_EXCEPTION)

        def complete() -> None:
            with reporting():
                self._complete()

        self._last = self._bucket.begin(complete)
        await asyncio.wrap_future(self._last)

    def _complete(self) -> None:
        request: dict[str, Any] = {
            "Bucket": self._bucket.name,
            "Key": self._key,
            "UploadId": self._upload_id,
            "MultipartUpload": {"Parts": sorted(self._parts, key=lambda p: p["PartNumber"])},
        }
        if self._adds_up:
            sum_ = base64.b64encode(self._crc.to_bytes(4, "big")).decode()
            request |= {"ChecksumType": "FULL_OBJECT", "ChecksumCRC32": sum_}
        self._may_stand = True
        try:
            self._bucket.client.complete_multipart_upload(**request)
        except Exception as error:
            # An earlier attempt may have completed it, its answer lost: then the upload is gone, and the object there.
            if code_of(error) != "NoSuchUpload" or not self._is_whole():
                raise

    def _is_whole(self) -> bool:
        try:
            held = self._bucket.client.head_object(Bucket=self._bucket.name, Key=self._key)
        except Exception as error:
            if status_of(error) == 404:
                return False
            raise
        return held["ContentLength"] == self.size

    # -- back

    async def _take_back(self) -> None:
        """Remove what was stored; what cannot be removed now is left to the sweeps."""
        for future in (*self._pending, *((self._last,) if self._last else ())):
            with suppress(Exception, asyncio.CancelledError):
                await asyncio.wrap_future(future)
        if self._upload_id is not None or self._may_stand:
            with suppress(Exception):
                await self._bucket.run(self._remove)

    def _remove(self) -> None:
        bucket = self._bucket
        if self._upload_id is not None:
            with suppress(Exception):  # an upload that was completed is gone already
                bucket.client.abort_multipart_upload(
                    Bucket=bucket.name, Key=self._key, UploadId=self._upload_id
                )
        if self._may_stand:
            bucket.client.delete_object(Bucket=bucket.name, Key=self._key)
