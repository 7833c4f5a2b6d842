"""The tools over one workspace: reading, writing and searching files, each answer bounded."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from crux_workspace.errors import ConflictError, InvalidInputError, WorkspaceError
from crux_workspace.model.contents import BinaryContent, Content, JsonContent, TextContent
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.settings import Mount, ToolOptions
from crux_workspace.tools import shapes
from crux_workspace.tools.arguments import schema_of, taken
from crux_workspace.tools.catalogue import Entry, catalogued, tool_names
from crux_workspace.tools.names import WorkspaceToolNames, workspace_tool_names
from crux_workspace.tools.telling import Teller
from crux_workspace.tools.toolset import Media, Tool, ToolResult, ToolSet

__all__ = ["ToolWorkspace", "workspace_tools"]

Given: TypeAlias = Mapping[str, Any]
Run: TypeAlias = Callable[[Given], Awaitable[ToolResult]]

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


def workspace_tools(workspace: ToolWorkspace, options: ToolOptions) -> ToolSet:
    """Make the tools of a workspace, or of a view of it that is bound to a namespace."""
    return ToolSet(_Maker(workspace, options).tools())


class _Maker:
    """The workspace, the bounds, and what the model has read so far."""

    def __init__(self, workspace: ToolWorkspace, options: ToolOptions) -> None:
        self.ws: Any = workspace
        self.options = options
        self.names: WorkspaceToolNames = workspace_tool_names(options.prefix)
        self.seen: dict[str, int] = {}
        """Version of each file as this set of tools has read or made it."""
        self.teller = Teller(self.names, tool_names(options), workspace.mounts)

    def tools(self) -> list[Tool]:
        """Return the tools that the options ask for."""
        return [self._tool(entry) for entry in catalogued(self.options)]

    def _tool(self, entry: Entry) -> Tool:
        name: str = getattr(self.names, entry.field)
        run: Run = getattr(self, f"_{entry.field.removesuffix('_file')}")

        async def handler(arguments: Mapping[str, Any], call_id: str | None) -> ToolResult:
            del call_id
            path = arguments.get("path", arguments.get("from"))
            try:
                return await run(taken(arguments, entry.params, name))
            except WorkspaceError as error:
                return self.teller.failure(error, path if isinstance(path, str) else None)

        return Tool(
            name,
            entry.description.replace("{id}", self.ws.id),
            schema_of(entry.params),
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

    # -- the guard

    def _note(self, made: object) -> None:
        """Remember the version of a file that the model knows now."""
        if (
            isinstance(made, WorkspaceFile | TextContent | JsonContent | BinaryContent)
            and made.version
        ):
            self.seen[made.path] = made.version

    def _grown(self, file: WorkspaceFile) -> ToolResult:
        """Answer an append: the model knows the file now if it knew it before, or if it is new."""
        if self.seen.get(file.path, 0) == file.version - 1:
            self._note(file)
        return ToolResult.success(shapes.file_shape(file), file)

    async def _expected(self, path: str) -> dict[str, Any]:
        """Return the version that a change may be made on, where the options ask for reading before writing.

        Raises:
            ConflictError: The file is there and was not read (``VERSION_CONFLICT``).
        """
        if not self.options.read_before_write:
            return {}
        file = await self.ws.stat(path)
        if file is not None and file.storage == "virtual":
            return {}
        known = self.seen.get(file.path if file is not None else path)
        if known is not None:
            return {"if_version": known}
        if file is None:
            return {"if_version": 0}
        raise ConflictError(
            f"{path} was not read yet and cannot be changed blindly.",
            details={"path": path, "base_version": None, "current_version": file.version},
            hint=self.teller.unread(path),
        )

    # -- reading

    async def _list(self, given: Given) -> ToolResult:
        path = given.get("path") or "/"
        limit = min(given.get("limit", 100), self.options.max_entries)
        cursor = given.get("cursor") or None
        while True:
            page = await self.ws.list(path, limit=limit, cursor=cursor)
            output = shapes.list_shape(page, limit)
            if limit == 1 or shapes.length(output) <= self.options.max_result_bytes:
                return ToolResult.success(output, page)
            limit = max(limit // 2, 1)

    async def _read(self, given: Given) -> ToolResult:
        most = min(given.get("maxInlineBytes", self.options.max_result_bytes), self.options.max_result_bytes)  # fmt: skip
        most = max(most, shapes.LEAST_BYTES)
        lines = {"start_line": given.get("startLine"), "end_line": given.get("endLine")}
        by_lines = lines["start_line"] is not None or lines["end_line"] is not None
        if by_lines and given.get("offset"):
            raise InvalidInputError(
                "offset counts bytes and startLine lines.",
                hint="Send only one of offset and startLine.",
            )
        content: Content = await self.ws.read(
            given["path"],
            version=given.get("version"),
            offset=given.get("offset", 0),
            max_inline_bytes=most,
            **lines,
        )
        if given.get("version") is None:
            self._note(content)
        if isinstance(content, BinaryContent):
            media = await self._image(content)
            return ToolResult.success(shapes.binary_shape(content), content, media)
        if isinstance(content, JsonContent):
            return ToolResult.success(shapes.json_shape(content, most), content)
        first = (lines["start_line"] or 1) if by_lines else None
        return ToolResult.success(shapes.text_shape(content, most, first), content)

    async def _image(self, content: BinaryContent) -> tuple[Media, ...]:
        small = 0 < content.size <= self.options.max_image_bytes
        if not small or content.mime_type not in _IMAGES:
            return ()
        data = await self.ws.read_bytes(content.path, version=content.version or None)
        return (Media(content.mime_type, data),)

    async def _grep(self, given: Given) -> ToolResult:
        path = given.get("path") or None
        found = await self.ws.grep(
            given["query"],
            path=None if path == "/" else path,
            ignore_case=given.get("ignoreCase", False),
            regex=given.get("regex", False),
            max_results=min(given.get("maxResults", 100), self.options.max_entries),
        )
        return ToolResult.success(shapes.grep_shape(found, self.options.max_result_bytes), found)

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
        return ToolResult.success(
            shapes.history_shape(versions[:limit], len(versions) > limit), versions[:limit]
        )

    async def _diff(self, given: Given) -> ToolResult:
        diff = await self.ws.diff(
            given["path"], from_version=given.get("from"), to_version=given.get("to")
        )
        return ToolResult.success(shapes.diff_shape(diff, self.options.max_result_bytes), diff)

    # -- changing

    def _changed(self, file: Any) -> ToolResult:  # noqa: ANN401 - a file or a directory
        self._note(file)
        return ToolResult.success(shapes.file_shape(file), file)

    async def _write(self, given: Given) -> ToolResult:
        expected = await self._expected(given["path"])
        return self._changed(
            await self.ws.write(
                given["path"], given["content"], mime_type=given.get("mimeType") or None, **expected
            )
        )

    async def _edit(self, given: Given) -> ToolResult:
        arguments = _edit_arguments(given)
        expected = await self._expected(given["path"])
        return self._changed(await self.ws.edit(given["path"], **arguments, **expected))

    async def _append(self, given: Given) -> ToolResult:
        return self._grown(
            await self.ws.append(
                given["path"], given["content"], mime_type=given.get("mimeType") or None
            )
        )

    async def _rename(self, given: Given) -> ToolResult:
        moved = await self.ws.rename(given["from"], given["to"], overwrite=given.get("overwrite", False))  # fmt: skip
        self.seen.pop(given["from"], None)
        return self._changed(moved)

    async def _copy(self, given: Given) -> ToolResult:
        made = await self.ws.copy(
            given["from"], given["to"], overwrite=given.get("overwrite", False)
        )
        return ToolResult.success(shapes.file_shape(made), made)

    async def _delete(self, given: Given) -> ToolResult:
        await self.ws.delete(given["path"], **(await self._expected_for_delete(given["path"])))
        self.seen.pop(given["path"], None)
        result = {"deleted": True, "path": given["path"]}
        return ToolResult.success({"label": "Workspace file deleted", "result": result})

    async def _expected_for_delete(self, path: str) -> dict[str, Any]:
        expected = await self._expected(path)
        return {} if expected.get("if_version") == 0 else expected

    async def _undo(self, given: Given) -> ToolResult:
        file = await self.ws.undo(given["path"])
        return ToolResult.success(shapes.file_shape(file), file)

    async def _finalize(self, given: Given) -> ToolResult:
        artifact = await self.ws.finalize(given["path"], kind=given.get("kind") or None)
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
