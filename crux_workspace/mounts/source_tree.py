"""The files of one source-backed mount, with what its provider does not offer made of what it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.model.contents import BinaryContent, Content, JsonContent, TextContent
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.globs import compile_glob, has_glob
from crux_workspace.model.jsontext import dump_compact
from crux_workspace.model.matching import GrepMatch
from crux_workspace.model.paths import is_at_or_below, is_below
from crux_workspace.model.settings import Mount
from crux_workspace.model.sources import (
    MountGrepOptions,
    MountPathOptions,
    MountReadOptions,
    MountWriteOptions,
)
from crux_workspace.model.streams import at_most
from crux_workspace.mounts.calling import invalid, too_slow, unsupported
from crux_workspace.mounts.checking import is_unclear, windowed
from crux_workspace.mounts.source_listing import SourceListing

__all__ = ["MAX_WHOLE_BYTES", "SourceTree"]

MAX_WHOLE_BYTES = 1 << 28
"""Most bytes of one provider's file that are held at once."""
_READ_BACK_S = (0.0, 0.025, 0.075)
_CHUNK = 1 << 20


class SourceTree(SourceListing):
    """Reads and, where the provider opted in, writes one source-backed mount. Paths are normal and on this mount."""

    def __init__(self, mount: Mount, owns: Callable[[str], bool]) -> None:
        super().__init__(mount, owns)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def has(self, hook: str) -> bool:
        """Tell whether the provider has a method."""
        return self._caller.has(hook)

    def lock(self, path: str) -> asyncio.Lock:
        """Return the lock that lets one reading-and-writing call at a time work on a file, in this process."""
        return self._locks.setdefault(path, asyncio.Lock())

    @property
    def _here(self) -> MountPathOptions:
        return MountPathOptions(mount_path=self.mount.path)

    # -- one file

    async def read(self, path: str, offset: int, max_inline_bytes: int | None) -> Content | None:
        """Return a window of a file, None where there is none.

        A provider that heeds the window may not say so; where its answer can be the window as well as the whole, the whole is asked for.
        """
        given = await self._ask(path, offset, max_inline_bytes)
        content = None if given is None else self.check.content("read", given, path)
        if isinstance(content, TextContent) and is_unclear(
            content, given, offset, max_inline_bytes
        ):
            whole = await self._read(path, 0, None)
            if not isinstance(whole, TextContent):
                return whole
            if not whole.truncated:
                content = whole
            elif whole.content != content.content and not content.offset:
                content = replace(content, offset=offset)
        if isinstance(content, TextContent):
            return windowed(self.mount, content, offset, max_inline_bytes)
        return content

    async def _ask(self, path: str, offset: int, max_bytes: int | None) -> Any:  # noqa: ANN401 - whatever the provider returns
        options = MountReadOptions(
            mount_path=self.mount.path, max_inline_bytes=max_bytes, offset=offset
        )
        return await self._caller.call("read", path, options)

    async def _read(self, path: str, offset: int, max_bytes: int | None) -> Content | None:
        given = await self._ask(path, offset, max_bytes)
        return None if given is None else self.check.content("read", given, path)

    async def whole(self, path: str) -> Content | None:
        """Return a file's whole content, None where there is none.

        Raises:
            StorageError: The provider gives only a part (``SOURCE_INVALID``).
        """
        content = await self._read(path, 0, None)
        if not isinstance(content, TextContent) or not content.truncated:
            return content
        if self.has("read_bytes"):
            data = await self.read_bytes(path)
            try:
                text = None if data is None else data.decode()
            except UnicodeDecodeError as error:
                raise invalid(
                    self.mount, "read_bytes", f"bytes of {path} that are no text"
                ) from error
            if text is not None:
                whole = replace(content, content=text, offset=0, truncated=False, size=0)
                return self.check.content("read_bytes", whole, path)
        raise invalid(
            self.mount,
            "read",
            f"only a part of {path}, where the whole is needed",
            "Read it by offset.",
        )

    async def stat(self, path: str) -> WorkspaceFile | None:
        """Return what is known of a file, from its content where the provider has no `stat`."""
        if self.has("stat"):
            found = await self._caller.call("stat", path, self._here)
            if found is None:
                return None
            checked = self.check.file("stat", found)
            return checked if checked.path == path else replace(checked, path=path)
        content = await self._read(path, 0, None)
        return None if content is None else self.file_of(content)

    def file_of(self, content: Content) -> WorkspaceFile:
        """Describe the file that content is of."""
        return WorkspaceFile(
            path=content.path,
            content_kind=content.kind,
            mime_type=content.mime_type,
            size=content.size,
            version=content.version,
            sha256=content.sha256,
            mount=self.mount.path,
            storage="virtual",
            uri=content.uri if isinstance(content, BinaryContent) else None,
            metadata=content.metadata,
            status=content.status,
            artifact_kind=content.artifact_kind,
        )

    async def has_file(self, path: str) -> bool:
        """Tell whether a file is there."""
        if not self.has("exists"):
            return await self.stat(path) is not None
        found = await self._caller.call("exists", path, self._here)
        if found is not None and not isinstance(found, bool):
            raise invalid(self.mount, "exists", f"{type(found).__name__} instead of bool")
        return bool(found)

    # -- bytes

    async def read_bytes(self, path: str) -> bytes | None:
        """Return a file's bytes, None where there is none.

        Raises:
            UnsupportedError: It is binary and the provider has no `read_bytes` (``SOURCE_UNSUPPORTED``).
            StorageError: There are more than can be held (``SOURCE_INVALID``).
        """
        stream = await self.stream(path)
        if stream is None:
            return None
        found = await at_most(stream, MAX_WHOLE_BYTES)
        if found is None:
            raise invalid(
                self.mount, "read_bytes", f"more than {MAX_WHOLE_BYTES:,} bytes", "Use stream."
            )
        return found

    async def stream(self, path: str) -> AsyncGenerator[bytes, None] | None:
        """Iterate over a file's bytes, None where there is none."""
        if not self.has("read_bytes"):
            return await self._content_bytes(path)
        found = await self._caller.call("read_bytes", path, self._here)
        if found is None:
            return None
        if isinstance(found, bytes | bytearray | memoryview):
            return _pieces(bytes(found))
        if not hasattr(found, "__aiter__"):
            raise invalid(self.mount, "read_bytes", f"{type(found).__name__} instead of bytes")
        return self._caller.chunks("read_bytes", found)

    async def _content_bytes(self, path: str) -> AsyncGenerator[bytes, None] | None:
        content = await self.whole(path)
        if content is None:
            return None
        if isinstance(content, BinaryContent):
            raise unsupported(
                self.mount,
                f"reading the bytes of {path}",
                "The source has no read_bytes; open the file's URI in the application.",
            )
        if isinstance(content, JsonContent):
            return _pieces(dump_compact(content.content))
        return _pieces(content.content.encode())

    # -- searching

    async def grep(
        self, query: str, *, path: str | None, ignore_case: bool, regex: bool, max_results: int
    ) -> tuple[list[GrepMatch], bool]:
        """Return the provider's own matches in a scope, cut to `max_results`, and whether some were left out."""
        covers = self._scope(path)
        for where in self._search_places(path):
            options = MountGrepOptions(
                mount_path=self.mount.path,
                path=where,
                ignore_case=ignore_case,
                regex=regex,
                max_results=max_results,
            )
            result = await self._caller.call("grep", query, options)
            matches, truncated = self.check.matches(result, covers)
            if matches:
                break
        return matches[:max_results], truncated or len(matches) > max_results

    def _search_places(self, path: str | None) -> list[str | None]:
        """A provider that knows no globs finds nothing in one; it is asked again with the directory."""
        if path is None or not has_glob(path):
            return [path]
        base = compile_glob(path).base
        return [path, base if is_below(base, self.mount.path) else None]

    def _scope(self, path: str | None) -> Callable[[str], bool]:
        if path is None:
            return lambda _: True
        if not has_glob(path):
            return lambda where: is_at_or_below(where, path)
        compiled = compile_glob(path)
        return lambda where: compiled.matches(where) or is_at_or_below(where, path)

    async def searchable(self, path: str | None) -> tuple[list[str], bool]:
        """Return the paths to search in a scope, and whether there may be more."""
        scope = self.mount.path if path is None else path
        collected = await (self.glob(scope) if has_glob(scope) else self.collect(scope))
        if not collected.files and not has_glob(scope) and scope != self.mount.path:
            return [scope], False
        return [file.path for file in collected.files], collected.problem is not None

    async def texts(self, paths: list[str]) -> AsyncGenerator[Content, None]:
        """Iterate over the contents of some files within the time that all of them may take; what is gone is passed over.

        Raises:
            StorageError: It takes too long (``STORE_TIMEOUT``).
        """
        deadline = self.deadline()
        for path in paths:
            if asyncio.get_running_loop().time() > deadline:
                raise too_slow(self.mount, "read")
            content = await self.whole(path)
            if content is not None:
                yield content

    # -- writing

    def require(self, hook: str, what: str) -> None:
        """Refuse what the provider did not opt into (``SOURCE_UNSUPPORTED``)."""
        if not self.has(hook):
            raise unsupported(self.mount, what)

    async def write(self, path: str, content: object, options: MountWriteOptions) -> WorkspaceFile:
        """Let the provider write, and return the file as it is then.

        Raises:
            StorageError: It says nothing of what it wrote, and nothing can be read (``SOURCE_INVALID``).
        """
        result: Any = await self._caller.call("write", path, content, options)
        if isinstance(result, WorkspaceFile):
            return self.check.file("write", result)
        if result is not None:
            return self.file_of(self.check.content("write", result, path))
        for pause in _READ_BACK_S:
            await asyncio.sleep(pause)
            file = await self.stat(path)
            if file is not None:
                return file
        raise StorageError(
            f"The source of the mount {self.mount.path} wrote {path} but did not return file metadata.",
            code=ErrorCode.SOURCE_INVALID,
            details={"mount": self.mount.path, "path": path},
            hint="Read the file again before relying on it.",
            retryable=True,
        )

    async def delete(self, path: str) -> None:
        """Let the provider delete a file; what is not there is no error."""
        await self._caller.call("delete", path, self._here)


async def _pieces(data: bytes) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(data), _CHUNK):
        yield data[start : start + _CHUNK]
