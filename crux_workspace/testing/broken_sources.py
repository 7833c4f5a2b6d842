"""Mount sources that are wrong on purpose; part of `crux_workspace.testing.gallery`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crux_workspace.model.contents import BinaryContent, Content, TextContent
from crux_workspace.model.files import ListResult, WorkspaceFile
from crux_workspace.model.matching import GrepMatch
from crux_workspace.model.searches import GrepResult
from crux_workspace.model.sources import (
    MountGrepOptions,
    MountListOptions,
    MountPathOptions,
    MountReadOptions,
    MountWriteOptions,
)
from crux_workspace.testing.memory_source import MemorySource

__all__ = ["BROKEN_SOURCES"]


class ListsOutside(MemorySource):
    """Names a file outside its mount."""

    def list(self, path: str, options: MountListOptions) -> ListResult:
        entries = [*super().list(path, options), WorkspaceFile(path="/elsewhere/a.md")]
        return ListResult(entries)


class RepeatsCursors(MemorySource):
    """Gives the same cursor for ever."""

    def list(self, path: str, options: MountListOptions) -> ListResult:
        return ListResult([*super().list(path, replace(options, cursor=None))], "again")


class LosesLastPage(MemorySource):
    """Says that a listing is over when it is not."""

    def list(self, path: str, options: MountListOptions) -> ListResult:
        return ListResult(super().list(path, options).entries, None)


class ListsEverywhere(MemorySource):
    """Gives all files whatever directory is asked for."""

    def list(self, path: str, options: MountListOptions) -> ListResult:
        found = [self._file(where, options.mount_path) for where in self._paths(options.mount_path)]
        return ListResult([*found])


class ReadsNormalised(MemorySource):
    """Changes line endings."""

    def read(self, path: str, options: MountReadOptions) -> Content | None:
        content = super().read(path, options)
        if isinstance(content, TextContent):
            return replace(content, content=content.content.replace("\r\n", "\n"))
        return content


class MissingIsEmpty(MemorySource):
    """Reads a missing file as an empty one."""

    def read(self, path: str, options: MountReadOptions) -> Content | None:
        return super().read(path, options) or TextContent(path=path, content="")


class HidesCuts(MemorySource):
    """Cuts, and does not say so."""

    def read(self, path: str, options: MountReadOptions) -> Content | None:
        content = super().read(path, options)
        if isinstance(content, TextContent):
            return replace(content, truncated=False, offset=0)
        return content


class TextIsBinary(MemorySource):
    """Takes every file for binary."""

    def read(self, path: str, options: MountReadOptions) -> Content | None:
        content = super().read(path, options)
        return None if content is None else BinaryContent(path=path)


class StatsWrongSizes(MemorySource):
    """Counts characters, not bytes."""

    def stat(self, path: str, options: MountPathOptions) -> WorkspaceFile | None:
        file = super().stat(path, options)
        held = self.files.get(self._relative(path, options.mount_path))
        return file if file is None or not isinstance(held, str) else replace(file, size=len(held))


class EverythingExists(MemorySource):
    """Says yes to everything."""

    def exists(self, path: str, options: MountPathOptions) -> bool:
        return True


class LosesLastByte(MemorySource):
    """Drops the end of a file's bytes."""

    def read_bytes(self, path: str, options: MountPathOptions) -> bytes | None:
        data = super().read_bytes(path, options)
        return None if data is None else data[:-1]


class CountsLinesFromZero(MemorySource):
    """Numbers lines as arrays do."""

    def grep(self, query: str, options: MountGrepOptions) -> GrepResult:
        def moved(match: GrepMatch) -> GrepMatch:
            return replace(match, line=match.line - 1)

        return GrepResult([moved(match) for match in super().grep(query, options)])


class GrepIgnoresCase(MemorySource):
    """Never minds upper and lower case."""

    def grep(self, query: str, options: MountGrepOptions) -> GrepResult:
        return super().grep(query, replace(options, ignore_case=True))


class NewRevisionEachTime(MemorySource):
    """Counts reads as changes."""

    def read(self, path: str, options: MountReadOptions) -> Content | None:
        self.revision += 1
        return super().read(path, options)


class KeepsFirstWrite(MemorySource):
    """Never replaces a file."""

    def write(self, path: str, content: Any, options: MountWriteOptions) -> WorkspaceFile:  # noqa: ANN401
        name = self._relative(path, options.mount_path)
        return super().write(path, self.files.get(name, content), options)


class DeletesNothing(MemorySource):
    """Says that it deleted, and did not."""

    def delete(self, path: str, options: MountPathOptions) -> None:
        return None


class DeleteNeedsFile(MemorySource):
    """Fails to delete what is not there."""

    def delete(self, path: str, options: MountPathOptions) -> None:
        del self.files[self._relative(path, options.mount_path)]


BROKEN_SOURCES: dict[type[MemorySource], str] = {
    ListsOutside: "S-001",
    RepeatsCursors: "S-001",
    LosesLastPage: "S-002",
    ListsEverywhere: "S-003",
    ReadsNormalised: "S-004",
    TextIsBinary: "S-004",
    MissingIsEmpty: "S-005",
    HidesCuts: "S-006",
    StatsWrongSizes: "S-007",
    EverythingExists: "S-008",
    LosesLastByte: "S-009",
    CountsLinesFromZero: "S-010",
    GrepIgnoresCase: "S-011",
    NewRevisionEachTime: "S-012",
    KeepsFirstWrite: "S-020",
    DeletesNothing: "S-021",
    DeleteNeedsFile: "S-021",
}
"""Sources and the check that rejects each; other checks may reject it too."""
