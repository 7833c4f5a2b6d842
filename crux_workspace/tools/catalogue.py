"""The tools of a workspace as data: what each is for, what it takes, and what a client may assume of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from crux_workspace.model.settings import EXTRA_TOOLS, Mount, ToolOptions
from crux_workspace.tools.arguments import Param
from crux_workspace.tools.names import workspace_tool_names
from crux_workspace.tools.toolset import ToolAnnotations

__all__ = ["Entry", "catalogued", "located", "tool_names"]

_READS = ToolAnnotations(read_only=True, idempotent=True)
_REPLACES = ToolAnnotations(destructive=True, idempotent=True)
_CHANGES = ToolAnnotations(destructive=True)
_ADDS = ToolAnnotations()
_PUBLISHES = ToolAnnotations(idempotent=True)

_PATH = Param("path", "path", required=True)
_FROM = Param("from", "path", required=True)
_TO = Param("to", "path", required=True)
_MIME = Param("mimeType", "string")


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool before it is bound to a workspace."""

    field: str
    """Of `WorkspaceToolNames`."""
    description: str
    """``{id}`` stands for the workspace's id."""
    params: tuple[Param, ...]
    annotations: ToolAnnotations


_DEFAULT = (
    Entry(
        "list",
        "List a directory of workspace '{id}', or the files a glob matches. A cursor in the result means more.",
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
        _READS,
    ),
    Entry(
        "read_file",
        "Read a file: text or JSON, a window at a time; of binary files only what they are.",
        (
            Param("path", "path", "e.g. /workspace/notes.md", required=True),
            Param("maxInlineBytes", "integer", least=1),
            Param("offset", "integer", "First byte"),
            Param("startLine", "integer", "Instead of offset; lines count from 1", least=1),
            Param("endLine", "integer", least=1),
            Param("version", "integer", "An older version", least=1),
        ),
        _READS,
    ),
    Entry(
        "write_file",
        "Create a file or replace all of it; what it held stays in its history.",
        (
            Param("path", "path", "e.g. /outputs/report.md", required=True),
            Param("content", "content", "Text, or a JSON value to store as JSON", required=True),
            _MIME,
        ),
        _REPLACES,
    ),
    Entry(
        "edit_file",
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
        _CHANGES,
    ),
    Entry(
        "rename_file",
        "Rename or move a file or directory; its history goes with it.",
        (_FROM, _TO, Param("overwrite", "boolean", "Replace what is at the destination")),
        _CHANGES,
    ),
    Entry(
        "grep",
        "Search the contents of text and JSON files, line by line; literal text, or with regex a regular expression (RE2).",
        (
            Param("query", "string", required=True),
            Param("path", "path", "File, directory or glob; default everything", may_be_empty=True),
            Param("ignoreCase", "boolean"),
            Param("regex", "boolean"),
            Param("maxResults", "integer", "Default 100", least=1),
        ),
        _READS,
    ),
)
_DELETE = Entry("delete_file", "Delete a file; no error if there is none.", (_PATH,), _REPLACES)
_UNDO = Entry(
    "undo_file", "Take back the latest change of a file, as a new version.", (_PATH,), _CHANGES
)
_EXTRA = {
    "stat": Entry("stat_file", "Tell size, type, version and status of a file.", (_PATH,), _READS),
    "append": Entry(
        "append_file",
        "Add text at the end of a text file, or create it.",
        (_PATH, Param("content", "string", required=True, may_be_empty=True), _MIME),
        _ADDS,
    ),
    "copy": Entry(
        "copy_file",
        "Copy a file or directory.",
        (_FROM, _TO, Param("overwrite", "boolean")),
        _REPLACES,
    ),
    "history": Entry(
        "history_file",
        "List the versions of a file, newest first, of a deleted one too.",
        (_PATH, Param("limit", "integer", "Default 20", least=1)),
        _READS,
    ),
    "diff": Entry(
        "diff_file",
        "Show what changed between two versions of a file; default the latest change.",
        (_PATH, Param("from", "integer", least=1), Param("to", "integer", least=1)),
        _READS,
    ),
    "finalize": Entry(
        "finalize_file",
        "Publish a file as it is now; later edits are drafts until this is called again.",
        (_PATH, Param("kind", "string", "What it is, e.g. report")),
        _PUBLISHES,
    ),
}


def catalogued(options: ToolOptions) -> Iterable[Entry]:
    """Return what the options ask for, in order."""
    yield from _DEFAULT
    if options.delete:
        yield _DELETE
    if options.undo:
        yield _UNDO
    yield from (_EXTRA[name] for name in EXTRA_TOOLS if name in options.extra)


def located(params: tuple[Param, ...], mounts: Sequence[Mount]) -> tuple[Param, ...]:
    """Return arguments whose examples lie on mounts that there are."""
    roots = [mount.path for mount in mounts]
    open_roots = [mount.path for mount in mounts if mount.access == "readwrite"] or roots
    read = "/workspace" if "/workspace" in roots else roots[0]
    written = "/outputs" if "/outputs" in open_roots else open_roots[0]

    def placed(text: str) -> str:
        return text.replace("/outputs/", f"{written}/").replace("/workspace/", f"{read}/")

    return tuple(
        replace(
            param,
            description=None if param.description is None else placed(param.description),
            example=placed(param.example),
        )
        for param in params
    )


def tool_names(options: ToolOptions) -> list[str]:
    """Return the names of the tools that the options ask for."""
    names = workspace_tool_names(options.prefix)
    return [getattr(names, entry.field) for entry in catalogued(options)]
