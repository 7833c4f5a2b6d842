"""The methods that change and publish files."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from types import EllipsisType
from typing import Any, TypeVar

from crux_workspace.errors import ConflictError, ErrorCode, InvalidInputError
from crux_workspace.http import decoding
from crux_workspace.http.problems import corrupt
from crux_workspace.http.reading import HttpReads
from crux_workspace.http.sending import (
    any_path,
    edit_fields,
    expected_field,
    file_path,
    held,
    payload_of,
    version_field,
)
from crux_workspace.model.artifacts import Artifact
from crux_workspace.model.attributes import check_attributes, check_changed_attributes
from crux_workspace.model.contents import WritableContent
from crux_workspace.model.edits import Edit, check_edits, edits_of
from crux_workspace.model.files import IfVersion, Status, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.options import check_callable, check_flags, needed_number, ordinal
from crux_workspace.model.paths import PathLike, check_namespace
from crux_workspace.model.streams import utf8

__all__ = ["HttpWrites"]

_T = TypeVar("_T")
_artifact = decoding.of(Artifact)
_MOST_LOOKS = 100


class HttpWrites(HttpReads):
    """Writing, editing, moving, deleting and publishing files over HTTP.

    Each call is one request with an idempotency key, a fresh one where the caller gives none: when its answer is lost the request is
    sent again, and takes effect once.
    """

    async def _change(
        self,
        verb: str,
        arguments: dict[str, Any],
        namespace: str | None,
        key: str | None,
        decode: Callable[[Any], _T],
    ) -> _T:
        return await self._caller.change(verb, arguments, namespace, key, decode)

    async def write(
        self,
        path: PathLike,
        content: WritableContent,
        *,
        mime_type: str | None = None,
        metadata: dict[str, Any] | None = None,
        status: Status | None = None,
        kind: str | None = None,
        encoding: str | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Create or replace a file, as `Workspace.write` does.

        Files and iterators are sent as they are read, in constant memory. A stream that cannot be read again is sent once: when the
        answer to it is lost, the outcome is not known (``STORE_TIMEOUT``, ``STORE_UNAVAILABLE``).
        """
        self._caller.core.enter()
        where = file_path(path)
        expected = expected_field(if_version, idempotency_key)
        check_attributes(mime_type=mime_type, metadata=metadata, status=status, kind=kind)
        payload = payload_of(where, content, encoding)
        arguments = {
            "path": where,
            "mime_type": mime_type,
            "metadata": metadata,
            "status": status,
            "kind": kind,
            "if_version": expected,
        }
        if payload.stream is not None:
            return await self._caller.put(
                payload, arguments, namespace, idempotency_key, decoding.file
            )
        arguments |= payload.fields
        return await self._change("write", arguments, namespace, idempotency_key, decoding.file)

    async def edit(
        self,
        path: PathLike,
        find: str | None = None,
        replace: str | None = None,
        *,
        occurrence: int | None = None,
        replace_all: bool = False,
        edits: Sequence[Edit] | None = None,
        mime_type: str | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Replace exact text, as `Workspace.edit` does."""
        self._caller.core.enter()
        where = file_path(path)
        wanted = edits_of(find, replace, occurrence, replace_all, edits)
        expected = expected_field(if_version, idempotency_key)
        check_attributes(mime_type=mime_type)
        check_edits(wanted)
        for edit in wanted:
            utf8(where, edit.find)
            utf8(where, edit.replace)
        arguments = {
            "path": where,
            "edits": edit_fields(wanted),
            "mime_type": mime_type,
            "if_version": expected,
        }
        return await self._change("edit", arguments, namespace, idempotency_key, decoding.file)

    async def append(
        self,
        path: PathLike,
        text: str,
        *,
        mime_type: str | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Add text at the end of a text file, or create it, as `Workspace.append` does."""
        self._caller.core.enter()
        where = file_path(path)
        expected = expected_field(if_version, idempotency_key)
        check_attributes(mime_type=mime_type)
        given: object = text
        if not isinstance(given, str):
            raise InvalidInputError(
                f"Only text can be appended, got {type(given).__name__}.",
                code=ErrorCode.INVALID_CONTENT,
                details={"path": where},
            )
        utf8(where, text)
        arguments = {
            "path": where,
            "text": text,
            "mime_type": mime_type,
            "if_version": expected,
        }
        return await self._change("append", arguments, namespace, idempotency_key, decoding.file)

    async def update(
        self,
        path: PathLike,
        fn: Callable[[Any], Any] | Callable[[Any], Awaitable[Any]],
        *,
        max_attempts: int = 5,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Read a file's value, change it with a function, and write it back, as `Workspace.update` does.

        The function runs here, the file is read and written by requests of their own: two and one for each attempt.
        """
        self._caller.core.enter()
        where = file_path(path)
        needed_number("max_attempts", max_attempts)
        check_callable("fn", fn)
        expected = expected_field(if_version, idempotency_key)
        if idempotency_key is not None and (
            known := await self._updated(where, {}, None, namespace, idempotency_key)
        ):
            return known
        for attempt in range(1, max_attempts + 1):
            seen = await self._seen(where, if_version, expected, namespace)
            new = fn(await self._value(seen, namespace))
            if inspect.isawaitable(new):
                new = await new
            try:
                made = await self._updated(
                    where, {"value": new}, version_field(seen), namespace, idempotency_key
                )
            except ConflictError:
                if attempt == max_attempts:
                    raise
            else:
                assert made is not None
                return made
        raise AssertionError("unreachable")

    async def _seen(
        self, path: str, if_version: IfVersion, expected: int | str | None, namespace: str | None
    ) -> WorkspaceFile:
        """Return the file to change, if it is the one that is expected."""
        for _ in range(_MOST_LOOKS):
            file = await self.stat(path, namespace=namespace)
            if file is not None and _is_expected(file, if_version):
                return file
            # Refuses, unless it has become so meanwhile.
            await self._judge(path, expected, namespace)
        raise corrupt("it neither has the file that is to be changed nor says so")

    async def _judge(self, path: str, expected: int | str | None, namespace: str | None) -> None:
        """Let the service say why a file is not the one to change.

        Raises:
            PathNotFoundError: There is none (``FILE_NOT_FOUND``).
            ConflictError: It is not the expected one (``VERSION_CONFLICT``).
        """
        await self._updated(path, {}, expected, namespace, None)

    async def _value(self, file: WorkspaceFile, namespace: str | None) -> Any:  # noqa: ANN401
        """Return the value of the very version."""
        path, version = file.path, file.version
        if file.content_kind == "text":
            return await self.read_text(path, version=version, namespace=namespace)
        if file.content_kind == "json":
            return await self.read_json(path, version=version, namespace=namespace)
        return await self.read_bytes(path, version=version, namespace=namespace)

    async def _updated(
        self,
        path: str,
        new: dict[str, Any],
        expected: int | str | None,
        namespace: str | None,
        key: str | None,
    ) -> WorkspaceFile | None:
        """Put a new value in place; without one, only return what an earlier call with the key gave."""
        arguments: dict[str, Any] = {"path": path, "if_version": expected}
        if new:
            arguments |= await held(path, new["value"])
        return await self._change("update", arguments, namespace, key, decoding.file_or_none)

    async def set(
        self,
        path: PathLike,
        *,
        mime_type: str | EllipsisType = ...,
        metadata: dict[str, Any] | EllipsisType | None = ...,
        status: Status | EllipsisType | None = ...,
        kind: str | EllipsisType | None = ...,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Change attributes only, as `Workspace.set` does: a commit and an update event, but no version."""
        self._caller.core.enter()
        given = {"mime_type": mime_type, "metadata": metadata, "status": status, "kind": kind}
        said = {name: value for name, value in given.items() if value is not ...}
        where = file_path(path)
        expected = expected_field(if_version, idempotency_key)
        arguments = {"path": where, "if_version": expected, **said}
        check_changed_attributes(said)
        return await self._change("set", arguments, namespace, idempotency_key, decoding.file)

    async def rename(
        self,
        src: PathLike,
        dst: PathLike,
        *,
        overwrite: bool = False,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceEntry:
        """Give a file or a directory another path, as `Workspace.rename` does."""
        expected = expected_field(if_version, idempotency_key)
        arguments = self._relocation(src, dst, overwrite, expected)
        return await self._change("rename", arguments, namespace, idempotency_key, decoding.entry)

    async def move(
        self,
        src: PathLike,
        dst: PathLike,
        *,
        overwrite: bool = False,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceEntry:
        """Do the same as `rename`, as `Workspace.move` does."""
        expected = expected_field(if_version, idempotency_key)
        arguments = self._relocation(src, dst, overwrite, expected)
        return await self._change("move", arguments, namespace, idempotency_key, decoding.entry)

    def _relocation(
        self, src: PathLike, dst: PathLike, overwrite: bool, expected: int | str | None
    ) -> dict[str, Any]:
        self._caller.core.enter()
        check_flags(overwrite=overwrite)
        return {
            "src": any_path(src),
            "dst": any_path(dst),
            "overwrite": overwrite,
            "if_version": expected,
        }

    async def copy(
        self,
        src: PathLike,
        dst: PathLike,
        *,
        overwrite: bool = False,
        to_namespace: str | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceEntry:
        """Copy a file or a directory, as `Workspace.copy` does; the service moves the bytes."""
        arguments = self._relocation(src, dst, overwrite, None)
        arguments["if_version"] = expected_field(if_version, idempotency_key)
        arguments["to_namespace"] = None if to_namespace is None else check_namespace(to_namespace)
        return await self._change("copy", arguments, namespace, idempotency_key, decoding.entry)

    async def delete(
        self,
        path: PathLike,
        *,
        recursive: bool = False,
        purge: bool = False,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> None:
        """Delete a file, or everything below a directory, as `Workspace.delete` does."""
        self._caller.core.enter()
        check_flags(recursive=recursive, purge=purge)
        arguments = {
            "path": any_path(path),
            "recursive": recursive,
            "purge": purge,
            "if_version": expected_field(if_version, idempotency_key),
        }
        await self._change("delete", arguments, namespace, idempotency_key, decoding.nothing)

    async def finalize(
        self,
        path: PathLike,
        *,
        kind: str | None = None,
        version: int | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> Artifact:
        """Publish a file, as `Workspace.finalize` does: pin its current, or a given, version."""
        self._caller.core.enter()
        check_attributes(kind=kind)
        ordinal("version", version)
        arguments = {
            "path": file_path(path),
            "kind": kind,
            "version": version,
            "if_version": expected_field(if_version, idempotency_key),
        }
        return await self._change("finalize", arguments, namespace, idempotency_key, _artifact)

    async def withdraw(
        self,
        path: PathLike,
        *,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Unpublish a file, as `Workspace.withdraw` does."""
        self._caller.core.enter()
        arguments = {
            "path": file_path(path),
            "if_version": expected_field(if_version, idempotency_key),
        }
        return await self._change("withdraw", arguments, namespace, idempotency_key, decoding.file)


def _is_expected(file: WorkspaceFile, if_version: IfVersion) -> bool:
    if isinstance(if_version, WorkspaceFile):
        return (file.id, file.version) == (if_version.id, if_version.version)
    return if_version is None or file.version == if_version
