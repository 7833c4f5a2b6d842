"""The tools over one workspace: reading, writing and searching files, each answer bounded."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from crux_workspace.errors import InvalidInputError, UnsupportedError, WorkspaceError
from crux_workspace.model.contents import BinaryContent, Content, JsonContent, TextContent
from crux_workspace.model.settings import Mount, ToolOptions
from crux_workspace.model.streams import at_most
from crux_workspace.tools import shapes
from crux_workspace.tools.arguments import schema_of, taken
from crux_workspace.tools.catalogue import Entry, catalogued, located, tool_names
from crux_workspace.tools.guard import Guard
from crux_workspace.tools.names import WorkspaceToolNames, workspace_tool_names
from crux_workspace.tools.telling import Teller
from crux_workspace.tools.toolset import Media, Tool, ToolResult, ToolSet

__all__ = ["ToolWorkspace", "workspace_tools"]

Given: TypeAlias = Mapping[str, Any]
Run: TypeAlias = Callable[[Given], Awaitable[ToolResult]]

_LARGE = 1 << 18
_WHOLE_TREES = ("rename_file", "copy_file")
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class ToolWorkspace(Protocol):
    """What the tools work on: a workspace, or a view of one, with all its verbs."""

    @property
    def id(self) -> str:
        """Id of the workspace."""
        ...

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The mounts, by path."""
        ...


def workspace_tools(
    workspace: ToolWorkspace,
    options: ToolOptions,
    **chosen: Any,  # noqa: ANN401 - fields of the options
) -> ToolSet:
    """Make the tools of a workspace, or of a view of it that is bound to a namespace; what is chosen goes before the options."""
    given = {name: value for name, value in chosen.items() if value is not None}
    return ToolSet(_Maker(workspace, replace(options, **given)).tools())


class _Maker:
    """The workspace, the bounds, and what the model has read so far."""

    def __init__(self, workspace: ToolWorkspace, options: ToolOptions) -> None:
        self.ws: Any = workspace
        self.options = options
        self.names: WorkspaceToolNames = workspace_tool_names(options.prefix)
        self.guard = Guard(workspace.mounts, in_force=options.read_before_write)
        self.teller = Teller(self.names, tool_names(options), workspace.mounts)

    def tools(self) -> list[Tool]:
        """Return the tools that the options ask for."""
        return [self._tool(entry) for entry in catalogued(self.options)]

    def _tool(self, entry: Entry) -> Tool:
        name: str = getattr(self.names, entry.field)
        params = located(entry.params, self.ws.mounts)
        run: Run = getattr(self, f"_{entry.field.removesuffix('_file')}")

        async def handler(arguments: Mapping[str, Any], call_id: str | None) -> ToolResult:
            del call_id
            try:
                return await run(taken(arguments, params, name))
            except WorkspaceError as error:
                return self.teller.failure(error, entry.field, arguments)

        return Tool(
            name,
            entry.description.replace("{id}", self.ws.id),
            schema_of(params),
            handler,
            annotations=entry.annotations,
            base=functools.partial(self._base, entry.field),
        )

    async def _base(self, field: str, arguments: Mapping[str, Any]) -> str | None:
        """Name the versions of the files that a call names; of a directory that it changes, the state of the whole workspace."""
        paths = [arguments.get(name) for name in ("path", "from", "to")]
        found = [await self._version(field, path) for path in paths if isinstance(path, str)]
        return "|".join(found) or None

    async def _version(self, field: str, path: str) -> str:
        try:
            file = await self.ws.stat(path)
            if file is not None:
                return f"{file.id}:{file.version}:{file.updated_at}"
            if field in _WHOLE_TREES and await self.ws.is_dir(path):
                return f"tree:{(await self.ws.log(limit=1))[0].sequence}"
        except (WorkspaceError, IndexError):
            return "none"
        return "none"

    # -- reading

    async def _list(self, given: Given) -> ToolResult:
        path = given.get("path") or "/"
        limit = min(given.get("limit", 100), self.options.max_entries)
        cursor = given.get("cursor") or None
        while True:
            page = await self.ws.list(path, limit=limit, cursor=cursor, partial=True)
            output = shapes.list_shape(page, limit)
            if limit == 1 or shapes.length(output) <= self.options.max_result_bytes:
                return ToolResult.success(output, page)
            limit = max(limit // 2, 1)

    async def _read(self, given: Given) -> ToolResult:
        most = min(
            given.get("maxInlineBytes", self.options.max_result_bytes),
            self.options.max_result_bytes,
        )
        bounds = shapes.Bounds(max(most, shapes.LEAST_BYTES), self.options.max_result_bytes)
        first, last = given.get("startLine"), given.get("endLine")
        by_lines = first is not None or last is not None
        if by_lines and given.get("offset"):
            raise InvalidInputError(
                "offset counts bytes and startLine lines.",
                hint="Send only one of offset and startLine.",
            )
        if by_lines:  # no more lines than the answer has bytes
            furthest = (first or 1) + bounds.window - 1
            last = furthest if last is None else min(last, furthest)
        offset = given.get("offset", 0)
        content: Content = await self.ws.read(
            given["path"],
            version=given.get("version"),
            offset=offset,
            max_inline_bytes=bounds.window,
            start_line=first,
            end_line=last,
        )
        if given.get("version") is None:
            self.guard.note(content)
        if isinstance(content, BinaryContent):
            media = await self._image(content)
            return ToolResult.success(shapes.binary_shape(content), content, media)
        if isinstance(content, JsonContent):
            output = await self._in_thread(content, shapes.json_shape, content, bounds, offset)
            return ToolResult.success(output, content)
        output = await self._in_thread(
            content, shapes.text_shape, content, bounds, (first or 1) if by_lines else None
        )
        return ToolResult.success(output, content)

    async def _in_thread(self, content: Content, shape: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401 - JSON
        """Shape content; of a large one that would hold the event loop."""
        size = len(content.content) if isinstance(content, TextContent) else content.size
        return shape(*args) if size < _LARGE else await asyncio.to_thread(shape, *args)

    async def _image(self, content: BinaryContent) -> tuple[Media, ...]:
        """Return an image that is small enough, however large it is said to be."""
        most = self.options.max_image_bytes
        if content.mime_type not in _IMAGES or not most or content.size > most:
            return ()
        version = content.version or None
        stream = self.ws.stream(content.path, version=version, length=most + 1)
        try:
            data = await at_most(stream, most)
        except UnsupportedError:  # a source that does not give its bytes
            return ()
        return (Media(content.mime_type, data),) if data else ()

    async def _grep(self, given: Given) -> ToolResult:
        path = given.get("path") or None
        wanted = given.get("maxResults", 100)
        most = min(wanted, self.options.max_entries)
        found = await self.ws.grep(
            given["query"],
            path=None if path == "/" else path,
            ignore_case=given.get("ignoreCase", False),
            regex=given.get("regex", False),
            max_results=most,
            partial=True,
        )
        more = None if most == self.options.max_entries else self.options.max_entries
        output = shapes.grep_shape(found, self.options.max_result_bytes, more)
        return ToolResult.success(output, found)

    async def _stat(self, given: Given) -> ToolResult:
        file = await self.ws.stat(given["path"])
        if file is None:
            is_directory = await self.ws.is_dir(given["path"])
            return ToolResult.success(
                {
                    "path": given["path"],
                    "exists": is_directory,
                    **({"kind": "directory"} if is_directory else {}),
                }
            )
        return ToolResult.success(shapes.entry_shape(file), file)

    async def _history(self, given: Given) -> ToolResult:
        limit = min(given.get("limit", 20), self.options.max_entries)
        versions = await self.ws.history(given["path"], limit=limit + 1)
        output = shapes.history_shape(
            versions[:limit],
            self.options.max_result_bytes,
            more=len(versions) > limit,
            can_raise=limit < self.options.max_entries,
            read=self.names.read_file,
        )
        return ToolResult.success(output, versions[:limit])

    async def _diff(self, given: Given) -> ToolResult:
        diff = await self.ws.diff(
            given["path"], from_version=given.get("from"), to_version=given.get("to")
        )
        return ToolResult.success(shapes.diff_shape(diff, self.options.max_result_bytes), diff)

    # -- changing

    def _changed(self, file: Any) -> ToolResult:  # noqa: ANN401 - a file or a directory
        self.guard.note(file)
        return ToolResult.success(shapes.file_shape(file), file)

    async def _write(self, given: Given) -> ToolResult:
        expected = await self.guard.expected(self.ws, given["path"])
        return self._changed(
            await self.ws.write(
                given["path"], given["content"], mime_type=given.get("mimeType") or None, **expected
            )
        )

    async def _edit(self, given: Given) -> ToolResult:
        arguments = _edit_arguments(given)
        expected = await self.guard.expected(self.ws, given["path"], creates=False)
        return self._changed(await self.ws.edit(given["path"], **arguments, **expected))

    async def _append(self, given: Given) -> ToolResult:
        expected = await self.guard.expected(self.ws, given["path"])
        mime = given.get("mimeType") or None
        return self._changed(
            await self.ws.append(given["path"], given["content"], mime_type=mime, **expected)
        )

    async def _rename(self, given: Given) -> ToolResult:
        made = await self._placed("rename", given)
        self.guard.moved(given["from"], given["to"])
        return ToolResult.success(shapes.file_shape(made), made)

    async def _copy(self, given: Given) -> ToolResult:
        made = await self._placed("copy", given)
        self.guard.forget(given["to"])
        return ToolResult.success(shapes.file_shape(made), made)

    async def _placed(self, verb: str, given: Given) -> Any:  # noqa: ANN401 - a file or a directory
        if given.get("overwrite", False):
            return await self.guard.onto(self.ws, verb, given["from"], given["to"])
        return await getattr(self.ws, verb)(given["from"], given["to"])

    async def _delete(self, given: Given) -> ToolResult:
        expected = await self.guard.expected(self.ws, given["path"], creates=False)
        await self.ws.delete(given["path"], **expected)
        self.guard.forget(given["path"])
        result = {"deleted": True, "path": given["path"]}
        return ToolResult.success({"label": "Workspace file deleted", "result": result})

    async def _undo(self, given: Given) -> ToolResult:
        expected = await self.guard.expected(self.ws, given["path"], creates=False)
        file = await self.ws.undo(given["path"], **expected)
        self.guard.forget(given["path"])
        return ToolResult.success(shapes.file_shape(file), file)

    async def _finalize(self, given: Given) -> ToolResult:
        expected = await self.guard.expected(self.ws, given["path"], creates=False)
        artifact = await self.ws.finalize(given["path"], kind=given.get("kind") or None, **expected)
        return ToolResult.success(shapes.artifact_shape(artifact), artifact)


def _edit_arguments(given: Given) -> dict[str, Any]:
    """Return what to edit: one replacement, or several.

    Raises:
        InvalidInputError: Neither or both were sent, or an empty `find` (``INVALID_ARGUMENT``).
    """
    edits = given.get("edits")
    single = "find" in given or "replace" in given
    if edits and (single or "occurrence" in given or "replaceAll" in given):
        raise InvalidInputError(
            "Both one edit and several were sent.", hint="Send either find and replace, or edits."
        )
    if edits:
        return {"edits": edits}
    if "find" not in given or "replace" not in given:
        raise InvalidInputError(
            "The edit names nothing to replace.",
            hint="Send find with the exact text of the file and replace with the new text (empty removes it), or edits.",
        )
    if not given["find"]:
        raise InvalidInputError(
            "find is empty.",
            hint="Send the exact text to replace. To add text, find the line before and replace it by itself and the new text.",
        )
    return {
        "find": given["find"],
        "replace": given["replace"],
        "occurrence": given.get("occurrence"),
        "replace_all": given.get("replaceAll", False),
    }
