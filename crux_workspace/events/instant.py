"""Asking a store without waiting, where it answers in place."""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any, Final, TypeVar

__all__ = ["LATER", "Later", "begin"]

_T = TypeVar("_T")


class Later:
    """Stands for an answer that has to be waited for."""


LATER: Final = Later()


def begin(work: Coroutine[Any, Any, _T]) -> tuple[_T | Later, Coroutine[Any, Any, _T] | None]:
    """Start a coroutine here and now.

    Returns:
        Its result and None if it did not suspend; else `LATER` and the coroutine that runs the rest of it, to be awaited.

    Raises:
        Exception: What it raised before it suspended.
    """
    try:
        waits_for = work.send(None)
    except StopIteration as stop:
        value: _T = stop.value
        return value, None
    return LATER, _finish(_rest(work, waits_for))


async def _finish(rest: Any) -> Any:  # noqa: ANN401 - the result of any coroutine
    return await rest


@types.coroutine
def _rest(work: Coroutine[Any, Any, _T], waits_for: Any) -> Generator[Any, Any, _T]:  # noqa: ANN401
    """Hand on what a started coroutine waits for, and its answers."""
    try:
        while True:
            try:
                answer = yield waits_for
            except BaseException as error:
                waits_for = work.throw(error)
            else:
                waits_for = work.send(answer)
    except StopIteration as stop:
        value: _T = stop.value
        return value
