"""Large tool results go to a file below the workspace; the model gets a bounded preview."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from crux_workspace.agent.files.contract import FilesystemBackend, FsContext, Pin, method_of
from crux_workspace.agent.files.handle import TOOL_OUTPUTS
from crux_workspace.agent.permissions.requests import covers
from crux_workspace.errors import InvalidInputError, PermissionDeniedError, WorkspaceError
from crux_workspace.model.options import MOST, needed_number

__all__ = ["EXEMPT", "ToolOutput", "offload_tool_output", "offloaded"]

EXEMPT = ("readFile", "listDir")
"""Tools whose results are never offloaded: they are bounded already."""
_log = logging.getLogger("crux_workspace.agent.offload")
_last_collection: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """When results are offloaded, and how long they are kept."""

    threshold_chars: int = 40_000
    """Longer results are offloaded."""
    preview_lines: int = 10
    preview_chars: int = 4_000
    max_bytes: int = 268_435_456
    """Most that is kept; the oldest go first, by last use."""
    ttl_ms: int = 10_800_000
    gc_throttle_ms: int = 10_000
    """Least time between two collections; what is younger is never collected."""
    exempt: Sequence[str] | Set[str] = ()
    """Further tools whose results stay whole."""

    def __post_init__(self) -> None:
        for option in (
            "threshold_chars",
            "preview_lines",
            "preview_chars",
            "max_bytes",
            "ttl_ms",
            "gc_throttle_ms",
        ):
            needed_number(option, getattr(self, option), least=0, most=MOST)
        given: object = self.exempt
        if isinstance(given, str) or not isinstance(given, Sequence | Set):
            raise InvalidInputError(
                "exempt must be a list of tools' names.", details={"option": "exempt"}
            )


async def offloaded(
    output: Any,  # noqa: ANN401 - JSON
    filesystem: FilesystemBackend,
    *,
    tool: str,
    call_id: str | None,
    options: ToolOutput,
) -> Any:  # noqa: ANN401 - JSON
    """Return a tool's output, or the stub that stands for it when it is too long."""
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    stub = await offload_tool_output(text, filesystem, tool=tool, call_id=call_id, options=options)
    return output if stub is text else stub


async def offload_tool_output(
    text: str,
    filesystem: FilesystemBackend,
    *,
    tool: str,
    call_id: str | None = None,
    options: ToolOutput | None = None,
) -> str:
    """Save a long text below ``tool-outputs/`` and return a stub with a preview of it.

    The file's name comes from the tool and the call, so a repeated call writes it again, and no other one does. Writing passes no
    gate: it goes to that folder of the workspace and nowhere else; when that is not possible, the text itself is returned.

    Args:
        text: The result.
        filesystem: Where the workspace is.
        tool: Name of the tool.
        call_id: The model's id of the call; without one the content names the file.
        options: Limits; None takes the defaults.

    Returns:
        The text as it is when it is short enough, its tool is exempt (`readFile` and `listDir` always are) or it could not be saved,
        else the stub.
    """
    chosen = options or ToolOutput()
    if len(text) <= chosen.threshold_chars or tool in (*EXEMPT, *chosen.exempt):
        return text
    name = _name(tool, call_id or _digest(text)[:16])
    try:
        await _save(filesystem, name, text)
    except (WorkspaceError, OSError, UnicodeEncodeError) as error:
        _log.warning("a tool result could not be offloaded: %s", type(error).__name__)
        return text
    await _collect(filesystem, name, chosen)
    return _stub(text, f"{TOOL_OUTPUTS}/{name}", chosen)


def _name(tool: str, identity: str) -> str:
    """Return the name of a result's file: tool and call; a hash keeps calls apart whose names are not told as they are."""
    name = f"{_safe(tool)[:80]}-{_safe(identity)[:80]}"
    if name != f"{tool}-{identity}" or "-" in tool:
        name += f"-{_digest(json.dumps([tool, identity]))[:12]}"
    return f"{name}.txt"


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


async def _save(filesystem: FilesystemBackend, name: str, text: str) -> None:
    folder, ctx = await _folder(filesystem)
    path = f"{folder}/{name}"
    pin = method_of(filesystem, "pin")
    if pin is None:
        if await filesystem.real_path(path, ctx) != path:
            raise PermissionDeniedError("The folder of tool results leads elsewhere.")
        await filesystem.write_file(path, text, ctx)
        return
    held: Pin = await pin(path, ctx)
    try:
        if held.path != path or held.is_shared:
            raise PermissionDeniedError("The folder of tool results leads elsewhere.")
        await filesystem.write_file(path, text, ctx.pinned(held))
    finally:
        held.close()


async def _folder(filesystem: FilesystemBackend) -> tuple[str, FsContext]:
    """Return where tool results are, by the root's real path."""
    ctx = FsContext(filesystem.root)
    root = await filesystem.real_path(filesystem.root, ctx)
    return f"{root.rstrip('/')}/{TOOL_OUTPUTS}", FsContext(root)


def _stub(text: str, path: str, options: ToolOutput) -> str:
    lines = _pretty(text).split("\n")[: options.preview_lines]
    shown = "\n".join(lines)
    cut = len(shown) > options.preview_chars
    preview = shown[: options.preview_chars] + ("…" if cut else "")
    return (
        f"[Tool output offloaded: {len(text):,} characters, more than the limit of {options.threshold_chars:,}.\n"
        f"Full output saved to: {path}\n"
        f"Preview (first {len(lines)} lines):\n"
        f"{preview}\n"
        "Read the rest with readFile and that path, in ranges if need be.]"
    )


def _pretty(text: str) -> str:
    """Return JSON spread over lines, so that the preview of one giant line shows something."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


# -- collection


async def _collect(filesystem: FilesystemBackend, fresh: str, options: ToolOutput) -> None:
    """Remove results that are too old or too many; never the one just written, and none that is fresh."""
    now = time.monotonic()
    last = _last_collection.get(filesystem)
    if last is not None and (now - last) * 1000 < options.gc_throttle_ms:
        return
    _last_collection[filesystem] = now
    tell, remove = method_of(filesystem, "stat_file"), method_of(filesystem, "remove_file")
    if tell is None or remove is None:
        return
    with suppress(WorkspaceError, OSError):
        await _remove_old(filesystem, fresh, options)


async def _remove_old(filesystem: FilesystemBackend, fresh: str, options: ToolOutput) -> None:
    folder, ctx = await _folder(filesystem)
    if await filesystem.real_path(folder, ctx) != folder:
        return
    found: list[tuple[int, int, str]] = []
    for name in await filesystem.list_dir(folder, ctx):
        with suppress(WorkspaceError, OSError):
            told = await method_of(filesystem, "stat_file")(f"{folder}/{name}", ctx)
            if told.kind == "file" and told.mtime_ms is not None:
                found.append((told.mtime_ms, told.size, name))
    now = time.time_ns() // 1_000_000
    left = sum(size for _, size, _ in found)
    for mtime, size, name in sorted(found):
        is_young = name == fresh or now - mtime < options.gc_throttle_ms
        if is_young or (now - mtime <= options.ttl_ms and left <= options.max_bytes):
            continue
        if await _removed(filesystem, f"{folder}/{name}", folder, ctx):
            left -= size


async def _removed(filesystem: FilesystemBackend, path: str, folder: str, ctx: FsContext) -> bool:
    remove, pin = method_of(filesystem, "remove_file"), method_of(filesystem, "pin")
    try:
        if pin is None:
            await remove(path, ctx)
            return True
        held: Pin = await pin(path, ctx)
        try:
            if held.path != path or not covers(folder, held.path):
                return False
            await remove(path, ctx.pinned(held))
        finally:
            held.close()
    except (WorkspaceError, OSError):
        return False
    return True
