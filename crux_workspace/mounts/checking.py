"""What a provider returned, held to the contract: inside its mount, of the right types, and with what it left out filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from crux_workspace.errors import InvalidInputError, InvalidPathError
from crux_workspace.model.contents import BinaryContent, Content, JsonContent, TextContent
from crux_workspace.model.files import ListResult, WorkspaceDirectory, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.jsontext import check_json, dump_compact
from crux_workspace.model.lines import byte_window, count_lines
from crux_workspace.model.matching import MAX_LINE_CHARACTERS, GrepMatch
from crux_workspace.model.mime import DEFAULTS, guess
from crux_workspace.model.paths import is_at_or_below, normalise, sort_key
from crux_workspace.model.searches import GrepResult
from crux_workspace.model.settings import Mount
from crux_workspace.mounts.calling import invalid

__all__ = ["Checker", "revision_of", "windowed"]

_Known = TypeVar("_Known", WorkspaceFile, TextContent, JsonContent, BinaryContent)
_TEXTS = ("mime_type", "sha256", "artifact_kind", "uri", "preview")
_NUMBERS = ("size", "version", "created_at", "updated_at", "offset", "total_lines")


class Checker:
    """Checks the results of one mount's source."""

    def __init__(self, mount: Mount, owns: Callable[[str], bool]) -> None:
        self.mount = mount
        self.owns = owns
        """Whether a path belongs to this mount, not to one that lies inside it."""

    def path(self, hook: str, raw: object) -> str:
        """Return the normal form of a path that the provider named.

        Raises:
            StorageError: It is no path, or lies outside the mount (``SOURCE_INVALID``).
        """
        try:
            path = normalise(raw)  # type: ignore[arg-type]
        except InvalidPathError as error:
            raise invalid(self.mount, hook, "a path that can name nothing") from error
        if not is_at_or_below(path, self.mount.path):
            raise invalid(self.mount, hook, f'path "{path}" is outside mount "{self.mount.path}"')
        return path

    def page(self, result: object) -> tuple[list[WorkspaceEntry], str | None]:
        """Return the entries of a listing, each path once and in order, and its cursor."""
        if isinstance(result, ListResult):
            entries: Iterable[object] = result.entries
            cursor: object = result.cursor
        else:
            entries, cursor = ([] if result is None else result), None  # type: ignore[assignment]
        if isinstance(entries, str) or not isinstance(entries, list | tuple):
            raise invalid(self.mount, "list", f"{type(result).__name__} instead of ListResult")
        if cursor is not None and not isinstance(cursor, str):
            raise invalid(self.mount, "list", "a cursor that is no str")
        found: dict[str, WorkspaceEntry] = {}
        for entry in entries:
            checked = self._entry(entry)
            if checked is not None:
                found.setdefault(checked.path, checked)
        ordered = sorted(found.values(), key=lambda entry: sort_key(entry.path))
        return ordered, cursor or None

    def _entry(self, entry: object) -> WorkspaceEntry | None:
        if isinstance(entry, WorkspaceDirectory):
            path = self.path("list", entry.path)
            return WorkspaceDirectory(path, self.mount.path) if self.owns(path) else None
        if not isinstance(entry, WorkspaceFile):
            raise invalid(
                self.mount, "list", f"an entry of type {type(entry).__name__}, not WorkspaceFile"
            )
        path = self.path("list", entry.path)
        return self.file("list", entry, path) if self.owns(path) else None

    def file(self, hook: str, file: object, path: str | None = None) -> WorkspaceFile:
        """Return what a provider knows of a file; it belongs to this mount and to no commit."""
        if not isinstance(file, WorkspaceFile):
            raise invalid(self.mount, hook, f"{type(file).__name__} instead of WorkspaceFile")
        where = self.path(hook, file.path) if path is None else path
        if where == self.mount.path:
            raise invalid(self.mount, hook, "a file at the mount's own path")
        self._check_fields(hook, file)
        mime = file.mime_type
        if mime == DEFAULTS["text"]:
            mime = guess(where, file.content_kind)
        return replace(
            file,
            path=where,
            mime_type=mime,
            mount=self.mount.path,
            storage="virtual",
            pinned_version=None,
            sequence=0,
            commit=None,
        )

    def _check_fields(self, hook: str, value: Any) -> None:  # noqa: ANN401 - any result of a provider
        for name in _TEXTS:
            field = getattr(value, name, None)
            if field is not None and not isinstance(field, str):
                raise invalid(self.mount, hook, f"a {name} that is no str")
        for name in _NUMBERS:
            field = getattr(value, name, 0)
            if not isinstance(field, int) or isinstance(field, bool) or field < 0:
                raise invalid(self.mount, hook, f"a {name} that is no whole number of 0 or more")
        if value.status not in (None, "draft", "final"):
            raise invalid(self.mount, hook, "a status that is neither draft nor final")
        if value.metadata is not None:
            if not isinstance(value.metadata, dict):
                raise invalid(self.mount, hook, "metadata that is no dict")
            self._check_json(hook, value.metadata)

    def _check_json(self, hook: str, value: object) -> None:
        try:
            check_json(value)
        except InvalidInputError as error:
            raise invalid(self.mount, hook, "what is no JSON value") from error

    def content(self, hook: str, result: object, path: str) -> Content:
        """Return content under the path that was asked for, with size, lines and MIME type where they follow from it."""
        if not isinstance(result, TextContent | JsonContent | BinaryContent):
            raise invalid(self.mount, hook, f"{type(result).__name__} instead of content")
        self._check_fields(hook, result)
        if isinstance(result, TextContent):
            return self._text(hook, result, path)
        if isinstance(result, JsonContent):
            self._check_json(hook, result.content)
            size = len(dump_compact(result.content))
            return replace(result, path=path, size=size, truncated=False, pinned_version=None)
        return replace(
            result,
            path=path,
            mime_type=_mime(result.mime_type, path, "binary"),
            pinned_version=None,
        )

    def _text(self, hook: str, result: TextContent, path: str) -> TextContent:
        given: object = result.content
        if not isinstance(given, str):
            raise invalid(self.mount, hook, f"text content that is {type(given).__name__}")
        try:
            length = len(given.encode())
        except UnicodeEncodeError as error:
            raise invalid(self.mount, hook, "text with a lone surrogate") from error
        end = result.offset + length
        cut = bool(result.truncated) or result.offset > 0
        return replace(
            result,
            path=path,
            mime_type=_mime(result.mime_type, path, "text"),
            size=max(result.size, end) if cut else end,
            truncated=cut,
            total_lines=result.total_lines if cut else count_lines(given),
            pinned_version=None,
        )

    def matches(
        self, result: object, covers: Callable[[str], bool]
    ) -> tuple[list[GrepMatch], bool]:
        """Return matches inside a scope, each place once and in order, and whether the provider left some out."""
        if isinstance(result, GrepResult):
            given, truncated = result.matches, bool(result.truncated)
        else:
            given, truncated = ([] if result is None else result), False  # type: ignore[assignment]
        if not isinstance(given, list | tuple):
            raise invalid(self.mount, "grep", f"{type(result).__name__} instead of GrepResult")
        found: dict[tuple[str, int, int], GrepMatch] = {}
        for match in given:
            checked = self._match(match)
            if self.owns(checked.path) and covers(checked.path):
                found.setdefault((checked.path, checked.line, checked.column), checked)
        ordered = sorted(found, key=lambda place: (sort_key(place[0]), *place[1:]))
        return [found[place] for place in ordered], truncated

    def _match(self, match: object) -> GrepMatch:
        if not isinstance(match, GrepMatch):
            raise invalid(self.mount, "grep", f"{type(match).__name__} instead of GrepMatch")
        path = self.path("grep", match.path)
        for name, number in (("line", match.line), ("column", match.column)):
            given: object = number
            if not isinstance(given, int) or isinstance(given, bool) or given < 1:
                raise invalid(self.mount, "grep", f"a {name} that is no whole number of 1 or more")
        text: object = match.text
        if not isinstance(text, str):
            raise invalid(self.mount, "grep", "a line that is no str")
        start = max(0, min(match.column - 1, len(text)) - MAX_LINE_CHARACTERS // 2)
        start = 0 if len(text) <= MAX_LINE_CHARACTERS else start
        return replace(match, path=path, text=text[start : start + MAX_LINE_CHARACTERS])


def _mime(given: str, path: str, kind: Any) -> str:  # noqa: ANN401 - a content kind
    """Keep a MIME type that says something, else go by the name."""
    return guess(path, kind) if given in (DEFAULTS["text"], DEFAULTS["binary"]) else given


def windowed(mount: Mount, content: TextContent, offset: int, max_bytes: int | None) -> TextContent:
    """Cut the window that was asked for out of what a provider returned, whether it cut anything itself or not.

    Raises:
        StorageError: The provider returned another part of the file (``SOURCE_INVALID``).
    """
    data = content.content.encode()
    before = offset - content.offset
    if before < -3 or (content.truncated and before > len(data) and offset < content.size):
        raise invalid(mount, "read", f"another part of {content.path} than was asked for")
    piece, start, _ = byte_window(data, max(before, 0), max_bytes)
    start += content.offset
    end = start + len(piece.encode())
    cut = content.truncated or start > 0 or end < content.size
    return replace(content, content=piece, offset=start, truncated=cut)


def revision_of(content: Content) -> str | None:
    """Return which state of the file this is, in the provider's own words: `revision` of the metadata, on one short line."""
    own = (content.metadata or {}).get("revision")
    if isinstance(own, str | int) and not isinstance(own, bool) and str(own).isprintable():
        return str(own)[:200]
    return None
