"""What tools tell a model: small JSON, cut to a bound, with a way to go on."""

from __future__ import annotations

import json
from typing import Any

from crux_workspace.model.artifacts import Artifact
from crux_workspace.model.contents import BinaryContent, JsonContent, TextContent
from crux_workspace.model.diffs import FileDiff
from crux_workspace.model.files import ListResult, WorkspaceDirectory, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.jsontext import dump_compact, pretty
from crux_workspace.model.lines import byte_window, count_lines, split_lines
from crux_workspace.model.matching import GrepMatch
from crux_workspace.model.searches import GrepResult
from crux_workspace.model.versions import VersionEntry

__all__ = [
    "LEAST_BYTES",
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
    "text_shape",
]


_MATCH_CHARACTERS = 300


def length(output: object) -> int:
    """Return how many characters an output has as JSON."""
    return len(json.dumps(output, ensure_ascii=False))


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
        size=entry.size,
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
        size=file.size,
        storage=file.storage,
        version=file.version or None,
        uri=file.uri,
        status=file.status,
    )


def list_shape(page: ListResult, shown: int) -> dict[str, Any]:
    """Label a listing; `shown` of its entries are told."""
    result = _present(
        entries=[entry_shape(entry) for entry in page.entries[:shown]], cursor=page.cursor
    )
    if page.cursor is not None:
        result["note"] = "There are more entries: call again with this cursor."
    elif not page.entries:
        result["note"] = "Nothing is there."
    return {"label": "Workspace listing", "result": result}


def grep_shape(found: GrepResult, most_characters: int) -> dict[str, Any]:
    """Label matches, as many as fit."""
    matches = [_match(match) for match in found.matches]
    kept, used = 0, 0
    for match in matches:
        used += length(match) + 2
        if kept and used > most_characters:
            break
        kept += 1
    result: dict[str, Any] = {"matches": matches[:kept]}
    if found.truncated or kept < len(matches):
        result["truncated"] = True
        result["note"] = "There are more matches: narrow path or query, or raise maxResults."
    elif not matches:
        result["note"] = "Nothing matches."
    return {"label": "Workspace grep matches", "result": result}


def _match(match: GrepMatch) -> dict[str, Any]:
    text = match.text
    if len(text) > _MATCH_CHARACTERS:
        start = max(0, min(match.column - 1, len(text)) - _MATCH_CHARACTERS // 2)
        text = f"...{text[start : start + _MATCH_CHARACTERS]}..."
    return {"path": match.path, "line": match.line, "column": match.column, "text": text}


LEAST_BYTES = 4
"""Least size of a window: no character is longer, so that reading on always gets on."""


def text_shape(
    content: TextContent,
    most_bytes: int,
    first_line: int | None,
    *,
    go_on: str = "Read the rest by offset, in bytes, without startLine.",
) -> dict[str, Any]:
    """Return a text, whole or a window with a way to go on: by lines when it was asked for by lines, else by bytes."""
    text, cut = content.content, content.truncated
    data = text.encode()
    shortened = len(data) > most_bytes
    if shortened:
        text, cut = _shortened(text, data, most_bytes, by_lines=first_line is not None), True
    if not cut:
        return {"type": "text", "value": text}
    output: dict[str, Any] = {
        "type": "text",
        "value": text,
        "truncated": True,
        "path": content.path,
    }
    if first_line is None:
        return {**output, **_by_bytes(content, content.offset + len(text.encode()))}
    if shortened and "\n" not in text:
        return {**output, **_inside_a_line(first_line, len(text), content.total_lines, go_on)}
    return {**output, **_by_lines(first_line, len(split_lines(text)), content.total_lines)}


def _inside_a_line(line: int, shown: int, total: int, go_on: str) -> dict[str, Any]:
    told: dict[str, Any] = {"totalLines": total}
    if line < total:
        told["nextLine"] = line + 1
    note = (
        f"Line {line} of {total} is longer than one answer: these are its first {shown} characters."
    )
    return {**told, "note": f"{note} {go_on}"}


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


def _shortened(text: str, data: bytes, most: int, *, by_lines: bool) -> str:
    """Cut a text between characters, of whole lines between lines where that leaves something."""
    piece = byte_window(data, 0, most)[0]
    if by_lines and (end := piece.rfind("\n") + 1):
        return piece[:end]
    return piece


def json_shape(content: JsonContent, most_bytes: int) -> dict[str, Any]:
    """Return a JSON value; of one that is too large the first lines of its pretty form."""
    data = dump_compact(content.content)
    if len(data) <= most_bytes:
        return {"type": "json", "value": content.content}
    text = pretty(data)
    whole = TextContent(path=content.path, content=text, total_lines=count_lines(text))
    return text_shape(whole, most_bytes, 1, go_on="A JSON value cannot be read in parts.")


def binary_shape(content: BinaryContent) -> dict[str, Any]:
    """Describe binary content; its bytes are never shown."""
    return _present(
        kind="binary",
        path=content.path,
        mimeType=content.mime_type,
        uri=content.uri,
        size=content.size,
        version=content.version or None,
    )


def history_shape(versions: list[VersionEntry], more: bool) -> dict[str, Any]:
    """Label a file's versions, newest first."""
    result: dict[str, Any] = {
        "versions": [
            {
                "version": entry.version,
                "operation": entry.operation,
                "path": entry.path,
                "size": entry.size,
                "createdAt": entry.created_at,
            }
            for entry in versions
        ]
    }
    if more:
        result["note"] = "There are older versions: raise limit."
    return {"label": "Workspace file history", "result": result}


def diff_shape(diff: FileDiff, most_characters: int) -> dict[str, Any]:
    """Label the difference of two versions."""
    unified = diff.unified
    result: dict[str, Any] = {
        "path": diff.path,
        "from": diff.from_version,
        "to": diff.to_version,
        "added": diff.added,
        "removed": diff.removed,
        "unified": unified[:most_characters],
    }
    if len(unified) > most_characters:
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
        uri=artifact.uri,
    )
