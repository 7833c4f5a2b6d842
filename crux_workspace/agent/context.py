"""What an agent's code holds: files, tools, the gate, its thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from crux_workspace.agent.files.contract import FilesystemBackend
from crux_workspace.agent.files.handle import WorkspaceFs
from crux_workspace.agent.files.local import local_filesystem
from crux_workspace.agent.permissions.file_store import file_permission_store
from crux_workspace.agent.permissions.gate import PermissionGate
from crux_workspace.agent.permissions.policy import policy_from_table, toml_document
from crux_workspace.agent.permissions.rules import invalid_policy
from crux_workspace.agent.shells.contract import Shell
from crux_workspace.agent.shells.local import local_shell
from crux_workspace.agent.toolbox.offloading import ToolOutput
from crux_workspace.agent.toolbox.tools import agent_tools
from crux_workspace.errors import (
    LimitExceededError,
    PathNotFoundError,
    PermissionDeniedError,
)
from crux_workspace.model.options import needed_number, refused_option
from crux_workspace.storage.records import RecordStore
from crux_workspace.tools import ToolSet

__all__ = ["CONFIG_FILE", "PERMISSIONS_FILE", "AgentContext", "agent_context", "agent_context_from"]

_MOST_MEMORY_BYTES = 4 << 20
_CUT = "\n[cut: the memory is too long to be shown whole]"
CONFIG_FILE = "crux.toml"
PERMISSIONS_FILE = ".crux/permissions.json"


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What an agent's code is given."""

    fs: WorkspaceFs
    tools: ToolSet
    gate: PermissionGate | None
    thread_id: str | None
    filesystem: FilesystemBackend = field(repr=False)

    async def memory(self, path: str = "AGENTS.md", *, max_chars: int = 20_000) -> str | None:
        """Return the agent's memory file, which belongs into its prompt.

        Whoever may write the file writes the prompt: deny ``writeFile`` of it where that matters.

        Args:
            path: The file, relative to the workspace.
            max_chars: Most characters to return. Longer memories are cut, and end with a note, which counts.

        Returns:
            Its text; None when there is none, or reading it is denied.

        Raises:
            InvalidInputError: `max_chars` is no whole number of at least 0 (``INVALID_ARGUMENT``).
        """
        needed_number("max_chars", max_chars, least=0)
        try:
            text = await self.fs.read_file(path, max_bytes=_MOST_MEMORY_BYTES)
        except (PathNotFoundError, PermissionDeniedError):
            return None
        except LimitExceededError:
            return _CUT.strip()[:max_chars]
        if len(text) <= max_chars:
            return text
        return f"{text[: max(0, max_chars - len(_CUT))]}{_CUT}"[:max_chars]


def agent_context(
    filesystem: FilesystemBackend,
    *,
    shell: Shell | None = None,
    gate: PermissionGate | None = None,
    thread_id: str | None = None,
    interruptible: bool = True,
    offload: ToolOutput | None = ToolOutput(),  # noqa: B008 - frozen
    allow: Iterable[str] | None = None,
    deny: Iterable[str] = (),
) -> AgentContext:
    """Return files, tools and gate of one thread; the arguments are those of `agent_tools`.

    Args:
        filesystem: Where the files are.
        shell: Runs commands; None is the filesystem's own.
        gate: Judges every call, of the model and of code.
        thread_id: Thread that the calls belong to.
        interruptible: Whether a call may pause for a person.
        offload: When long results go to files; None never does.
        allow: Only these tools.
        deny: Not these tools.

    Returns:
        The context.

    Raises:
        InvalidInputError: A name that is no tool (``POLICY_INVALID``).
    """
    tools = agent_tools(
        filesystem,
        shell=shell,
        gate=gate,
        thread_id=thread_id,
        interruptible=interruptible,
        offload=offload,
        allow=allow,
        deny=deny,
    )
    fs = WorkspaceFs(filesystem, gate=gate, thread_id=thread_id, interruptible=interruptible)
    return AgentContext(fs, tools, gate, thread_id, filesystem)


def agent_context_from(
    app_root: str | Path,
    *,
    thread_id: str | None = None,
    interruptible: bool = True,
    interrupts: RecordStore | None = None,
    filesystem: FilesystemBackend | None = None,
) -> AgentContext:
    """Return the context of an application's folder, configured by its ``crux.toml``.

    The workspace is ``<app_root>/workspace``. Tools are there only when that folder exists; ``ctx.fs`` always is, and its reads find
    nothing before. Standing approvals are kept in ``<app_root>/.crux/permissions.json``.

    Args:
        app_root: The folder. ``crux.toml`` may be missing; its tables are ``permissions``, ``tools``, ``filesystem``, ``shell``,
            ``tool_output``.
        thread_id: Thread that the calls belong to.
        interruptible: Whether a call may pause for a person.
        interrupts: Where what waits is kept; None keeps it in memory.
        filesystem: Another backend; None takes the local folder.

    Returns:
        The context.

    Raises:
        InvalidInputError: The file cannot be followed (``POLICY_INVALID``).
    """
    if not isinstance(app_root, str | Path):
        raise refused_option("app_root", "a path", app_root)
    home = Path(app_root).absolute()
    config = _config(home / CONFIG_FILE)
    policy = policy_from_table(config.get("permissions", {}))
    gate = PermissionGate(
        policy, file_permission_store(home / PERMISSIONS_FILE), interrupts=interrupts
    )
    root = home / "workspace"
    backend = filesystem or _made(local_filesystem, {"root": root}, config, "filesystem")
    scope = _table(config, "tools", {"allow", "deny"})
    exists = filesystem is not None or root.is_dir()
    return agent_context(
        backend,
        shell=_made(local_shell, {}, config, "shell") if filesystem is None else None,
        gate=gate,
        thread_id=thread_id,
        interruptible=interruptible,
        offload=_made(ToolOutput, {}, config, "tool_output"),
        allow=scope.get("allow") if exists else (),
        deny=scope.get("deny", ()),
    )


def _config(path: Path) -> Mapping[str, Any]:
    return toml_document(path) if path.exists() else {}


_ENTRIES = {
    "filesystem": {"max_file_bytes"},
    "shell": {"timeout_ms", "max_output_bytes", "sandbox", "max_memory_bytes", "max_processes", "max_file_bytes", "env"},
    "tool_output": {entry.name for entry in fields(ToolOutput)},
}  # fmt: skip


def _made(make: Any, given: dict[str, Any], config: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401
    """Make something with the options of a table."""
    return make(**given, **_table(config, name, _ENTRIES[name]))


def _table(config: Mapping[str, Any], name: str, known: set[str]) -> dict[str, Any]:
    table = config.get(name, {})
    if not isinstance(table, dict) or set(table) - known:
        raise invalid_policy(f"[{name}] is a table of {', '.join(sorted(known))}.", table=name)
    return table
