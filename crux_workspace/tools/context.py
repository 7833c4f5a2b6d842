"""What a model is told of a workspace: its mounts, its files, what is published, and the files an application includes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from crux_workspace.model.contents import BinaryContent, Content, TextContent
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.jsontext import dump_compact
from crux_workspace.model.options import refused_option, whole_number
from crux_workspace.tools.workspace_tools import ToolWorkspace

__all__ = ["MAX_LISTED", "Bind", "WorkspaceContext", "make_context", "manifest"]

MAX_LISTED = 100
"""Most files, and most final artifacts, that a manifest names."""

Bind = Callable[[Any], Awaitable[tuple[str, Any]]]
"""Resolves the namespace for a prompt's input: its name, and the view bound to it."""


@dataclass(frozen=True, slots=True)
class WorkspaceContext:
    """A part of a prompt's system text that describes a workspace, made when the prompt is."""

    id: str
    description: str
    priority: int
    bind: Bind = field(repr=False)
    include: tuple[str, ...] = ()
    max_inline_bytes: int | None = None

    async def text(self, input: Any = None) -> str:  # noqa: ANN401 - whatever the application prompts with
        """Return the description as of now.

        Args:
            input: What the prompt is made for; a namespace callable is given it.

        Returns:
            The manifest, and the included files.

        Raises:
            PathNotFoundError: An included file does not exist (``FILE_NOT_FOUND``).
        """
        namespace, workspace = await self.bind(input)
        text = await manifest(workspace, namespace)
        if self.include:
            text += await _included(workspace, self.include, self.max_inline_bytes)
        return text


def make_context(
    workspace: ToolWorkspace,
    bind: Bind,
    include: object,
    max_inline_bytes: int | None,
    priority: int,
) -> WorkspaceContext:
    """Make a context; the options are checked."""
    if isinstance(include, str | bytes) or not isinstance(include, Sequence | set | frozenset):
        raise refused_option("include", "a list of paths", include)
    for path in include:
        if not isinstance(path, str | PurePosixPath):
            raise refused_option("include", "a list of paths", path)
    whole_number("max_inline_bytes", max_inline_bytes)
    given: object = priority
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise refused_option("priority", "a number", given)
    return WorkspaceContext(
        f"workspace:{workspace.id}",
        f"Workspace: {workspace.id}",
        priority,
        bind,
        tuple(str(path) for path in include),
        max_inline_bytes,
    )


async def manifest(workspace: Any, namespace: str) -> str:  # noqa: ANN401 - a bound workspace
    """Return what there is, in a few lines: never the content of a file."""
    lines = [f"## Workspace ({workspace.id})", f"Namespace: {namespace}", "", "Mounted roots:"]
    for mount in workspace.mounts:
        source = "" if mount.source_kind is None else f", source: {mount.source_kind}"
        told = f": {' '.join(mount.description.split())}" if mount.description else ""
        lines.append(f"- {mount.path} ({mount.access}{source}){told}")
    lines += await _files(workspace)
    lines += await _artifacts(workspace)
    lines += [
        "",
        "Use the workspace tools to list, read and search files when they are needed. Binary files come as metadata and URI.",
    ]
    return "\n".join(lines)


async def _files(workspace: Any) -> list[str]:  # noqa: ANN401
    lines = ["", "Files:", *(f"- {mount.path}/" for mount in workspace.mounts)]
    local = [mount.path for mount in workspace.mounts if mount.source is None]
    count = 0
    for root in local:
        nested = [other.path for other in workspace.mounts if other.path.startswith(f"{root}/")]
        most = MAX_LISTED + 1 - count
        page = (
            await _without(workspace, root, nested, most)
            if nested
            else await workspace.list(root, recursive=True, glob=False, limit=most)
        )
        for file in page:
            count += 1
            if count > MAX_LISTED:
                lines.append("- ... more files omitted; use the workspace tools to list them.")
                return lines
            lines.append(f"- {_printable(file.path)} ({file.mime_type}, {file.size} bytes)")
    return lines


async def _without(workspace: Any, root: str, nested: list[str], most: int) -> list[WorkspaceFile]:  # noqa: ANN401
    """List files of a mount without asking the sources mounted inside it."""
    found: list[WorkspaceFile] = []
    waiting = [root]
    while waiting and len(found) < most:
        where = waiting.pop(0)
        page = await workspace.list(where, glob=False, limit=most)
        for entry in page:
            if isinstance(entry, WorkspaceFile):
                found.append(entry)
            elif entry.path not in nested:
                waiting.append(entry.path)
    return sorted(found[:most], key=lambda file: file.path)


async def _artifacts(workspace: Any) -> list[str]:  # noqa: ANN401
    artifacts = await workspace.artifacts(status="final", limit=MAX_LISTED + 1)
    if not artifacts:
        return []
    lines = ["", "Final artifacts:"]
    for artifact in artifacts[:MAX_LISTED]:
        kind = artifact.kind or "artifact"
        told = f"{kind}, {artifact.mime_type}, {artifact.size} bytes, version {artifact.version}"
        lines.append(f"- {_printable(artifact.path)} ({told})")
    if len(artifacts) > MAX_LISTED:
        lines.append("- ... more final artifacts omitted.")
    return lines


def _printable(path: str) -> str:
    """Names are data: nothing in one may look like a line of its own."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)


async def _included(workspace: Any, paths: Sequence[str], max_inline_bytes: int | None) -> str:  # noqa: ANN401
    lines = ["", "", "Included workspace files:"]
    most = 64_000 if max_inline_bytes is None else max_inline_bytes
    for path in paths:
        content = await workspace.read(path, max_inline_bytes=most)
        lines += ["", f"### {_printable(content.path)}"]
        lines += _shown(content, most)
    return "\n".join(lines)


def _shown(content: Content, most: int) -> list[str]:
    if isinstance(content, TextContent):
        shown = len(content.content.encode())
        cut = [f"[cut: {shown} of {content.size} bytes]"] if content.truncated else []
        return [content.content, *cut]
    if isinstance(content, BinaryContent):
        known = bool(content.size or content.version)
        return [f"[binary {content.mime_type}{f', {content.size} bytes' if known else ''}]"]
    pretty = json.dumps(content.content, ensure_ascii=False, indent=2)
    for text in (pretty, dump_compact(content.content).decode()):
        if len(text.encode()) <= most:
            return [f"```json\n{text}\n```"]
    return [f"[JSON value of {content.size} bytes, not shown: read it with the workspace tools]"]
