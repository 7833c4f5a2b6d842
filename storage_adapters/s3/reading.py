"""One object being read: ranges, connections that break, checksums."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from crux_workspace.errors import StorageError
from storage_adapters.s3.bucket import Bucket
from storage_adapters.s3.failures import damaged, is_broken_body, reporting, status_of

if TYPE_CHECKING:
    from botocore.response import StreamingBody

__all__ = ["Download"]

_CHUNK_BYTES = 1 << 20


class Download:
    """Reads an object from `offset` on; its methods block, and are called one after the other, from any thread.

    A connection that breaks is taken up again where it broke, at the same object. An asset that is read whole is held to the
    checksums that the server or its put gave it.
    """

    def __init__(
        self, bucket: Bucket, ref: str, offset: int = 0, length: int | None = None
    ) -> None:
        self._bucket = bucket
        self._ref = ref
        self._position = offset
        self._end = None if length is None else offset + length
        self._whole = offset == 0 and length is None
        self._body: StreamingBody | None = None
        self._tag: str | None = None
        self._crc = 0
        self._digest = hashlib.sha256()
        self._told_crc: str | None = None
        self._told_sha256: str | None = None
        self._breaks = 0
        self._lock = Lock()
        self._closed = False

    def open(self) -> bool:
        """Ask for the object; False when the range is empty.

        Raises:
            AssetNotFound: There is no such object.
        """
        with self._held(), reporting(self._ref):
            if self._end is not None and self._end <= self._position:
                self._bucket.client.head_object(
                    Bucket=self._bucket.name, Key=self._bucket.key(self._ref)
                )
                return False
            try:
                self._ask()
            except Exception as error:
                if status_of(error) == 416:
                    return False
                raise
        return True

    def read(self) -> bytes:
        """Return the next chunk; empty at the end."""
        with self._held():
            return self._read()

    def read_all(self) -> bytes:
        """Return everything from here to the end, unless it is closed meanwhile."""
        parts = []
        while not self._closed and (chunk := self.read()):
            parts.append(chunk)
        return b"".join(parts)

    def close(self) -> None:
        """Give the connection up, as soon as no thread reads from it."""
        self._closed = True
        if self._lock.acquire(blocking=False):
            try:
                self._close_body()
            finally:
                self._lock.release()

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Keep `close` from closing what is being read from; close it behind, when that was asked for."""
        with self._lock:
            try:
                yield
            finally:
                if self._closed:
                    self._close_body()

    def _read(self) -> bytes:
        while True:
            assert self._body is not None
            try:
                with reporting():
                    chunk = self._next()
            except StorageError as error:
                cause = error.__cause__
                if cause is None or not is_broken_body(cause) or self._closed:
                    raise
                self._take_up(error)
                continue
            if not chunk:
                self._judge()
            return chunk

    def _next(self) -> bytes:
        assert self._body is not None
        chunk: bytes = self._body.read(_CHUNK_BYTES)
        self._position += len(chunk)
        if self._whole:
            self._crc = zlib.crc32(chunk, self._crc)
            if self._told_sha256 is not None:
                self._digest.update(chunk)
        return chunk

    def _take_up(self, error: StorageError) -> None:
        """Ask for the rest after a break."""
        self._breaks += 1
        if self._breaks >= self._bucket.settings.max_attempts:
            raise error
        self._close_body()
        with reporting(self._ref):
            try:
                self._ask()
            except Exception as again:
                if status_of(again) == 412:
                    raise damaged() from again
                raise

    def _ask(self) -> None:
        request: dict[str, Any] = {
            "Bucket": self._bucket.name,
            "Key": self._bucket.key(self._ref),
        }
        if self._tag is not None:
            request["IfMatch"] = self._tag
        if self._position or self._end is not None:
            last = "" if self._end is None else self._end - 1
            request["Range"] = f"bytes={self._position}-{last}"
        elif self._bucket.settings.checksums == "when_supported":
            request["ChecksumMode"] = "ENABLED"
        found = self._bucket.client.get_object(**request)
        self._body = found["Body"]
        if self._tag is None:
            self._tag = found.get("ETag")
            told = found.get("ChecksumCRC32", "")
            self._told_crc = told if told and "-" not in told else None
            self._told_sha256 = found["Metadata"].get("sha256")

    def _judge(self) -> None:
        """Hold a whole asset to its checksums."""
        if not self._whole:
            return
        if self._told_crc not in (None, base64.b64encode(self._crc.to_bytes(4, "big")).decode()):
            raise damaged()
        if self._told_sha256 not in (None, self._digest.hexdigest()):
            raise damaged()

    def _close_body(self) -> None:
        if self._body is not None:
            with suppress(Exception):
                self._body.close()
            self._body = None
