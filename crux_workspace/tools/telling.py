"""Errors of the workspace in words that a model can act on: with the names of its tools and arguments, and the next call to make."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.model.settings import Mount
from crux_workspace.tools.names import WorkspaceToolNames
from crux_workspace.tools.toolset import ToolError, ToolResult

__all__ = ["Teller"]

_ARGUMENTS = {
    "max_inline_bytes": "maxInlineBytes",
    "start_line": "startLine",
    "end_line": "endLine",
    "replace_all": "replaceAll",
    "ignore_case": "ignoreCase",
    "max_results": "maxResults",
    "mime_type": "mimeType",
    "from_version": "from",
    "to_version": "to",
    "overwrite=True": "overwrite: true",
    "recursive=True": "recursive: true",
}
_PYTHON_NAMES = re.compile("|".join(map(re.escape, _ARGUMENTS)))


class Teller:
    """Tells errors to the model that uses one set of tools."""

    def __init__(
        self, names: WorkspaceToolNames, offered: Sequence[str], mounts: Sequence[Mount]
    ) -> None:
        self._names = names
        self._offered = frozenset(offered)
        self._mounts = mounts

    def failure(self, error: WorkspaceError, path: str | None) -> ToolResult:
        """Return the result of a call that failed; `path` is what it was about."""
        hint = self._hint(error, path) or error.hint
        told = ToolError(
            error.code.value,
            _translated(error.message),
            None if hint is None else _translated(hint),
        )
        failed = ToolResult.failure(error)
        return ToolResult(False, {"error": told.to_dict()}, told, interrupt=failed.interrupt)

    def _hint(self, error: WorkspaceError, path: str | None) -> str | None:
        make = _HINTS.get(error.code)
        return None if make is None else make(self, error, path)

    def unread(self, path: str) -> str:
        """Say that a file has to be read first."""
        return (
            f"Call {self._names.read_file} on {path} first, then make the change on what is there."
        )

    def _conflict(self, error: WorkspaceError, path: str | None) -> str:
        details = error.details
        where = details.get("path") or path
        if details.get("current_version") is None:
            return f"{where} does not exist any more; list its directory, and write it again if it is needed."
        by = f" by {details['last_actor']}" if details.get("last_actor") else ""
        how = f" ({details['last_operation']}{by})" if details.get("last_operation") else by
        return (
            f"{where} is at version {details['current_version']} now{how}. "
            f"Call {self._names.read_file} on it, then repeat the change on what is there."
        )

    def _missing(self, error: WorkspaceError, path: str | None) -> str | None:
        if error.hint is not None and "directory" in error.hint and "List its" not in error.hint:
            return f"{path} is a directory: call {self._names.list} on it and choose a file."
        where = (path or "/").rsplit("/", 1)[0] or "/"
        return f"Call {self._names.list} on {where} to see what is there, or {self._names.grep} to search."

    def _no_version(self, error: WorkspaceError, path: str | None) -> str | None:
        if self._names.history_file in self._offered:
            return f"Call {self._names.history_file} on {path} to see its versions."
        return "Leave version out to read the newest."

    def _bad_path(self, error: WorkspaceError, path: str | None) -> str | None:
        if path is None or not path or path.startswith("/"):
            return error.hint
        plain = path.removeprefix("./").removeprefix("~/")
        if any(character in path for character in "*?[{"):
            return f"A glob is absolute too: '/**/{plain.lstrip('/')}' searches everywhere."
        first = plain.split("/")[0]
        if "/" + first in {mount.path for mount in self._mounts}:
            return f"Start the path with a slash: '/{plain}'."
        return f"Paths are absolute: '{self._mounts[0].path}/{plain}', for example. {self._roots()}"

    def _roots(self) -> str:
        return f"The roots are: {', '.join(mount.path for mount in self._mounts)}."

    def _read_only(self, error: WorkspaceError, path: str | None) -> str:
        writable = [mount.path for mount in self._mounts if mount.access == "readwrite"]
        return (
            f"Write below one of: {', '.join(writable)}."
            if writable
            else "Nothing here can be changed."
        )

    def _binary(self, error: WorkspaceError, path: str | None) -> str:
        return f"{path} is binary: its content cannot be shown, searched or edited as text."

    def _content(self, error: WorkspaceError, path: str | None) -> str | None:
        if "JSON value" in error.message:
            return f"Read {path}, change the value and send all of it to {self._names.write_file}."
        return error.hint

    def _cursor(self, error: WorkspaceError, path: str | None) -> str:
        return (
            "Leave cursor out to begin again; a cursor goes only with the arguments it came from."
        )


_HINTS: dict[ErrorCode, Callable[[Teller, WorkspaceError, str | None], str | None]] = {
    ErrorCode.VERSION_CONFLICT: Teller._conflict,
    ErrorCode.FILE_NOT_FOUND: Teller._missing,
    ErrorCode.VERSION_NOT_FOUND: Teller._no_version,
    ErrorCode.VERSION_EXPIRED: Teller._no_version,
    ErrorCode.INVALID_PATH: Teller._bad_path,
    ErrorCode.READ_ONLY_MOUNT: Teller._read_only,
    ErrorCode.BINARY_CONTENT: Teller._binary,
    ErrorCode.INVALID_CONTENT: Teller._content,
    ErrorCode.INVALID_CURSOR: Teller._cursor,
}


def _translated(text: str) -> str:
    """Return a text with the arguments' names as the model knows them."""
    return _PYTHON_NAMES.sub(lambda found: _ARGUMENTS[found[0]], text)
