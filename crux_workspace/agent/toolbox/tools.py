"""The five tools over a filesystem, each behind the gate."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from msgspec import Struct

from crux_workspace.agent.files.contract import (
    DEFAULT_MAX_FILE_BYTES,
    FilesystemBackend,
    FsContext,
)
from crux_workspace.agent.files.handle import Access, WorkspaceFs
from crux_workspace.agent.permissions.front import (
    Front,
    JudgedHandler,
    denied_in_front,
    gates_in_front,
    stop_if_previewed,
)
from crux_workspace.agent.permissions.gate import PermissionGate
from crux_workspace.agent.permissions.policy import check_tool_name
from crux_workspace.agent.permissions.requests import CommandRequest, ToolRequest
from crux_workspace.agent.permissions.rules import invalid_policy
from crux_workspace.agent.shells.contract import Shell
from crux_workspace.agent.shells.local import LocalShell, local_shell
from crux_workspace.agent.shells.workspace import WorkspaceShell
from crux_workspace.agent.toolbox.arguments import (
    EditFile,
    ListDir,
    ReadFile,
    RunBash,
    WriteFile,
    read_arguments,
    schema_of,
)
from crux_workspace.agent.toolbox.editing import TextEdit
from crux_workspace.agent.toolbox.offloading import ToolOutput, offloaded
from crux_workspace.errors import ErrorCode, PermissionDeniedError, UnsupportedError
from crux_workspace.model.options import shown
from crux_workspace.tools import Tool, ToolResult, ToolSet

__all__ = ["AGENT_TOOLS", "agent_tools"]

_Work = Callable[["_Toolbox", Any, Access], Awaitable[tuple[Any, Any]]]


@dataclass(frozen=True, slots=True)
class _Toolbox:
    """What the tools work with."""

    filesystem: FilesystemBackend
    fs: WorkspaceFs
    shell: Shell | None
    gate: PermissionGate | None
    thread_id: str | None
    interruptible: bool
    offload: ToolOutput | None

    def calling(self, call_id: str | None) -> AbstractAsyncContextManager[None]:
        return self.gate.calling(call_id) if self.gate is not None else nullcontext()

    def judges(self) -> tuple[Front, ...]:
        """Return the gates before the running call: those that the tools were put behind, and their own."""
        own = () if self.gate is None else (Front(self.gate, self.thread_id),)
        return (*gates_in_front(), *own)

    async def base_of(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """Name the version of the file that a call names."""
        path = arguments.get("path")
        if not isinstance(path, str) or name not in _FILES:
            return None
        return await self.fs.base_of(path)

    async def allow_tool(self, name: str, access: Access) -> None:
        """Judge the call by the tool's name, if the policy says anything of it."""
        if self.gate is None:
            return
        arguments = access.arguments or {}
        base = await self.base_of(name, arguments) if self.gate.policy.may_ask(name) else None
        await self.gate.require(
            ToolRequest(name, arguments, base),
            thread_id=self.thread_id,
            call_id=access.call_id,
            interruptible=self.interruptible,
        )


async def _list_dir(box: _Toolbox, given: ListDir, access: Access) -> tuple[Any, Any]:
    names = await box.fs.list_as(given.path or ".", access=access)
    return names, names


async def _read_file(box: _Toolbox, given: ReadFile, access: Access) -> tuple[Any, Any]:
    if given.start_line is None and given.end_line is None:
        text = await box.fs.read_text_as(given.path, access=access)
        return text, text
    window = await box.fs.read_lines_as(given.path, given.start_line, given.end_line, access=access)
    head = f"[{given.path} lines {window.first}-{window.last} of {window.total}]"
    return f"{head}\n{window.text}", window


async def _write_file(box: _Toolbox, given: WriteFile, access: Access) -> tuple[Any, Any]:
    count = await box.fs.write_as(given.path, given.content, access=access)
    return f"wrote {count} bytes to {given.path}", count


async def _edit_file(box: _Toolbox, given: EditFile, access: Access) -> tuple[Any, Any]:
    edit = TextEdit(given.path, given.old_text, given.new_text, bool(given.replace_all))
    changed = await box.fs.edit_as(given.path, edit.apply, access=access)
    return edit.message, changed


async def _run_bash(box: _Toolbox, given: RunBash, access: Access) -> tuple[Any, Any]:
    judges = box.judges()
    if not judges:
        raise PermissionDeniedError(
            "Permission denied: commands need a permission gate, and there is none here.",
            hint="Use the file tools.",
        )
    if box.shell is None:
        raise UnsupportedError(
            "This filesystem has no shell to run commands.",
            code=ErrorCode.CAPABILITY_MISSING,
            hint="Use the file tools.",
        )
    root = box.filesystem.root
    request = CommandRequest(given.command, root)
    *outer, inner = judges
    for front in outer:
        await front.gate.refuse_denied_command(request, thread_id=front.thread_id)
    await inner.gate.require(
        request,
        thread_id=inner.thread_id,
        call_id=access.call_id,
        interruptible=box.interruptible,
    )
    stop_if_previewed()
    denied = functools.partial(denied_in_front, judges)
    result = await box.shell.run_command(given.command, FsContext(root, denied=denied))
    return result.to_tool(), result


_FILES = ("readFile", "writeFile", "editFile")


@dataclass(frozen=True, slots=True)
class _Kind:
    arguments: type[Struct]
    work: _Work
    description: str
    labels: Mapping[str, str]


_CAP = f"{DEFAULT_MAX_FILE_BYTES // 1024} KiB"
_KINDS: dict[str, _Kind] = {
    "listDir": _Kind(
        ListDir,
        _list_dir,
        "List the names in a folder of the workspace, without their folder. Leave path out for the workspace itself.",
        {"icon": "read", "running": "Listing", "done": "Listed"},
    ),
    "readFile": _Kind(
        ReadFile,
        _read_file,
        "Read a text file. startLine and endLine (from 1, inclusive) return a range under a header "
        "'[path lines a-b of N]'. One call returns at most "
        f"{_CAP}: read larger files in ranges, and change them with editFile.",
        {"icon": "read", "running": "Reading", "done": "Read"},
    ),
    "writeFile": _Kind(
        WriteFile,
        _write_file,
        "Write a whole text file; missing folders are made, what was there is replaced. To change part of an "
        "existing file prefer editFile.",
        {"icon": "write", "running": "Saving", "done": "Saved"},
    ),
    "editFile": _Kind(
        EditFile,
        _edit_file,
        "Replace text in a file. oldText must match exactly, white space and line ends included, and occur once "
        "(overlapping matches count); replaceAll replaces every occurrence from left to right without overlap. "
        f"UTF-8 files only, local ones up to {_CAP}. Fails without writing if the file changed meanwhile.",
        {"icon": "write", "running": "Editing", "done": "Edited"},
    ),
    "runBash": _Kind(
        RunBash,
        _run_bash,
        "Run a bash command in the workspace and get its output and exit code. It needs an allow rule or a person's approval.",
        {"icon": "run", "running": "Running", "done": "Ran"},
    ),
}
AGENT_TOOLS = tuple(_KINDS)
"""Names of the five tools, in order."""


def agent_tools(
    filesystem: FilesystemBackend,
    *,
    shell: Shell | None = None,
    gate: PermissionGate | None = None,
    thread_id: str | None = None,
    interruptible: bool = True,
    offload: ToolOutput | None = ToolOutput(),  # noqa: B008 - frozen
    allow: Iterable[str] | None = None,
    deny: Iterable[str] = (),
) -> ToolSet:
    """Return listDir, readFile, writeFile, editFile and runBash over a filesystem.

    Args:
        filesystem: Where the files are.
        shell: Runs commands; None is a plain one. Over a workspace a local shell runs them in a checkout, which is committed.
        gate: Judges every call. Without one, what is inside the root runs, everything else and runBash is denied.
        thread_id: Thread that the calls belong to.
        interruptible: Whether a call may pause for a person.
        offload: When long results go to files; None never does.
        allow: Only these tools.
        deny: Not these tools; without writeFile there is no editFile, unless `allow` names it.

    Returns:
        The tools.

    Raises:
        InvalidInputError: A name that is none of the five, or ``task`` (``POLICY_INVALID``).
    """
    box = _Toolbox(
        filesystem,
        WorkspaceFs(
            filesystem,
            gate=gate,
            thread_id=thread_id,
            interruptible=interruptible,
            follows=True,
        ),
        _shell_of(filesystem, shell),
        gate,
        thread_id,
        interruptible,
        offload,
    )
    names = _offered(allow, deny, gate)
    return ToolSet(_tool(box, name) for name in names)


def _shell_of(filesystem: FilesystemBackend, given: Shell | None) -> Shell | None:
    """Return what runs commands: in the filesystem's folder, or in a checkout of its workspace, never in a folder of that name."""
    ws = getattr(filesystem, "ws", None)
    if ws is not None and (given is None or isinstance(given, LocalShell)):
        return WorkspaceShell(ws, given or local_shell())
    if given is None and getattr(filesystem, "is_local_folder", False):
        return local_shell()
    return given


def _offered(
    allow: Iterable[str] | None, deny: Iterable[str], gate: PermissionGate | None
) -> list[str]:
    wanted = None if allow is None else _known_tools("allow", allow)
    withheld = _known_tools("deny", deny)
    if gate is not None and gate.mode != "bypass":
        withheld |= set(gate.policy.denied["tool"])
    if "writeFile" in withheld and not (wanted is not None and "editFile" in wanted):
        withheld.add("editFile")
    return [name for name in _KINDS if name not in withheld and (wanted is None or name in wanted)]


def _known_tools(option: str, names: object) -> set[str]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise invalid_policy(f"{option} must be a list of tools' names.", option=option)
    return {_known(name) for name in names}


def _known(name: str) -> str:
    check_tool_name(name)
    if name not in _KINDS:
        raise invalid_policy(
            f"There is no tool {shown(name)}; there are {', '.join(_KINDS)}.", tool=name
        )
    return name


def _tool(box: _Toolbox, name: str) -> Tool:
    kind = _KINDS[name]

    async def handle(arguments: Mapping[str, Any], call_id: str | None) -> ToolResult:
        given = read_arguments(kind.arguments, name, arguments)
        access = Access(call_id, {"tool": name, **arguments})
        async with box.calling(call_id):
            await box.allow_tool(name, Access(call_id, arguments))
            output, value = await kind.work(box, given, access)
        result = ToolResult.success(output, value)
        if box.offload is None:
            return result
        shown = await offloaded(
            output, box.filesystem, tool=name, call_id=call_id, options=box.offload
        )
        return replace(result, output=shown)

    return Tool(
        name,
        kind.description,
        schema_of(kind.arguments),
        JudgedHandler(handle),
        kind.labels,
        base=functools.partial(box.base_of, name),
    )
