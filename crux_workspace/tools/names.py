"""What the tools of a workspace are called."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crux_workspace.errors import InvalidInputError

__all__ = ["WorkspaceToolNames", "workspace_tool_names"]

_MAX_NAME = 64
"""Longest tool name that every provider takes."""


@dataclass(frozen=True, slots=True)
class WorkspaceToolNames:
    """Names of the tools that a workspace makes for a model."""

    list: str
    read_file: str
    write_file: str
    edit_file: str
    rename_file: str
    grep: str
    delete_file: str
    undo_file: str
    stat_file: str
    append_file: str
    copy_file: str
    history_file: str
    diff_file: str
    finalize_file: str


def workspace_tool_names(prefix: str | None = None) -> WorkspaceToolNames:
    """Return what the tools of a workspace are called, for matching them in middleware.

    Args:
        prefix: Put before ``Workspace`` in PascalCase: ``research`` makes ``readResearchWorkspaceFile``.

    Returns:
        The names, of tools that are not enabled too.

    Raises:
        InvalidInputError: A prefix that is no str, or makes names longer than 64 characters (``INVALID_ARGUMENT``).

    Cost:
        none

    Example:
        >>> workspace_tool_names(prefix="research").read_file
        'readResearchWorkspaceFile'
    """
    given: object = prefix
    if given is not None and not isinstance(given, str):
        raise InvalidInputError("prefix must be a str or None.", details={"option": "prefix"})
    words = re.split(r"[^A-Za-z0-9]+", prefix or "")
    noun = "".join(word[:1].upper() + word[1:] for word in words) + "Workspace"
    names = WorkspaceToolNames(
        list=f"list{noun}",
        read_file=f"read{noun}File",
        write_file=f"write{noun}File",
        edit_file=f"edit{noun}File",
        rename_file=f"rename{noun}File",
        grep=f"grep{noun}",
        delete_file=f"delete{noun}File",
        undo_file=f"undo{noun}File",
        stat_file=f"stat{noun}File",
        append_file=f"append{noun}File",
        copy_file=f"copy{noun}File",
        history_file=f"history{noun}File",
        diff_file=f"diff{noun}File",
        finalize_file=f"finalize{noun}File",
    )
    if len(names.finalize_file) > _MAX_NAME:
        raise InvalidInputError(
            f"The prefix makes tool names longer than {_MAX_NAME} characters.",
            details={"option": "prefix"},
        )
    return names
