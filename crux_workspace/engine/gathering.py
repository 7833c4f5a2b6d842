"""How much content one call gathers in memory: told to whoever runs the call before it is loaded, and refused there if it is too much."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Judge", "gather", "gathering"]

Judge = Callable[[str, int], None]
"""Takes the path and the bytes that are about to be gathered; raises what the call is to be refused with."""
_judge: ContextVar[Judge | None] = ContextVar("gathering", default=None)


@contextmanager
def gathering(judge: Judge) -> Iterator[None]:
    """Let what the reads of this context gather be judged; those of other contexts are not."""
    token = _judge.set(judge)
    try:
        yield
    finally:
        _judge.reset(token)


def gather(path: str, size: int) -> None:
    """Say that so many bytes of a file are about to be in memory."""
    judge = _judge.get()
    if judge is not None:
        judge(path, size)
