"""Wrapping backends: composition, and logging that keeps contents to itself."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

from crux_workspace.agent.files.contract import FilesystemBackend, FsContext
from crux_workspace.model.values import Value

__all__ = [
    "BackendCall",
    "FilesystemMiddleware",
    "compose",
    "with_filesystem_logging",
    "with_shell_logging",
]

_T = TypeVar("_T")
_B = TypeVar("_B")
FilesystemMiddleware: TypeAlias = Callable[[FilesystemBackend], FilesystemBackend]
"""Takes the next backend and returns one that does more."""

_LOGGED = {
    "read_file": 1,
    "read_binary_file": 1,
    "read_lines": 3,
    "list_dir": 1,
    "walk_tree": 1,
    "write_file": 2,
    "replace": 1,
}
"""{method: how many of its arguments are told}"""


@dataclass(frozen=True, slots=True)
class BackendCall(Value):
    """One call of a backend, about to be made."""

    method: str
    args: tuple[Any, ...] = field(repr=False)
    """Path or command first; contents only when they were asked for."""


def compose(*middlewares: Callable[[_B], _B]) -> Callable[[_B], _B]:
    """Return one middleware of several; the first is outermost.

    Args:
        middlewares: Each takes the next backend or shell and returns one that does more.

    Returns:
        A function to call with the base.
    """

    def wrap(base: _B) -> _B:
        return functools.reduce(
            lambda inner, middleware: middleware(inner), reversed(middlewares), base
        )

    return wrap


def with_filesystem_logging(
    destination: Callable[[BackendCall], None] | None = None, *, include_content: bool = False
) -> FilesystemMiddleware:
    """Return a middleware that tells each call before it is made.

    Args:
        destination: Is given each call; None writes a line to standard error.
        include_content: Tell what is written too; otherwise only how much it is. What is read is never told.

    Returns:
        The middleware. Methods that the backend does not have, its wrapped form does not have either.
    """
    tell = destination or _to_stderr

    def wrap(inner: FilesystemBackend) -> FilesystemBackend:
        return cast("FilesystemBackend", _LoggedFilesystem(inner, tell, include_content))

    return wrap


class _LoggedFilesystem:
    def __init__(
        self, inner: FilesystemBackend, tell: Callable[[BackendCall], None], include_content: bool
    ) -> None:
        self._inner = inner
        self._tell = tell
        self._include_content = include_content

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the inner one's
        found = getattr(self._inner, name)
        if name == "read_binary_files":
            return self._several(found)
        if name not in _LOGGED:
            return found

        @functools.wraps(found)
        async def logged(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - the inner one's
            self._tell(BackendCall(name, self._told(name, args)))
            return await found(*args, **options)

        return logged

    def _several(self, found: Callable[..., Any]) -> Callable[..., Any]:
        async def logged(requests: list[tuple[str, int | None]], ctx: FsContext) -> Any:  # noqa: ANN401
            for path, _ in requests:
                self._tell(BackendCall("read_binary_file", (path,)))
            return await found(requests, ctx)

        return logged

    def _told(self, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        told = args[: _LOGGED[name]]
        if name == "write_file" and not self._include_content:
            return (told[0], f"<{len(str(args[1]).encode('utf-8', 'replace'))} bytes>")
        if name == "replace" and self._include_content:
            return (told[0], args[2].decode("utf-8", "replace"))
        return told


def with_shell_logging(
    destination: Callable[[BackendCall], None] | None = None,
) -> Callable[[_T], _T]:
    """Return a middleware for shells that tells each command before it runs.

    Args:
        destination: Is given each call; None writes a line to standard error.

    Returns:
        The middleware.
    """
    tell = destination or _to_stderr

    def wrap(inner: _T) -> _T:
        return cast("_T", _LoggedShell(inner, tell))

    return wrap


class _LoggedShell:
    def __init__(self, inner: Any, tell: Callable[[BackendCall], None]) -> None:  # noqa: ANN401
        self._inner = inner
        self._tell = tell

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the inner one's
        return getattr(self._inner, name)

    async def run_command(self, command: str, ctx: FsContext, **options: Any) -> Any:  # noqa: ANN401
        self._tell(BackendCall("run_command", (command,)))
        return await self._inner.run_command(command, ctx, **options)


def _to_stderr(call: BackendCall) -> None:
    told = ", ".join(json.dumps(arg, ensure_ascii=True, default=str) for arg in call.args)
    print(f"[crux_workspace.agent] {call.method}({told})", file=sys.stderr)
