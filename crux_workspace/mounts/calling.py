"""Calling a provider: sync or async, within its time, and with every failure turned into a typed one.

A call that is out of time is left behind, never waited for: a coroutine is cancelled and forgotten, a thread goes on as a daemon. Each
mount has a bounded number of threads, so a provider that hangs for ever holds those and nothing else.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any

from crux_workspace.errors import ErrorCode, StorageError, UnsupportedError
from crux_workspace.model.settings import Mount

__all__ = ["MAX_THREADS", "Caller", "invalid", "too_slow", "unsupported"]

MAX_THREADS = 16
"""Calls of one mount's sync methods that run at a time."""


def invalid(mount: Mount, hook: str, why: str, hint: str | None = None) -> StorageError:
    """Make the error of a provider that returned what it must not (``SOURCE_INVALID``)."""
    return StorageError(
        f"The source of the mount {mount.path} returned something unusable from {hook}: {why}.",
        code=ErrorCode.SOURCE_INVALID,
        details={"mount": mount.path, "operation": hook},
        hint=hint,
    )


def unsupported(mount: Mount, what: str, hint: str | None = None) -> UnsupportedError:
    """Make the error of what a source-backed mount does not do (``SOURCE_UNSUPPORTED``)."""
    return UnsupportedError(
        f"The source-backed mount {mount.path} does not support {what}.",
        code=ErrorCode.SOURCE_UNSUPPORTED,
        details={"mount": mount.path},
        hint=hint,
    )


def too_slow(mount: Mount, hook: str) -> StorageError:
    """Make the error of a provider that takes too long (``STORE_TIMEOUT``)."""
    return StorageError(
        f"The source of the mount {mount.path} did not answer {hook} within {mount.timeout_ms} ms.",
        code=ErrorCode.STORE_TIMEOUT,
        details={"mount": mount.path, "operation": hook, "timeout_ms": mount.timeout_ms},
        hint="Try again later, or ask for less.",
    )


def _failed(mount: Mount, hook: str, error: BaseException) -> StorageError:
    if isinstance(error, TimeoutError):
        return too_slow(mount, hook)
    return StorageError(
        f"The source of the mount {mount.path} failed in {hook} ({type(error).__name__}).",
        code=ErrorCode.STORE_UNAVAILABLE,
        details={"mount": mount.path, "operation": hook},
        hint="Try again later; what the workspace keeps itself is not affected.",
    )


class Caller:
    """Calls the methods of one mount's source."""

    def __init__(self, mount: Mount) -> None:
        self.mount = mount
        self._threads = asyncio.Semaphore(MAX_THREADS)

    def has(self, hook: str) -> bool:
        """Tell whether the source has a method."""
        return callable(getattr(self.mount.source, hook, None))

    async def call(self, hook: str, *args: object) -> Any:  # noqa: ANN401 - whatever the provider returns
        """Call a method; "nothing there" (``FileNotFoundError``) is None.

        Raises:
            StorageError: It took too long or failed (``STORE_TIMEOUT``, ``STORE_UNAVAILABLE``), its exception chained.
            UnsupportedError: It is not implemented (``SOURCE_UNSUPPORTED``).
        """
        method = getattr(self.mount.source, hook)
        try:
            result = await self._within_time(hook, self._begin(method, args))
            while inspect.isawaitable(result):
                result = await self._within_time(hook, result)
        except FileNotFoundError as error:
            if hook in ("write", "grep"):
                raise _failed(self.mount, hook, error) from error
            return None
        except NotImplementedError as error:
            raise unsupported(self.mount, hook) from error
        return result

    async def chunks(self, hook: str, items: Any) -> AsyncGenerator[bytes, None]:  # noqa: ANN401
        """Iterate over the bytes that a provider streams; each step has the time of a call."""
        iterator = aiter(items)
        end = object()

        async def step() -> object:
            return await anext(iterator, end)

        try:
            while (chunk := await self._within_time(hook, step())) is not end:
                if not isinstance(chunk, bytes | bytearray | memoryview):
                    raise invalid(self.mount, hook, f"{type(chunk).__name__} instead of bytes")
                yield bytes(chunk)
        finally:
            close = getattr(iterator, "aclose", None)
            if close is not None:
                with suppress(Exception):
                    await asyncio.wait_for(close(), self.mount.timeout_ms / 1000)

    def _begin(self, method: Callable[..., Any], args: tuple[object, ...]) -> Awaitable[Any]:
        if not inspect.iscoroutinefunction(method):
            return self._in_thread(method, args)

        async def begun() -> object:
            return await method(*args)

        return begun()

    async def _in_thread(self, method: Callable[..., Any], args: tuple[object, ...]) -> Any:  # noqa: ANN401
        await self._threads.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        context = contextvars.copy_context()

        def deliver(outcome: tuple[Any, BaseException | None]) -> None:
            self._threads.release()
            if not done.done():
                done.set_result(outcome)

        def work() -> None:
            outcome: tuple[Any, BaseException | None]
            try:
                outcome = (context.run(method, *args), None)
            except BaseException as error:
                outcome = (None, error)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(deliver, outcome)

        try:
            threading.Thread(target=work, name="crux-workspace-source", daemon=True).start()
        except RuntimeError:  # the process can have no more threads
            self._threads.release()
            raise
        result, error = await done
        if error is not None:
            raise _Raised(error)
        return result

    async def _within_time(self, hook: str, work: Awaitable[Any]) -> Any:  # noqa: ANN401
        task: asyncio.Future[Any] = asyncio.ensure_future(work)
        try:
            finished, _ = await asyncio.wait({task}, timeout=self.mount.timeout_ms / 1000)
        except asyncio.CancelledError:
            _forget(task)
            raise
        if not finished:
            _forget(task)
            raise too_slow(self.mount, hook)
        try:
            return task.result()
        except (FileNotFoundError, NotImplementedError):
            raise
        except _Raised as raised:
            error = raised.error
            if isinstance(error, FileNotFoundError | NotImplementedError):
                raise error from error.__cause__
            raise self._known(hook, error) from error
        except BaseException as error:
            raise self._known(hook, error) from error

    def _known(self, hook: str, error: BaseException) -> StorageError:
        if isinstance(error, StorageError):
            return error
        return _failed(self.mount, hook, error)


class _Raised(Exception):
    """What a method raised in its thread; a future cannot hold every exception as it is."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def _forget(task: asyncio.Future[Any]) -> None:
    """Cancel work and let go of it, however it ends."""
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
