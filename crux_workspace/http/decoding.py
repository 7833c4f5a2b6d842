"""From the JSON of an answer to the very results that a local workspace gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from crux_workspace.http.problems import corrupt
from crux_workspace.model.contents import BinaryContent, Content, JsonContent, TextContent
from crux_workspace.model.files import (
    ListResult,
    WorkspaceDirectory,
    WorkspaceEntry,
    WorkspaceFile,
)

__all__ = [
    "boolean",
    "content",
    "contents",
    "entry",
    "file",
    "file_or_none",
    "listing",
    "nothing",
    "of",
    "several",
    "text",
]

_T = TypeVar("_T")
_CONTENTS: dict[str, type[Content]] = {
    "text": TextContent,
    "json": JsonContent,
    "binary": BinaryContent,
}


def of(kind: type[_T]) -> Callable[[Any], _T]:
    """Return what makes a value of a type; every field is checked (``RECORD_CORRUPT``)."""

    def decode(value: Any) -> _T:  # noqa: ANN401 - JSON
        try:
            return msgspec.convert(value, kind, strict=True)
        except (msgspec.ValidationError, RecursionError):
            raise corrupt(f"it is no {kind.__name__}") from None

    return decode


def several(kind: type[_T]) -> Callable[[Any], list[_T]]:
    """Return what makes a list of values of a type."""
    one = of(kind)

    def decode(value: Any) -> list[_T]:  # noqa: ANN401 - JSON
        if not isinstance(value, list):
            raise corrupt(f"it is no list of {kind.__name__}")
        return [one(item) for item in value]

    return decode


file = of(WorkspaceFile)
_directory = of(WorkspaceDirectory)
_kinds = {kind: of(result) for kind, result in _CONTENTS.items()}


def entry(value: Any) -> WorkspaceEntry:  # noqa: ANN401 - JSON
    """Return a file or a directory."""
    kind = _kind(value)
    if kind == "directory":
        return _directory(value)
    return file(value)


def file_or_none(value: Any) -> WorkspaceFile | None:  # noqa: ANN401 - JSON
    """Return a file, or None where there is none."""
    return None if value is None else file(value)


def content(value: Any) -> Content:  # noqa: ANN401 - JSON
    """Return what `read` gives."""
    decode = _kinds.get(_kind(value))
    if decode is None:
        raise corrupt("it is no content")
    found: Content = decode(value)
    return found


def contents(value: Any) -> dict[str, Content | None]:  # noqa: ANN401 - JSON
    """Return what `read_many` gives."""
    if not isinstance(value, dict):
        raise corrupt("it is no mapping of paths to contents")
    return {path: None if found is None else content(found) for path, found in value.items()}


def listing(value: Any) -> ListResult:  # noqa: ANN401 - JSON
    """Return what `list` gives."""
    if not isinstance(value, dict) or not isinstance(value.get("entries"), list):
        raise corrupt("it is no listing")
    cursor, expired = value.get("cursor"), value.get("expired", 0)
    if not isinstance(cursor, str | None) or not isinstance(expired, int):
        raise corrupt("it is no listing")
    entries = [entry(item) for item in value["entries"]]
    return ListResult(entries, cursor, expired, failures(value))


def failures(value: dict[str, Any]) -> dict[str, str]:
    """Return the mounts whose source failed, with the code of each error."""
    failed = value.get("failed", {})
    if not isinstance(failed, dict) or not all(isinstance(code, str) for code in failed.values()):
        raise corrupt("it does not say which mounts failed")
    return failed


def boolean(value: Any) -> bool:  # noqa: ANN401 - JSON
    """Return a yes or no."""
    if not isinstance(value, bool):
        raise corrupt("it is neither true nor false")
    return value


def text(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return a string."""
    if not isinstance(value, str):
        raise corrupt("it is no string")
    return value


def nothing(value: Any) -> None:  # noqa: ANN401 - JSON
    """Return nothing, if that is what was answered."""
    if value is not None:
        raise corrupt("a result where there is none")


def _kind(value: Any) -> str:  # noqa: ANN401 - JSON
    kind = value.get("kind") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""
