"""What the bundled sources share: pages of names in order, and content of bytes."""

from __future__ import annotations

import codecs

from crux_workspace.model.contents import BinaryContent, Content, TextContent
from crux_workspace.model.files import ContentKind, ListResult, WorkspaceEntry
from crux_workspace.model.lines import byte_window
from crux_workspace.model.mime import guess
from crux_workspace.model.paths import sort_key
from crux_workspace.model.sources import MountListOptions, MountReadOptions

__all__ = ["content_of", "content_of_window", "kind_of", "page_of"]


def page_of(entries: list[WorkspaceEntry], options: MountListOptions) -> ListResult:
    """Cut a page out of all entries of a directory; the cursor is the last path of a page."""
    ordered = sorted(entries, key=lambda entry: sort_key(entry.path))
    if options.cursor is not None:
        after = sort_key(options.cursor)
        ordered = [entry for entry in ordered if sort_key(entry.path) > after]
    if options.limit is None or len(ordered) <= options.limit:
        return ListResult(ordered)
    kept = ordered[: options.limit]
    return ListResult(kept, kept[-1].path if kept else None)


def content_of(path: str, data: bytes, options: MountReadOptions, revision: str) -> Content:
    """Return a window of a file's bytes: text when they are UTF-8 without NUL, else binary."""
    return content_of_window(path, data, 0, len(data), options, revision)


def kind_of(data: bytes) -> ContentKind:
    """Tell the kind of a file by its bytes, or its first ones: UTF-8 without NUL is text."""
    if b"\0" in data:
        return "binary"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return "binary"
    return "text"


def content_of_window(
    path: str, data: bytes, start: int, size: int, options: MountReadOptions, revision: str
) -> Content:
    """Return a window of a file of which `data` is the part from `start` on, cut between any two bytes."""
    metadata = {"revision": revision}
    binary = BinaryContent(path=path, mime_type=guess(path, "binary"), size=size, metadata=metadata)
    if b"\0" in data:
        return binary
    cut = start + len(data) < size
    lead = 0
    while start > 0 and lead < min(3, len(data)) and data[lead] & 0xC0 == 0x80:
        lead += 1
    end = len(data)
    if cut:
        tail = next((n for n in range(1, min(4, len(data)) + 1) if data[-n] & 0xC0 != 0x80), 0)
        end -= tail
    try:
        text, offset, _ = byte_window(
            data[lead:end], max(options.offset - start - lead, 0), options.max_inline_bytes
        )
    except UnicodeDecodeError:
        return binary
    offset += start + lead
    return TextContent(
        path=path,
        content=text,
        mime_type=guess(path, "text"),
        size=size,
        offset=offset,
        truncated=offset > 0 or offset + len(text.encode()) < size,
        metadata=metadata,
    )
