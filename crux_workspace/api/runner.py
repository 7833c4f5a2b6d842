"""The one seam that every public call passes: usability, namespace, span, and what becomes of unexpected errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from crux_workspace.api.core import WorkspaceCore, active_run
from crux_workspace.errors import InvalidPathError
from crux_workspace.model.paths import normalise
from crux_workspace.model.verbs import VERBS
from crux_workspace.operations.space import Space
from crux_workspace.storage.failures import unavailable
from crux_workspace.storage.records import StoreError
from crux_workspace.telemetry import OperationSpan, PathHash

__all__ = ["Runner"]

_T = TypeVar("_T")


class Runner:
    """Runs the verbs of one view: a namespace it may be bound to, and an actor it may act as."""

    __slots__ = ("actor", "bound", "core", "within")

    def __init__(self, core: WorkspaceCore, bound: str | None, actor: str | None) -> None:
        self.core = core
        self.bound = bound
        self.actor = actor
        self.within: OperationSpan | None = None
        """The operation that all calls are parts of."""

    async def run(
        self,
        verb: str,
        path: object,
        namespace: str | None,
        call: Callable[[Space], Awaitable[_T]],
    ) -> _T:
        """Carry out one call on the namespace it names."""
        if self.core.recorder.listening:
            return await self._told(verb, path, lambda: self._called(namespace, call))
        try:
            space = self._space(namespace)
            return await call(space if isinstance(space, Space) else await space)
        except StoreError as error:
            raise _known(error) from error

    async def _called(self, namespace: str | None, call: Callable[[Space], Awaitable[_T]]) -> _T:
        space = self._space(namespace)
        return await call(space if isinstance(space, Space) else await space)

    async def run_unbound(self, verb: str, call: Callable[[], Awaitable[_T]]) -> _T:
        """Carry out one call that is about no namespace, or all of them."""

        async def work() -> _T:
            self.core.enter()
            return await call()

        return await self._watched(verb, None, work)

    async def observe(self, verb: str, path: object, work: Callable[[], Awaitable[_T]]) -> _T:
        """Carry out a part of a public operation that found its namespace itself, as that operation."""
        return await self._watched(verb, path, work)

    def open(self, verb: str) -> OperationSpan:
        """Start an operation that takes several calls; whoever opens it ends it."""
        return self.core.recorder.start(VERBS[verb].span, current=False)

    async def run_in(
        self, span: OperationSpan, namespace: str | None, call: Callable[[Space], Awaitable[_T]]
    ) -> _T:
        """Carry out one of the calls of an operation on the namespace it names."""
        with span.active():
            return await _translated(lambda: self._called(namespace, call))

    async def finish_in(self, span: OperationSpan, work: Callable[[], Awaitable[_T]]) -> _T:
        """Carry out the last call of an operation, which found its namespace before."""
        self.core.enter()
        with span.active():
            return await _translated(work)

    async def _watched(self, verb: str, path: object, work: Callable[[], Awaitable[_T]]) -> _T:
        if not self.core.recorder.listening:
            return await _translated(work)
        return await self._told(verb, path, work)

    async def _told(self, verb: str, path: object, work: Callable[[], Awaitable[_T]]) -> _T:
        """Carry out one call that somebody listens to."""
        recorder = self.core.recorder
        span = recorder.start(VERBS[verb].span, within=self.within)
        hashed = None
        try:
            if path is not None:
                hashed = recorder.known_hash(path) or await self._hash(path)
            try:
                result = await work()
            except StoreError as error:
                raise _known(error) from error
        except BaseException as error:
            span.abort(error, path_hash=hashed)
            raise
        _finish(span, verb, result, hashed)
        return result

    async def iterate(
        self,
        verb: str,
        path: object,
        namespace: str | None,
        call: Callable[[Space], AsyncGenerator[_T, None]],
    ) -> AsyncGenerator[_T, None]:
        """Carry out one call that yields; its span ends with the iteration, and whoever leaves it early closes it whole."""
        span = self.core.recorder.start(VERBS[verb].span, current=False, within=self.within)
        hashed = None
        size = 0
        try:
            hashed = await self._hash(path)
            space = self._space(namespace)
            space = space if isinstance(space, Space) else await space
            async with aclosing(call(space)) as items:
                async for item in items:
                    size += len(item) if isinstance(item, bytes) else 0
                    yield item
        except GeneratorExit:
            span.finish(kind=verb, size=size, path_hash=hashed)
            raise
        except BaseException as error:
            span.abort(error, path_hash=hashed)
            raise _known(error) from error.__cause__
        span.finish(kind=verb, size=size, path_hash=hashed)

    def _space(self, namespace: str | None) -> Space | Awaitable[Space]:
        """Return the namespace that a call names; to be awaited where the application has to be asked for it."""
        self.core.enter()
        resolved = self.core.namespace_of(self.bound, namespace)
        return self._bound(resolved) if isinstance(resolved, str) else self._asked(resolved)

    async def _asked(self, resolving: Awaitable[str]) -> Space:
        return self._bound(await resolving)

    def _bound(self, namespace: str) -> Space:
        actor = self.actor
        if actor is None and (found := active_run()) is not None:
            actor = found[0]
        return self.core.space(namespace, actor)

    async def _hash(self, path: object) -> PathHash | None:
        if path is None or not self.core.recorder.listening:
            return None
        try:
            return await self.core.recorder.hash_path(normalise(path))  # type: ignore[arg-type]
        except InvalidPathError:
            return None


async def _translated(work: Callable[[], Awaitable[_T]]) -> _T:
    try:
        return await work()
    except StoreError as error:
        raise _known(error) from error


def _known(error: BaseException) -> BaseException:
    """Turn what a store let through into the error that users know; the caller's own errors stay."""
    if isinstance(error, StoreError):
        return unavailable("record store", error)
    return error


def _finish(span: OperationSpan, verb: str, result: object, hashed: PathHash | None) -> None:
    size: Any = getattr(result, "size", None)
    if isinstance(result, bytes):
        size = len(result)
    kind = getattr(result, "kind", None)
    if verb == "finalize":
        kind = "artifact"
    elif not isinstance(kind, str):
        kind = None if result is None else type(result).__name__
    transfer = VERBS[verb].moves_bytes
    span.finish(kind=kind, size=size, path_hash=hashed, is_transfer=transfer)
