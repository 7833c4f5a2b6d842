"""Errors of the workspace in words that a model can act on: with the names of its tools and arguments, and the next call to make."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.model.paths import is_below
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
    "; repeat the call with the same idempotency_key": "",
}
_PYTHON_NAMES = re.compile("|".join(map(re.escape, _ARGUMENTS)))


@dataclass(frozen=True, slots=True)
class _Call:
    """What a failed call was about."""

    field: str
    """The tool, as a field of the names."""
    path: str | None
    src: str | None
    to: str | None

    @property
    def about(self) -> str | None:
        """The path that the call works on."""
        return self.path if self.path is not None else self.src

    @property
    def relative(self) -> str | None:
        """The first path that lacks its slash."""
        given = (self.path, self.src, self.to)
        return next((path for path in given if path and not path.startswith("/")), None)


def _text(given: object) -> str | None:
    return given if isinstance(given, str) else None


class Teller:
    """Tells errors to the model that uses one set of tools."""

    def __init__(
        self, names: WorkspaceToolNames, offered: Sequence[str], mounts: Sequence[Mount]
    ) -> None:
        self._names = names
        self._offered = frozenset(offered)
        self._mounts = mounts

    def failure(
        self, error: WorkspaceError, field: str, arguments: Mapping[str, Any]
    ) -> ToolResult:
        """Return the result of a call that failed: of the tool that is a field of the names, with its arguments as they were sent."""
        call = _Call(field, *(_text(arguments.get(name)) for name in ("path", "from", "to")))
        hint = self._hint(error, call) or error.hint
        told = ToolError(
            error.code.value,
            _translated(error.message),
            _translated(hint),
        )
        failed = ToolResult.failure(error)
        return ToolResult(False, {"error": told.to_dict()}, told, interrupt=failed.interrupt)

    def _hint(self, error: WorkspaceError, call: _Call) -> str | None:
        make = _HINTS.get(error.code)
        return None if make is None else make(self, error, call)

    def _conflict(self, error: WorkspaceError, call: _Call) -> str:
        details = error.details
        where = details.get("path") or call.about
        if details.get("current_version") is None:
            return f"{where} does not exist any more; list its directory, and write it again if it is needed."
        by = f" by {details['last_actor']}" if details.get("last_actor") else ""
        how = f" ({details['last_operation']}{by})" if details.get("last_operation") else by
        return (
            f"{where} is at version {details['current_version']} now{how}. "
            f"Call {self._names.read_file} on it, then repeat the change on what is there."
        )

    def _missing(self, error: WorkspaceError, call: _Call) -> str | None:
        if "directory" in error.hint and "List its" not in error.hint:
            return f"{call.about} is a directory: call {self._names.list} on it and choose a file."
        where = (call.about or "/").rsplit("/", 1)[0] or "/"
        return f"Call {self._names.list} on {where} to see what is there, or {self._names.grep} to search."

    def _no_version(self, error: WorkspaceError, call: _Call) -> str | None:
        if self._names.history_file in self._offered:
            return f"Call {self._names.history_file} on {call.about} to see its versions."
        if call.field == "read_file":
            return "Leave version out to read the newest."
        return f"Call {self._names.read_file} on {call.about} to see what it holds now."

    def _bad_path(self, error: WorkspaceError, call: _Call) -> str | None:
        refused = str(error.details.get("path"))
        if call.src and call.to and refused.endswith("/") and call.to.startswith("/"):
            name = call.src.rstrip("/").rpartition("/")[2]
            return f"Send to with the new name in the directory: '{call.to.rstrip('/')}/{name}'."
        path = call.relative
        if not path:
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

    def _read_only(self, error: WorkspaceError, call: _Call) -> str:
        writable = [mount.path for mount in self._mounts if mount.access == "readwrite"]
        return (
            f"Write below one of: {', '.join(writable)}."
            if writable
            else "Nothing here can be changed."
        )

    def _binary(self, error: WorkspaceError, call: _Call) -> str:
        return f"{call.about} is binary: its content cannot be shown, searched or edited as text."

    def _content(self, error: WorkspaceError, call: _Call) -> str | None:
        if "JSON value" in error.message:
            return f"Read {call.about}, change the value and send all of it to {self._names.write_file}."
        return error.hint

    def _type_conflict(self, error: WorkspaceError, call: _Call) -> str:
        where = str(error.details.get("path") or call.about)
        conflict: str | None = error.details.get("conflict")
        if conflict is not None and is_below(where, conflict):
            return f"{conflict} is a file and nothing can be below it: choose another place."
        if call.field == "delete_file":
            return f"{where} is a directory: call {self._names.list} on it and delete its files one by one."
        if call.to is not None and call.src is not None:
            name = call.src.rstrip("/").rpartition("/")[2]
            if where == call.to.rstrip("/") and "is a file;" not in error.message:
                return f"{where} is a directory. To put {name} into it, send to: '{where.rstrip('/')}/{name}'."
            return "Choose a name that is free."
        return f"{where} is a directory: send the path of a file in it, such as '{where.rstrip('/')}/notes.md'."

    def _unsupported(self, error: WorkspaceError, call: _Call) -> str | None:
        if error.hint != error.code.hint:
            return error.hint
        kept = [m.path for m in self._mounts if m.source is None and m.access == "readwrite"]
        if not kept:
            return "Nothing here can be changed."
        if self._names.copy_file in self._offered:
            return f"Copy it with {self._names.copy_file} to below one of {', '.join(kept)} and work there."
        return f"Read it with {self._names.read_file}, write it below one of {', '.join(kept)} and work there."

    def _late(self, error: WorkspaceError, call: _Call) -> str | None:
        if call.field in ("list", "read_file", "grep", "stat_file", "history_file", "diff_file"):
            return "Try again later." if error.hint == error.code.hint else error.hint
        return f"It may have happened all the same: call {self._names.read_file} on {call.to or call.about} before trying again."

    def _again(self, error: WorkspaceError, call: _Call) -> str:
        return "Somebody else was changing the same files: make the same call again."

    def _cursor(self, error: WorkspaceError, call: _Call) -> str:
        return (
            "Leave cursor out to begin again; a cursor goes only with the arguments it came from."
        )


_HINTS: dict[ErrorCode, Callable[[Teller, WorkspaceError, _Call], str | None]] = {
    ErrorCode.VERSION_CONFLICT: Teller._conflict,
    ErrorCode.FILE_NOT_FOUND: Teller._missing,
    ErrorCode.VERSION_NOT_FOUND: Teller._no_version,
    ErrorCode.VERSION_EXPIRED: Teller._no_version,
    ErrorCode.INVALID_PATH: Teller._bad_path,
    ErrorCode.READ_ONLY_MOUNT: Teller._read_only,
    ErrorCode.BINARY_CONTENT: Teller._binary,
    ErrorCode.INVALID_CONTENT: Teller._content,
    ErrorCode.INVALID_CURSOR: Teller._cursor,
    ErrorCode.PATH_TYPE_CONFLICT: Teller._type_conflict,
    ErrorCode.SOURCE_UNSUPPORTED: Teller._unsupported,
    ErrorCode.STORE_TIMEOUT: Teller._late,
    ErrorCode.TRANSACTION_CONFLICT: Teller._again,
}


def _translated(text: str) -> str:
    """Return a text with the arguments' names as the model knows them."""
    return _PYTHON_NAMES.sub(lambda found: _ARGUMENTS[found[0]], text)
