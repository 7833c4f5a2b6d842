"""What tools tell a model: small JSON, cut to a bound, with a way to go on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from crux_workspace.model.artifacts import Artifact
from crux_workspace.model.contents import BinaryContent, JsonContent, TextContent
from crux_workspace.model.diffs import FileDiff
from crux_workspace.model.files import (
    ListResult,
    WorkspaceDirectory,
    WorkspaceEntry,
    WorkspaceFile,
    known_size,
)
from crux_workspace.model.jsontext import dump_compact, pretty
from crux_workspace.model.lines import byte_window, count_lines, split_lines
from crux_workspace.model.matching import GrepMatch
from crux_workspace.model.searches import GrepResult
from crux_workspace.model.versions import VersionEntry

__all__ = [
    "LEAST_BYTES",
    "Bounds",
    "artifact_shape",
    "binary_shape",
    "diff_shape",
    "entry_shape",
    "file_shape",
    "grep_shape",
    "history_shape",
    "json_shape",
    "length",
    "list_shape",
    "shown_uri",
    "text_shape",
]


_MATCH_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a text one answer shows."""

    window: int
    """Most bytes of the text."""
    answer: int
    """Most bytes of its JSON form, in which quotes, line ends and control characters take more."""


def length(output: object) -> int:
    """Return how many bytes an output has as JSON."""
    return len(json.dumps(output, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _fitting(text: str, most: int) -> str:
    """Return the longest beginning of a text whose JSON form has at most so many bytes; one character at least."""
    if length(text) - 2 <= most:
        return text
    low, high = 1, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if length(text[:middle]) - 2 <= most else (low, middle - 1)
    return text[:low]


def shown_uri(uri: str | None) -> str | None:
    """Return a URI that a model may see: none that is a place on the server's disk."""
    scheme, colon, _ = (uri or "").partition(":")
    return uri if colon and scheme.lower().rpartition("+")[2] != "file" else None


def _present(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {name: value for name, value in fields.items() if value is not None}


def entry_shape(entry: WorkspaceEntry) -> dict[str, Any]:
    """Describe a file or directory in a listing."""
    if isinstance(entry, WorkspaceDirectory):
        return {"kind": "directory", "path": entry.path}
    return _present(
        kind="file",
        path=entry.path,
        mimeType=entry.mime_type,
        size=known_size(entry),
        version=entry.version or None,
        status=entry.status,
        artifactKind=entry.artifact_kind,
        updatedAt=entry.updated_at or None,
    )


def file_shape(file: WorkspaceFile | WorkspaceDirectory) -> dict[str, Any]:
    """Describe a file that a call changed."""
    if isinstance(file, WorkspaceDirectory):
        return {"path": file.path, "kind": "directory"}
    return _present(
        path=file.path,
        mimeType=file.mime_type,
        size=known_size(file),
        storage=file.storage,
        version=file.version or None,
        uri=shown_uri(file.uri),
        status=file.status,
    )


def list_shape(page: ListResult, shown: int) -> dict[str, Any]:
    """Label a listing; `shown` of its entries are told."""
    result = _present(
        entries=[entry_shape(entry) for entry in page.entries[:shown]], cursor=page.cursor
    )
    notes: list[str] = []
    if page.cursor is not None:
        notes.append("There are more entries: call again with this cursor.")
    elif not page.entries and not page.failed:
        notes.append("Nothing is there.")
    return {"label": "Workspace listing", "result": _noted(result, notes, page.failed)}


def _noted(result: dict[str, Any], notes: list[str], failed: dict[str, str]) -> dict[str, Any]:
    """Add what a model should know of a result; mounts that could not be looked into are named."""
    for mount, code in sorted(failed.items()):
        notes.append(f"{mount} could not be looked into ({code}) and is left out; try it later.")
    return {**result, "note": " ".join(notes)} if notes else result


def grep_shape(found: GrepResult, most_bytes: int, more: int | None) -> dict[str, Any]:
    """Label matches, as many as fit; `more` may be asked for at most, None when no more may be."""
    matches = [_match(match) for match in found.matches]
    kept, used = 0, 0
    for match in matches:
        used += length(match) + 2
        if kept and used > most_bytes:
            break
        kept += 1
    result: dict[str, Any] = {"matches": matches[:kept]}
    notes: list[str] = []
    if kept < len(matches) or (found.truncated and more is None):
        notes.append("There are more matches: narrow path or query.")
    elif found.truncated:
        notes.append(
            f"There are more matches: narrow path or query, or raise maxResults, to {more} at most."
        )
    elif not matches and not found.failed:
        notes.append("Nothing matches.")
    if found.truncated or kept < len(matches):
        result["truncated"] = True
    return {"label": "Workspace grep matches", "result": _noted(result, notes, found.failed)}


def _match(match: GrepMatch) -> dict[str, Any]:
    text = match.text
    if len(text) > _MATCH_CHARACTERS:
        start = max(0, min(match.column - 1, len(text)) - _MATCH_CHARACTERS // 2)
        text = f"...{text[start : start + _MATCH_CHARACTERS]}..."
    return {"path": match.path, "line": match.line, "column": match.column, "text": text}


LEAST_BYTES = 4
"""Least size of a window: no character is longer, so that reading on always gets on."""


def text_shape(content: TextContent, bounds: Bounds, first_line: int | None) -> dict[str, Any]:
    """Return a text, whole or a window with a way to go on: by lines when it was asked for by lines, else by bytes."""
    text = _shortened(content.content, bounds, by_lines=first_line is not None)
    shortened = len(text) < len(content.content)
    if not shortened and not content.truncated:
        return {"type": "text", "value": text}
    output: dict[str, Any] = {
        "type": "text",
        "value": text,
        "truncated": True,
        "path": content.path,
    }
    end = content.offset + len(text.encode())
    if first_line is None:
        return {**output, **_by_bytes(content, end)}
    if shortened and "\n" not in text:
        return {**output, **_inside_a_line(first_line, len(text), content.total_lines, end)}
    return {**output, **_by_lines(first_line, len(split_lines(text)), content.total_lines)}


def _inside_a_line(line: int, shown: int, total: int, end: int) -> dict[str, Any]:
    told: dict[str, Any] = {"totalLines": total, "nextOffset": end}
    if line < total:
        told["nextLine"] = line + 1
    note = (
        f"Line {line} of {total} is longer than one answer: these are its first {shown} characters. "
        f"Read its rest by offset={end}, in bytes, without startLine."
    )
    return {**told, "note": note}


def _by_bytes(content: TextContent, end: int) -> dict[str, Any]:
    told = {"offset": content.offset, "size": content.size}
    if end >= content.size:
        return {**told, "note": f"Bytes {content.offset} to {end}, the end of the file."}
    note = f"Bytes {content.offset} to {end} of {content.size}: read on with offset={end}."
    return {**told, "nextOffset": end, "note": note}


def _by_lines(first: int, shown: int, total: int) -> dict[str, Any]:
    last = first + max(shown, 1) - 1
    if last >= total:
        return {"totalLines": total, "note": f"Lines {first} to {last}, the end of the file."}
    note = f"Lines {first} to {last} of {total}: read on with startLine={last + 1}."
    return {"totalLines": total, "nextLine": last + 1, "note": note}


def _shortened(text: str, bounds: Bounds, *, by_lines: bool) -> str:
    """Cut a text between characters, of whole lines between lines where that leaves something."""
    # No character has fewer than one byte, so what lies behind so many cannot be shown.
    near = text[: bounds.window]
    piece = _fitting(byte_window(near.encode(), 0, bounds.window)[0], bounds.answer)
    if by_lines and len(piece) < len(text) and (end := piece.rfind("\n") + 1):
        return piece[:end]
    return piece


def json_shape(content: JsonContent, bounds: Bounds, offset: int) -> dict[str, Any]:
    """Return a JSON value; of one that is too large, or that is read by offset, a window of its pretty form."""
    most = min(bounds.window, bounds.answer)
    if not offset and content.size <= most and length(content.content) <= most:
        return {"type": "json", "value": content.content}
    text = pretty(dump_compact(content.content))
    data = text.encode()
    piece, start, _ = byte_window(data, offset, bounds.window)
    shown = TextContent(
        path=content.path,
        content=piece,
        offset=start,
        size=len(data),
        truncated=True,
        total_lines=count_lines(text),
    )
    output = text_shape(shown, bounds, None if offset else 1)
    return {**output, "note": f"{output['note']} This is the JSON value as text, indented by 2."}


def binary_shape(content: BinaryContent) -> dict[str, Any]:
    """Describe binary content; its bytes are never shown."""
    return _present(
        kind="binary",
        path=content.path,
        mimeType=content.mime_type,
        uri=shown_uri(content.uri),
        size=content.size if content.size or content.version else None,
        version=content.version or None,
    )


def history_shape(
    versions: list[VersionEntry], most_bytes: int, *, more: bool, can_raise: bool, read: str
) -> dict[str, Any]:
    """Label a file's versions, newest first, as many as fit; `read` is the tool that reads one of them."""
    told: list[dict[str, Any]] = []
    used = 0
    for entry in versions:
        shape = {
            "version": entry.version,
            "operation": entry.operation,
            "path": entry.path,
            "size": entry.size,
            "createdAt": entry.created_at,
        }
        used += length(shape) + 2
        if told and used > most_bytes:
            break
        told.append(shape)
    result: dict[str, Any] = {"versions": told}
    if len(told) < len(versions) or (more and not can_raise):
        result["note"] = f"There are older versions: {read} reads each of them by its number."
    elif more:
        result["note"] = "There are older versions: raise limit."
    return {"label": "Workspace file history", "result": result}


def diff_shape(diff: FileDiff, most_bytes: int) -> dict[str, Any]:
    """Label the difference of two versions."""
    unified = _fitting(diff.unified[:most_bytes], most_bytes)
    result: dict[str, Any] = {
        "path": diff.path,
        "from": diff.from_version,
        "to": diff.to_version,
        "added": diff.added,
        "removed": diff.removed,
        "unified": unified,
    }
    if len(unified) < len(diff.unified):
        result["truncated"] = True
        result["note"] = "The difference is longer: read both versions, or compare nearer ones."
    return {"label": "Workspace file diff", "result": result}


def artifact_shape(artifact: Artifact) -> dict[str, Any]:
    """Describe a published file."""
    return _present(
        path=artifact.path,
        kind=artifact.kind,
        status=artifact.status,
        version=artifact.version,
        mimeType=artifact.mime_type,
        size=artifact.size,
        uri=shown_uri(artifact.uri),
    )
