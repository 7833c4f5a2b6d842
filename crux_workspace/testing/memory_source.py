"""A mount source that keeps its files in memory and can do everything: a double for tests, and what broken ones are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crux_workspace.model.contents import BinaryContent, Content, JsonContent, TextContent
from crux_workspace.model.files import ListResult, WorkspaceDirectory, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.jsontext import dump_compact
from crux_workspace.model.lines import byte_window
from crux_workspace.model.matching import GrepMatch, compile_query
from crux_workspace.model.mime import guess
from crux_workspace.model.paths import is_at_or_below, is_below, sort_key
from crux_workspace.model.searches import GrepResult
from crux_workspace.model.sources import (
    MountGrepOptions,
    MountListOptions,
    MountPathOptions,
    MountReadOptions,
    MountWriteOptions,
)
from crux_workspace.mounts.bundled.pages import page_of

__all__ = ["MemorySource"]

Held = str | bytes | dict[str, Any] | list[Any] | int | float | bool | None


class MemorySource:
    """Files in a dictionary by their path below the mount; remembers which hooks were called."""

    def __init__(self, files: Mapping[str, Held] | None = None) -> None:
        self.files: dict[str, Held] = dict(files or {})
        self.calls: list[tuple[str, str]] = []
        """Hook and path, or query, of each call."""
        self.revision = 1
        """Goes up with every change."""

    def _relative(self, path: str, mount_path: str) -> str:
        return path[len(mount_path) + 1 :]

    def _paths(self, mount_path: str) -> list[str]:
        return sorted((f"{mount_path}/{name}" for name in self.files), key=sort_key)

    def list(self, path: str, options: MountListOptions) -> ListResult:
        """List a directory: files and directories directly below it."""
        self.calls.append(("list", path))
        entries: dict[str, WorkspaceEntry] = {}
        for where in self._paths(options.mount_path):
            if where == path:
                entries[where] = self._file(where, options.mount_path)
            elif is_below(where, path):
                child = where[len(path) + 1 :].split("/")[0]
                is_file = where == f"{path}/{child}"
                entries[f"{path}/{child}"] = (
                    self._file(where, options.mount_path)
                    if is_file
                    else WorkspaceDirectory(f"{path}/{child}")
                )
        return page_of([*entries.values()], options)

    def _file(self, path: str, mount_path: str) -> WorkspaceFile:
        held = self.files[self._relative(path, mount_path)]
        kind: Any = (
            "binary" if isinstance(held, bytes) else "text" if isinstance(held, str) else "json"
        )
        return WorkspaceFile(
            path=path,
            content_kind=kind,
            mime_type=guess(path, kind),
            size=len(_bytes(held)),
            metadata={"revision": self.revision},
        )

    def read(self, path: str, options: MountReadOptions) -> Content | None:
        """Return a file, or the window that is asked for."""
        self.calls.append(("read", path))
        name = self._relative(path, options.mount_path)
        if name not in self.files:
            return None
        held = self.files[name]
        metadata = {"revision": self.revision}
        if isinstance(held, bytes):
            return BinaryContent(path=path, size=len(held), metadata=metadata)
        if not isinstance(held, str):
            return JsonContent(path=path, content=held, metadata=metadata)
        data = held.encode()
        piece, start, cut = byte_window(data, options.offset, options.max_inline_bytes)
        return TextContent(
            path=path,
            content=piece,
            offset=start,
            truncated=cut,
            size=len(data),
            mime_type=guess(path, "text"),
            metadata=metadata,
        )

    def read_bytes(self, path: str, options: MountPathOptions) -> bytes | None:
        """Return a file's bytes."""
        self.calls.append(("read_bytes", path))
        name = self._relative(path, options.mount_path)
        return _bytes(self.files[name]) if name in self.files else None

    def grep(self, query: str, options: MountGrepOptions) -> GrepResult:
        """Search all text, line by line."""
        self.calls.append(("grep", query))
        compiled = compile_query(query, ignore_case=options.ignore_case, regex=options.regex)
        scope = options.path or options.mount_path
        matches: list[GrepMatch] = []
        for path in self._paths(options.mount_path):
            held = self.files[self._relative(path, options.mount_path)]
            if isinstance(held, str) and is_at_or_below(path, scope):
                matches += compiled.search(held, path=path, limit=options.max_results + 1)
        return GrepResult(matches[: options.max_results], len(matches) > options.max_results)

    def exists(self, path: str, options: MountPathOptions) -> bool:
        """Tell whether a file is there."""
        self.calls.append(("exists", path))
        return self._relative(path, options.mount_path) in self.files

    def stat(self, path: str, options: MountPathOptions) -> WorkspaceFile | None:
        """Return what is known of a file."""
        self.calls.append(("stat", path))
        known = self._relative(path, options.mount_path) in self.files
        return self._file(path, options.mount_path) if known else None

    def write(self, path: str, content: Any, options: MountWriteOptions) -> WorkspaceFile:  # noqa: ANN401
        """Replace a file."""
        self.calls.append((options.operation, path))
        self.revision += 1
        self.files[self._relative(path, options.mount_path)] = content
        return self._file(path, options.mount_path)

    def delete(self, path: str, options: MountPathOptions) -> None:
        """Remove a file."""
        self.calls.append(("delete", path))
        self.revision += 1
        self.files.pop(self._relative(path, options.mount_path), None)


def _bytes(held: Held) -> bytes:
    if isinstance(held, bytes):
        return held
    return held.encode() if isinstance(held, str) else dump_compact(held)
