"""The verbs on source-backed mounts: delegated to the provider, never mixed with what the workspace keeps itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from crux_workspace.engine.past import PastReads
from crux_workspace.engine.reads import TreeReads
from crux_workspace.errors import BinaryContentError
from crux_workspace.model.contents import BinaryContent, Content, JsonContent, TextContent
from crux_workspace.model.jsontext import dump_compact, pretty
from crux_workspace.model.lines import window
from crux_workspace.mounts.calling import unsupported
from crux_workspace.mounts.source_tree import SourceTree
from crux_workspace.operations.space import Options, Space, not_found

__all__ = [
    "exists",
    "json_value",
    "mutable",
    "read",
    "read_bytes",
    "read_text",
    "refuse",
    "source_at",
    "stream",
    "text_of_content",
    "whole",
]


def source_at(space: Space, reads: TreeReads, path: str) -> SourceTree | None:
    """Return the source that a path belongs to, None for what is kept here.

    Raises:
        UnsupportedError: In a view of the past: a source keeps none (``SOURCE_UNSUPPORTED``).
    """
    tree = space.router.source(path)
    if tree is not None and isinstance(reads, PastReads):
        raise unsupported(
            tree.mount, "views of the past", "Read it from the workspace itself, as it is now."
        )
    return tree


def refuse(space: Space, path: str, what: str) -> None:
    """Refuse a verb that only files kept here have, when the path lies in a source (``SOURCE_UNSUPPORTED``)."""
    tree = space.router.source(path)
    if tree is not None:
        raise unsupported(tree.mount, what)


def mutable(space: Space, path: str, options: Options, verb: str) -> SourceTree | None:
    """Return the source that a call wants to change, None for what is kept here.

    Raises:
        UnsupportedError: Inside a transaction, or with an option that a source cannot keep (``SOURCE_UNSUPPORTED``).
    """
    tree = space.router.source(path)
    if tree is None:
        return None
    if space.stages:
        raise unsupported(
            tree.mount, "changes in a transaction", f"Call {verb} outside of the transaction."
        )
    if options.if_version is not None:
        raise unsupported(
            tree.mount, "if_version", "Leave if_version out: a source keeps no versions."
        )
    if options.idempotency_key is not None:
        raise unsupported(tree.mount, "idempotency_key", "Leave idempotency_key out.")
    return tree


# -- reading


async def whole(tree: SourceTree, path: str) -> Content:
    """Return a file's whole content.

    Raises:
        PathNotFoundError: There is none (``FILE_NOT_FOUND``).
    """
    content = await tree.whole(path)
    if content is None:
        raise not_found(path)
    return content


def refuse_version(tree: SourceTree, version: int | None) -> None:
    """A source has no versions (``SOURCE_UNSUPPORTED``)."""
    if version is not None:
        raise unsupported(tree.mount, "versioned reads", "Leave version out.")


async def read(
    tree: SourceTree,
    path: str,
    *,
    version: int | None,
    offset: int,
    max_inline_bytes: int | None,
    start_line: int | None,
    end_line: int | None,
) -> Content:
    """Return a file's content, or a window of its text."""
    refuse_version(tree, version)
    if start_line is None and end_line is None:
        content = await tree.read(path, offset, max_inline_bytes)
        if content is None:
            raise not_found(path)
        return content
    content = await whole(tree, path)
    text = text_of_content(content, "has no lines")
    piece, total = window(text, start_line, end_line)
    before = "" if (start_line or 1) <= 1 else window(text, 1, (start_line or 1) - 1)[0]
    shown = {
        name: getattr(content, name)
        for name in (
            "path",
            "mime_type",
            "size",
            "version",
            "sha256",
            "metadata",
            "status",
            "artifact_kind",
        )
    }
    cut = len(piece) != len(text)
    return TextContent(
        content=piece, truncated=cut, offset=len(before.encode()), total_lines=total, **shown
    )


def text_of_content(content: Content, why: str) -> str:
    """Return content as text, JSON in its pretty form.

    Raises:
        BinaryContentError: It is binary (``BINARY_CONTENT``).
    """
    if isinstance(content, BinaryContent):
        raise BinaryContentError(
            f"{content.path} is binary and {why}.",
            details={"path": content.path},
            hint="Use read_bytes or stream for its bytes.",
        )
    if isinstance(content, JsonContent):
        return pretty(dump_compact(content.content))
    return content.content


async def read_text(tree: SourceTree, path: str, version: int | None) -> str:
    """Return the whole text; JSON in its pretty form."""
    refuse_version(tree, version)
    return text_of_content(await whole(tree, path), "cannot be read as text")


async def read_bytes(tree: SourceTree, path: str, version: int | None) -> bytes:
    """Return all bytes."""
    refuse_version(tree, version)
    data = await tree.read_bytes(path)
    if data is None:
        raise not_found(path)
    return data


async def json_value(tree: SourceTree, path: str, version: int | None) -> JsonContent | bytes:
    """Return JSON content, or the bytes of a text that may be JSON."""
    refuse_version(tree, version)
    content = await whole(tree, path)
    if isinstance(content, JsonContent):
        return content
    return text_of_content(content, "holds no JSON").encode()


async def stream(
    tree: SourceTree,
    path: str,
    *,
    version: int | None,
    offset: int,
    length: int | None,
    chunk_bytes: int,
) -> AsyncGenerator[bytes, None]:
    """Iterate over a file's bytes from `offset` on."""
    refuse_version(tree, version)
    chunks = await tree.stream(path)
    if chunks is None:
        raise not_found(path)
    left = length
    async with aclosing(chunks):
        async for chunk in chunks:
            skipped = min(offset, len(chunk))
            offset -= skipped
            rest = chunk[skipped:]
            if left is not None:
                rest = rest[:left]
                left -= len(rest)
            for start in range(0, len(rest), chunk_bytes):
                yield rest[start : start + chunk_bytes]
            if left == 0:
                return


async def exists(space: Space, tree: SourceTree, path: str, *, directory: bool) -> bool:
    """Tell whether a file or a directory is there."""
    if space.router.is_fixed_directory(path):
        return True
    if not directory and await tree.has_file(path):
        return True
    return await tree.has_directory(path)
