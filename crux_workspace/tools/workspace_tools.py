"""The tools over one workspace: reading, writing and searching files, each answer bounded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from crux_workspace.errors import ConflictError, InvalidInputError, WorkspaceError
from crux_workspace.model.contents import BinaryContent, Content, JsonContent, TextContent
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.settings import Mount, ToolOptions
from crux_workspace.tools import shapes
from crux_workspace.tools.arguments import Param, schema_of, taken
from crux_workspace.tools.names import WorkspaceToolNames, workspace_tool_names
from crux_workspace.tools.telling import Teller
from crux_workspace.tools.toolset import Media, Tool, ToolAnnotations, ToolResult, ToolSet

__all__ = ["ToolWorkspace", "workspace_tool_list", "workspace_tools"]

Given: TypeAlias = Mapping[str, Any]
Run: TypeAlias = Callable[[Given], Awaitable[ToolResult]]

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_READS = ToolAnnotations(read_only=True, idempotent=True)
_REPLACES = ToolAnnotations(destructive=True, idempotent=True)
_CHANGES = ToolAnnotations(destructive=True)
_ADDS = ToolAnnotations()


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


@dataclass(frozen=True, slots=True)
class _Spec:
    """One tool before it is bound to a workspace."""

    name: str
    description: str
    params: tuple[Param, ...]
    run: Run
    annotations: ToolAnnotations


_PATH = Param("path", "path", required=True)
_OPTIONAL_PATH = Param("path", "path", may_be_empty=True)
_MIME = Param("mimeType", "string")


def workspace_tools(workspace: ToolWorkspace, options: ToolOptions) -> ToolSet:
    """Make the tools of a workspace, or of a view of it that is bound to a namespace."""
    maker = _Maker(workspace, options)
    return ToolSet(maker.tools())


def workspace_tool_list(options: ToolOptions) -> list[str]:
    """Return the names of the tools that the options ask for."""
    return [spec.name for spec in _Maker(_NOWHERE, options).specs()]


@dataclass(frozen=True, slots=True)
class _Nowhere:
    """Stands for a workspace where only the tools' names matter."""

    id: str = ""
    mounts: tuple[Mount, ...] = ()


_NOWHERE: Any = _Nowhere()


class _Maker:
    """The workspace, the bounds, and what the model has read so far."""

    def __init__(self, workspace: ToolWorkspace, options: ToolOptions) -> None:
        self.ws: Any = workspace
        self.options = options
        self.names: WorkspaceToolNames = workspace_tool_names(options.prefix)
        self.seen: dict[str, int] = {}
        """Version of each file as this set of tools has read or made it."""
        self.teller = Teller(self.names, (), workspace.mounts)

    def specs(self) -> list[_Spec]:
        """Return what the options ask for, in order."""
        return [*self._reading(), *self._writing(), self._grep_spec(), *self._optional()]

    def tools(self) -> list[Tool]:
        """Return the tools that the options ask for."""
        specs = self.specs()
        self.teller = Teller(self.names, [spec.name for spec in specs], self.ws.mounts)
        return [self._tool(spec) for spec in specs]

    def _tool(self, spec: _Spec) -> Tool:
        async def handler(arguments: Mapping[str, Any], call_id: str | None) -> ToolResult:
            del call_id
            path = arguments.get("path", arguments.get("from"))
            try:
                return await spec.run(taken(arguments, spec.params, spec.name))
            except WorkspaceError as error:
                return self.teller.failure(error, path if isinstance(path, str) else None)

        return Tool(
            spec.name,
            spec.description,
            schema_of(spec.params),
            handler,
            annotations=spec.annotations,
        )

    # -- what there is

    def _reading(self) -> Sequence[_Spec]:
        n = self.names
        return (
            _Spec(
                n.list,
                f"List a directory of workspace '{self.ws.id}', or the files a glob matches. A cursor in the result means more.",
                (
                    Param(
                        "path",
                        "path",
                        "Directory or glob, e.g. /workspace/**/*.md; default /",
                        may_be_empty=True,
                    ),
                    Param("limit", "integer", least=1),
                    Param("cursor", "string", may_be_empty=True),
                ),
                self._list,
                _READS,
            ),
            _Spec(
                n.read_file,
                "Read a file: text or JSON, a window at a time; of binary files only what they are.",
                (
                    Param("path", "path", "e.g. /workspace/notes.md", required=True),
                    Param("maxInlineBytes", "integer", least=1),
                    Param("offset", "integer", "First byte"),
                    Param("startLine", "integer", "Instead of offset; lines count from 1", least=1),
                    Param("endLine", "integer", least=1),
                    Param("version", "integer", "An older version", least=1),
                ),
                self._read,
                _READS,
            ),
        )

    def _writing(self) -> Sequence[_Spec]:
        n = self.names
        return (
            _Spec(
                n.write_file,
                "Create a file or replace all of it; what it held stays in its history.",
                (
                    Param("path", "path", "e.g. /outputs/report.md", required=True),
                    Param(
                        "content",
                        "content",
                        "Text, or a JSON value to store as JSON",
                        required=True,
                    ),
                    _MIME,
                ),
                self._write,
                _REPLACES,
            ),
            _Spec(
                n.edit_file,
                "Replace exact text in a text file: find and replace, or several edits, all or none. "
                "find must occur once unless occurrence or replaceAll is given.",
                (
                    _PATH,
                    Param("find", "string", may_be_empty=True),
                    Param("replace", "string", "May be empty", may_be_empty=True),
                    Param("occurrence", "integer", "Which hit, from 1", least=1),
                    Param("replaceAll", "boolean"),
                    Param("edits", "edits", "Instead of find and replace"),
                ),
                self._edit,
                _CHANGES,
            ),
            _Spec(
                n.rename_file,
                "Rename or move a file or directory; its history goes with it.",
                (
                    Param("from", "path", required=True),
                    Param("to", "path", required=True),
                    Param("overwrite", "boolean", "Replace what is at the destination"),
                ),
                self._rename,
                _CHANGES,
            ),
        )

    def _grep_spec(self) -> _Spec:
        return _Spec(
            self.names.grep,
            "Search the contents of text and JSON files, line by line; literal text, or with regex a regular expression (RE2).",
            (
                Param("query", "string", required=True),
                Param(
                    "path", "path", "File, directory or glob; default everything", may_be_empty=True
                ),
                Param("ignoreCase", "boolean"),
                Param("regex", "boolean"),
                Param("maxResults", "integer", "Default 100", least=1),
            ),
            self._grep,
            _READS,
        )

    def _optional(self) -> Sequence[_Spec]:
        n = self.names
        found: list[_Spec] = []
        if self.options.delete:
            told = "Delete a file; no error if there is none."
            found.append(_Spec(n.delete_file, told, (_PATH,), self._delete, _REPLACES))
        if self.options.undo:
            told = "Take back the latest change of a file, as a new version."
            found.append(_Spec(n.undo_file, told, (_PATH,), self._undo, _CHANGES))
        extra = {
            "stat": _Spec(
                n.stat_file,
                "Tell size, type, version and status of a file.",
                (_PATH,),
                self._stat,
                _READS,
            ),
            "append": _Spec(
                n.append_file,
                "Add text at the end of a text file, or create it.",
                (_PATH, Param("content", "string", required=True, may_be_empty=True), _MIME),
                self._append,
                _ADDS,
            ),
            "copy": _Spec(
                n.copy_file,
                "Copy a file or directory.",
                (
                    Param("from", "path", required=True),
                    Param("to", "path", required=True),
                    Param("overwrite", "boolean"),
                ),
                self._copy,
                _REPLACES,
            ),
            "history": _Spec(
                n.history_file,
                "List the versions of a file, newest first, of a deleted one too.",
                (_PATH, Param("limit", "integer", "Default 20", least=1)),
                self._history,
                _READS,
            ),
            "diff": _Spec(
                n.diff_file,
                "Show what changed between two versions of a file; default the latest change.",
                (_PATH, Param("from", "integer", least=1), Param("to", "integer", least=1)),
                self._diff,
                _READS,
            ),
            "finalize": _Spec(
                n.finalize_file,
                "Publish a file as it is now; later edits are drafts until this is called again.",
                (_PATH, Param("kind", "string", "What it is, e.g. report")),
                self._finalize,
                ToolAnnotations(idempotent=True),
            ),
        }
        return [*found, *(spec for name, spec in extra.items() if name in self.options.extra)]

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
