"""What a provider returned, held to the contract: inside its mount, of the right types, and with what it left out filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from crux_workspace.errors import InvalidPathError
from crux_workspace.model.contents import BinaryContent, Content, JsonContent, TextContent
from crux_workspace.model.files import ListResult, WorkspaceDirectory, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.jsontext import dump_compact
from crux_workspace.model.lines import byte_window, count_lines
from crux_workspace.model.matching import MAX_LINE_CHARACTERS, GrepMatch
from crux_workspace.model.mime import DEFAULTS, guess
from crux_workspace.model.paths import is_at_or_below, normalise, sort_key
from crux_workspace.model.searches import GrepResult
from crux_workspace.model.settings import Mount
from crux_workspace.mounts.calling import invalid
from crux_workspace.mounts.fields import (
    check_cursor,
    check_fields,
    check_value,
    described,
    encoded,
)

__all__ = ["Checker", "is_unclear", "revision_of", "windowed"]

_CHARACTER_BYTES = 4


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
        following = check_cursor(self.mount, cursor)
        found: dict[str, WorkspaceEntry] = {}
        for entry in entries:
            checked = self._entry(entry)
            if checked is not None:
                found.setdefault(checked.path, checked)
        ordered = sorted(found.values(), key=lambda entry: sort_key(entry.path))
        return ordered, following

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
        check_fields(self.mount, hook, file)
        return replace(
            file,
            **described(self.mount, hook, file, where),
            path=where,
            mount=self.mount.path,
            storage="virtual",
            pinned_version=None,
            sequence=0,
            commit=None,
        )

    def content(self, hook: str, result: object, path: str) -> Content:
        """Return content under the path that was asked for, with size, lines and MIME type where they follow from it.

        Raises:
            StorageError: It is none, or is said to lie outside the mount (``SOURCE_INVALID``).
        """
        if not isinstance(result, TextContent | JsonContent | BinaryContent):
            raise invalid(self.mount, hook, f"{type(result).__name__} instead of content")
        self.path(hook, result.path)
        check_fields(self.mount, hook, result)
        if isinstance(result, TextContent):
            return self._text(hook, result, path)
        if isinstance(result, JsonContent):
            check_value(self.mount, hook, result.content)
            size = len(dump_compact(result.content))
            mime = result.mime_type or DEFAULTS["json"]
            return replace(
                result, path=path, mime_type=mime, size=size, truncated=False, pinned_version=None
            )
        return replace(
            result,
            path=path,
            mime_type=_mime(result.mime_type, path, "binary"),
            pinned_version=None,
        )

    def _text(self, hook: str, result: TextContent, path: str) -> TextContent:
        end = result.offset + len(encoded(self.mount, hook, "text", result.content))
        cut = bool(result.truncated) or result.offset > 0
        return replace(
            result,
            path=path,
            mime_type=_mime(result.mime_type, path, "text"),
            size=max(result.size, end) if cut else end,
            truncated=cut,
            total_lines=result.total_lines if cut else count_lines(result.content),
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
        text = match.text
        encoded(self.mount, "grep", "a line", text)
        start = max(0, min(match.column - 1, len(text)) - MAX_LINE_CHARACTERS // 2)
        start = 0 if len(text) <= MAX_LINE_CHARACTERS else start
        shown = text[start : start + MAX_LINE_CHARACTERS]
        return replace(match, path=path, text=shown, before=(), after=())


def _mime(given: str | None, path: str, kind: Any) -> str:  # noqa: ANN401 - a content kind
    """Keep a MIME type that says something, else go by the name."""
    if not given or given in (DEFAULTS["text"], DEFAULTS["binary"]):
        return guess(path, kind)
    return given


def is_unclear(
    content: TextContent, given: TextContent, offset: int, max_bytes: int | None
) -> bool:
    """Tell whether what a provider gave for a window may be the window as well as the whole, or is of a text of unknown length."""
    length = len(content.content.encode())
    if given.truncated and given.size == 0:
        return True
    if content.offset:
        return False
    fits = max_bytes is None or length <= max_bytes
    if offset:
        return fits or content.truncated
    is_full = max_bytes is not None and length > max_bytes - _CHARACTER_BYTES
    return fits and is_full and not content.truncated


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
