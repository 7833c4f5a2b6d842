"""Changing source-backed mounts whose provider opted in: content is handed over whole, edits and appends read it first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crux_workspace.errors import ErrorCode, InvalidInputError
from crux_workspace.model.contents import Content, JsonContent, TextContent
from crux_workspace.model.edits import Edit, apply_edits
from crux_workspace.model.files import Status, WorkspaceFile
from crux_workspace.model.jsontext import plain_json
from crux_workspace.model.sources import MountWriteOptions, SourceOperation
from crux_workspace.model.streams import at_most, chunks_of, is_stream, utf8
from crux_workspace.mounts.source_tree import MAX_WHOLE_BYTES, SourceTree
from crux_workspace.operations.sourced import text_of_content, whole
from crux_workspace.operations.space import needs_recursive

__all__ = ["append", "delete", "edit", "plain_content", "write"]


async def plain_content(path: str, content: Any, encoding: str | None) -> Any:  # noqa: ANN401
    """Return content as a provider takes it: str, bytes, or a JSON value of plain types.

    Raises:
        InvalidInputError: It is no content (``INVALID_CONTENT``), or the encoding is not utf-8 (``INVALID_ARGUMENT``).
    """
    if isinstance(content, str):
        return str.__str__(content)
    if is_stream(content):
        content = await _gathered(path, content)
    if isinstance(content, bytes | bytearray | memoryview):
        data = bytes(content)
        if encoding is None:
            return data
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidInputError(
                f"The bytes for {path} are not UTF-8; leave encoding out to write them as binary.",
                code=ErrorCode.INVALID_CONTENT,
                details={"path": path},
            ) from None
    return plain_json(content)


async def _gathered(path: str, content: Any) -> bytes:  # noqa: ANN401 - a file object or an iterator
    found = await at_most(chunks_of(path, content), MAX_WHOLE_BYTES)
    if found is None:
        raise InvalidInputError(
            f"The stream for {path} is longer than {MAX_WHOLE_BYTES:,} bytes, the most that a source is given at once.",
            code=ErrorCode.INVALID_CONTENT,
            details={"path": path},
        )
    return found


async def write(
    tree: SourceTree,
    path: str,
    content: object,
    *,
    operation: SourceOperation,
    mime_type: str | None = None,
    metadata: dict[str, Any] | None = None,
    status: Status | None = None,
    kind: str | None = None,
) -> WorkspaceFile:
    """Hand content to the provider.

    Raises:
        InvalidInputError: The text has a lone surrogate (``INVALID_CONTENT``).
        UnsupportedError: The provider does not write (``SOURCE_UNSUPPORTED``).
    """
    tree.require("write", "writes")
    if isinstance(content, str):
        utf8(path, content)
    options = MountWriteOptions(
        mount_path=tree.mount.path,
        mime_type=mime_type,
        metadata=metadata,
        status=status,
        kind=kind,
        operation=operation,
    )
    return await tree.write(path, content, options)


def _editable(content: Content, verb: str) -> TextContent:
    text_of_content(content, f"cannot be {verb}")
    if isinstance(content, JsonContent):
        raise InvalidInputError(
            f"{content.path} holds a JSON value and cannot be {verb} as text.",
            code=ErrorCode.INVALID_CONTENT,
            details={"path": content.path},
            hint="Read it with read_json, change the value and write it.",
        )
    assert isinstance(content, TextContent)
    return content


async def _rewrite(
    tree: SourceTree,
    content: TextContent,
    text: str,
    operation: SourceOperation,
    mime_type: str | None,
) -> WorkspaceFile:
    return await write(
        tree,
        content.path,
        text,
        operation=operation,
        mime_type=mime_type or content.mime_type,
        metadata=content.metadata,
        status=content.status,
        kind=content.artifact_kind,
    )


async def edit(
    tree: SourceTree, path: str, edits: Sequence[Edit], *, mime_type: str | None
) -> WorkspaceFile:
    """Read the provider's text, replace in it, and hand the whole back; calls of this process take turns on a file."""
    tree.require("write", "writes")
    async with tree.lock(path):
        content = _editable(await whole(tree, path), "edited")
        text = apply_edits(content.content, edits)
        if text == content.content:
            return tree.file_of(content)
        return await _rewrite(tree, content, text, "edit", mime_type)


async def append(tree: SourceTree, path: str, text: str, *, mime_type: str | None) -> WorkspaceFile:
    """Read the provider's text, if any, and hand it back with more at its end."""
    tree.require("write", "writes")
    async with tree.lock(path):
        found = await tree.whole(path)
        if found is None:
            return await write(tree, path, text, operation="append", mime_type=mime_type)
        content = _editable(found, "appended to")
        return await _rewrite(tree, content, content.content + text, "append", mime_type)


async def delete(tree: SourceTree, path: str, *, recursive: bool, directory: bool) -> None:
    """Let the provider delete a file, or every file below a directory, one after another."""
    tree.require("delete", "deletes")
    if not recursive:
        if directory or path == tree.mount.path or await tree.has_directory(path):
            raise needs_recursive(path)
        await tree.delete(path)
        return
    for file in (await tree.collect(path)).complete():
        await tree.delete(file.path)
