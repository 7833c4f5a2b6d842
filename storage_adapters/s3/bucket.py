"""A client, a bucket and a prefix: what the parts of the store share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from crux_workspace.errors import ErrorCode, StateError
from storage_adapters.s3.settings import THREADS, S3Settings

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

__all__ = ["Bucket"]

T = TypeVar("T")


class Bucket:
    """Runs the SDK's blocking calls in threads of its own, and lets nothing that was begun go astray."""

    def __init__(self, client: S3Client, name: str, prefix: str, settings: S3Settings) -> None:
        self.client = client
        self.name = name
        self.prefix = prefix
        self.settings = settings
        self.conditional = True
        """False once the server said that it knows no conditional create."""
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="crux-s3")
        self._tidying: set[asyncio.Task[None]] = set()
        self._closed = False

    def key(self, ref: str) -> str:
        """Return the object's key in the bucket."""
        return self.prefix + ref

    def begin(self, work: Callable[[], T]) -> Future[T]:
        """Start blocking work in a thread."""
        if self._closed:
            raise StateError(
                "The asset store is closed; open it again.", code=ErrorCode.WORKSPACE_CLOSED
            )
        return self._threads.submit(work)

    async def run(self, work: Callable[[], T]) -> T:
        """Run blocking work in a thread; when cancelled, what it returns is dropped."""
        return await asyncio.wrap_future(self.begin(work))

    async def tidy(self, work: Coroutine[Any, Any, None], *, wait_s: float) -> None:
        """Clean up in a task that nobody can cancel, waiting for it at most so long; `aclose` waits for the rest."""
        task = asyncio.get_running_loop().create_task(work)
        self._tidying.add(task)
        task.add_done_callback(self._tidying.discard)
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task], timeout=wait_s)

    async def aclose(self) -> None:
        """Wait for what is being cleaned up, and end the threads."""
        if self._tidying:
            await asyncio.wait(self._tidying)
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._threads.shutdown)
