"""Commits that were handed over and are not answered yet: they go on to their end when their caller leaves.

A commit runs in its caller's own task; a task of its own and `asyncio.shield` would cost as much as a small write's SQL. Only when
the caller is cancelled on the way does a task take over what is left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from functools import partial
from types import coroutine
from typing import Any, TypeVar

from crux_workspace.storage.futures import PromptFuture

__all__ = ["InFlight"]

_log = logging.getLogger("crux_workspace")
_T = TypeVar("_T")


@dataclass(slots=True)
class InFlight:
    """The calls of one workspace that must not be torn."""

    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    """What runs in tasks of its own."""
    answers: set[asyncio.Future[None]] = field(default_factory=set)
    """What the tasks of callers wait for."""

    async def shielded(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run work to its end in a task of its own, even when the caller is cancelled."""
        return await asyncio.shield(self._start(work))

    def carried(self, work: Coroutine[Any, Any, _T]) -> Awaitable[_T]:
        """Run work to its end in the caller's task, and in one of its own from where the caller is cancelled.

        The work must not mind in which task it runs: it awaits futures, and opens no timeout and no group of tasks around them.
        """
        return self._carry(work)

    @coroutine
    def _carry(self, work: Coroutine[Any, Any, _T]) -> Generator[Any, Any, _T]:
        answers = self.answers
        try:
            waited = work.send(None)
            while True:
                answer = _answer_to(waited)
                answers.add(answer)
                try:
                    yield from answer
                except asyncio.CancelledError:
                    self._start(_rest(work, waited))
                    raise
                finally:
                    answers.discard(answer)
                waited = work.send(None)
        except StopIteration as stop:
            result: _T = stop.value
            return result

    def _start(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.debug("a commit failed: %s", type(task.exception()).__name__)

    async def wait(self) -> None:
        """Wait until no commit is in flight."""
        while self.tasks or self.answers:
            await asyncio.wait({*self.tasks, *self.answers})


def _answer_to(waited: asyncio.Future[Any] | None) -> asyncio.Future[None]:
    """Return a future that is done with what a step waits for, and can be cancelled without it; None is one turn of the loop."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[None] = loop.create_future()
    if waited is None:
        loop.call_soon(_wake, answer)
        return answer
    waited._asyncio_future_blocking = False
    if isinstance(waited, PromptFuture) and not waited.done():
        waited.behind = answer
    else:
        waited.add_done_callback(partial(_wake, answer))
    return answer


def _wake(answer: asyncio.Future[None], _: object = None) -> None:
    if not answer.done():
        answer.set_result(None)


async def _rest(work: Coroutine[Any, Any, _T], waited: asyncio.Future[Any] | None) -> _T:
    """Carry work on from a step that waits already."""
    return await _resumed(work, waited)


@coroutine
def _resumed(
    work: Coroutine[Any, Any, _T], waited: asyncio.Future[Any] | None
) -> Generator[Any, Any, _T]:
    step: Callable[[], Any]
    try:
        while True:
            if waited is not None:
                waited._asyncio_future_blocking = True
            try:
                yield waited
            except BaseException as error:
                step = partial(work.throw, error)
            else:
                step = partial(work.send, None)
            waited = step()
    except StopIteration as stop:
        result: _T = stop.value
        return result
