"""Assets as files of a local folder."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import ParamSpec, TypeVar

from crux_workspace.errors import StorageError
from crux_workspace.model.clocks import Clock, wall_clock_ms
from crux_workspace.storage.assets import (
    AssetInfo,
    AssetNotFound,
    AssetPage,
    AssetTooLarge,
    PutOptions,
    StoredAsset,
)
from storage_adapters.local_files.folders import FolderTree
from storage_adapters.local_files.names import names_of, ref_of

__all__ = ["LocalFilesAssetStore"]

P = ParamSpec("P")
T = TypeVar("T")

_CHUNK_BYTES = 1 << 18
_NS_PER_MS = 1_000_000


class LocalFilesAssetStore:
    """An `AssetStore` over a folder, shared by any number of processes of one machine.

    An asset is written beside its place, synced, and renamed: it is wholly there or absent, also after a power cut. All blocking
    work runs in threads; streams are handled a chunk at a time. The folder is created by the first put.
    """

    def __init__(self, folder: str | os.PathLike[str], *, clock: Clock = wall_clock_ms) -> None:
        """Use a folder.

        Args:
            folder: Where the files live; nothing else should be in it.
            clock: Gives assets their time of creation, kept as the file's modification time.
        """
        self._tree = FolderTree(Path(folder).absolute())
        self._clock = clock

    def __repr__(self) -> str:
        return f"LocalFilesAssetStore({self._tree.root.name!r})"

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        """See `AssetStore.put`. A stream that breaks or is cancelled leaves nothing."""
        upload = _Upload(self._tree, options, self._clock)
        try:
            if isinstance(data, bytes):
                return await _in_thread(upload.whole, data)
            await _in_thread(upload.begin)
            async for chunk in data:
                await _in_thread(upload.write, chunk)
            return await _in_thread(upload.finish)
        except BaseException:
            await _in_thread(upload.abort)
            raise

    async def get(self, ref: str) -> bytes:
        """See `AssetStore.get`."""
        names = names_of(ref)

        def read() -> bytes:
            with _reporting(ref), os.fdopen(self._tree.open(names), "rb") as file:
                return file.read()

        return await _in_thread(read)

    async def stream(
        self, ref: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """See `AssetStore.stream`."""
        names = names_of(ref)
        file, position, left = -1, offset, length

        def open_file() -> None:
            nonlocal file
            with _reporting(ref):
                file = self._tree.open(names)

        def read(size: int) -> bytes:
            with _reporting(ref):
                return os.pread(file, size, position)

        try:
            await _in_thread(open_file)
            while left is None or left > 0:
                chunk = await _in_thread(
                    read, _CHUNK_BYTES if left is None else min(_CHUNK_BYTES, left)
                )
                if not chunk:
                    return
                position += len(chunk)
                left = None if left is None else left - len(chunk)
                yield chunk
        finally:
            if file >= 0:
                os.close(file)

    async def delete(self, ref: str) -> None:
        """See `AssetStore.delete`; folders left empty go too."""
        names = names_of(ref)

        def remove() -> None:
            with _reporting(ref):
                self._tree.remove(names)

        await _in_thread(remove)

    async def list(self, prefix: str, *, after: str | None = None, limit: int) -> AssetPage:
        """See `AssetStore.list`.

        A segment of the prefix that is too long for a file name matches only when it is whole.
        """

        def find() -> AssetPage:
            with _reporting(prefix):
                found = list(islice(self._find(prefix, after), limit + 1))
            infos = [AssetInfo(r, s.st_size, s.st_mtime_ns // _NS_PER_MS) for r, s in found[:limit]]
            return AssetPage(infos, infos[-1].ref if infos and len(found) > limit else None)

        return await _in_thread(find)

    async def abort_stale_uploads(self, *, older_than_ms: int) -> int:
        """See `AbortsStaleUploads`; a dead process's uploads are known by their locks and go at once."""

        def remove() -> int:
            with _reporting(None):
                return self._tree.remove_stale(older_than_ms / 1000)

        return await _in_thread(remove)

    async def aclose(self) -> None:
        """See `AssetStore.aclose`; nothing stays open between calls."""

    def _find(self, prefix: str, after: str | None) -> Iterator[tuple[str, os.stat_result]]:
        *whole, last = prefix.split("/")
        start = "/".join([*(ref_of(names_of(segment)) for segment in whole), last])

        def keep(text: str) -> bool:
            """Refuse what lies outside the prefix, or wholly before `after`."""
            if not (text.startswith(start) or (text.endswith("/") and start.startswith(text))):
                return False
            return after is None or text > after or (text.endswith("/") and after.startswith(text))

        return self._tree.walk([], ref_of, keep)


class _Upload:
    """One put; its methods run in threads, one after the other."""

    def __init__(self, tree: FolderTree, options: PutOptions, clock: Clock) -> None:
        self._tree = tree
        self._options = options
        self._clock = clock
        self._names = names_of(options.key)
        self._digest = hashlib.sha256()
        self._size = 0
        self._file = -1
        self._temporary: str | None = None
        self._published = False

    def begin(self) -> None:
        with _reporting(None):
            self._file, self._temporary = self._tree.create_temporary()

    def write(self, chunk: bytes) -> None:
        self._size += len(chunk)
        limit = self._options.max_bytes
        if limit is not None and self._size > limit:
            raise AssetTooLarge(limit)
        self._digest.update(chunk)
        with _reporting(None):
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(self._file, rest) :]

    def finish(self) -> StoredAsset:
        now = self._clock()
        with _reporting(None):
            os.utime(self._file, ns=(now * _NS_PER_MS, now * _NS_PER_MS))
            os.fsync(self._file)
            assert self._temporary is not None
            self._tree.publish(self._temporary, self._names)
            self._published = True
            self._close()
        ref = ref_of(self._names)
        uri = self._tree.root.joinpath(*self._names).as_uri()
        return StoredAsset(ref, uri, self._size, self._digest.hexdigest(), now)

    def whole(self, data: bytes) -> StoredAsset:
        """Do all steps at once: each way to a thread and back is a wait behind everybody else on a busy loop."""
        self.begin()
        self.write(data)
        return self.finish()

    def abort(self) -> None:
        """Leave nothing behind, whatever step was reached; the error that led here is the one to report."""
        with suppress(OSError):
            self._close()
            if self._temporary is not None:
                self._tree.discard_temporary(self._temporary)
            if self._published:
                self._tree.remove(self._names)

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


async def _in_thread(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run blocking work in a thread; when cancelled, wait for it first, so that nobody uses what it still uses."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments, **options))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                continue
        if not task.cancelled():
            task.exception()
        raise


@contextmanager
def _reporting(ref: str | None) -> Iterator[None]:
    """Turn what the file system says into the contract's words; without a ref, a missing file is a failure too."""
    try:
        yield
    except OSError as error:
        if ref is not None and isinstance(error, FileNotFoundError):
            raise AssetNotFound(ref) from error
        raise StorageError(
            "the folder of the assets cannot be used; check disk and rights"
        ) from error
