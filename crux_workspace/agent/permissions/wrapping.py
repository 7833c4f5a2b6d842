"""Any set of tools behind the gate; tools of a workspace also by the paths they name."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from crux_workspace.agent.permissions.front import JudgedHandler, standing_before, stop_if_previewed
from crux_workspace.agent.permissions.requests import ToolRequest, canonical
from crux_workspace.agent.permissions.rules import RuleSet
from crux_workspace.errors import PermissionDeniedError
from crux_workspace.tools import Tool, ToolResult, ToolSet

if TYPE_CHECKING:
    from crux_workspace.agent.permissions.gate import PermissionGate

__all__ = ["BaseOf", "PathUse", "path_uses", "refuse_denied", "wrap_tools"]

BaseOf: TypeAlias = Callable[[str, Mapping[str, Any]], "str | Awaitable[str | None] | None"]
"""Names the version that a call works on: (tool, arguments) -> version or None."""

_NAME = re.compile(
    r"(list|read|write|edit|rename|delete|undo|grep|stat|append|copy|history|diff|finalize)\w*?Workspace(?:File)?"
)
_READ, _WRITE, _BOTH = ("readFile",), ("writeFile",), ("readFile", "writeFile")
_USES: dict[str, tuple[tuple[str, tuple[str, ...], bool], ...]] = {
    "list": (("path", ("listDir",), False),),
    "read": (("path", _READ, False),),
    "stat": (("path", _READ, False),),
    "history": (("path", _READ, False),),
    "diff": (("path", _READ, False),),
    "grep": (("path", _READ, True),),
    "write": (("path", _WRITE, False),),
    "append": (("path", _WRITE, False),),
    "undo": (("path", _WRITE, False),),
    "finalize": (("path", _WRITE, False),),
    "edit": (("path", _BOTH, False),),
    "delete": (("path", _WRITE, True),),
    "rename": (("from", _BOTH, True), ("to", _WRITE, True)),
    "copy": (("from", _READ, True), ("to", _WRITE, True)),
}
_GLOB = re.compile(r"[*?\[{]")


@dataclass(frozen=True, slots=True)
class PathUse:
    """A path that a call touches."""

    keys: tuple[str, ...]
    path: str
    is_tree: bool
    """What lies below is touched too."""


def path_uses(name: str, arguments: Mapping[str, Any]) -> Iterator[PathUse]:
    """Yield the paths that a call of a workspace's tool touches: of a rename, move or copy both ends."""
    match = _NAME.fullmatch(name)
    if match is None:
        return
    for argument, keys, is_tree in _USES[match[1]]:
        given = arguments.get(argument)
        path = given if isinstance(given, str) and given else "/"
        is_glob = _GLOB.search(path)
        if is_glob:
            path = path[: is_glob.start()].rpartition("/")[0] or "/"
        yield PathUse(keys, canonical("/" + path.lstrip("/")), is_tree or is_glob is not None)


def refuse_denied(denied: RuleSet, uses: Iterable[PathUse], consequence: str = "") -> None:
    """Refuse what touches a denied path; of a whole tree, also one with a denied path in it.

    Raises:
        PermissionDeniedError: A rule covers one of them (``PERMISSION_DENIED``); `consequence` is told behind it.
    """
    for use in uses:
        for key in use.keys:
            rule = denied.path(key, use.path, folded=True)
            if rule is None and use.is_tree:
                rule = denied.path_below(key, use.path)
            if rule is not None:
                raise PermissionDeniedError(
                    f"Permission denied: {key} of {use.path} is denied by a rule{consequence}.",
                    details={"rule": rule, "path": use.path},
                    hint="Do without it, or ask for permission.",
                )


def wrap_tools(
    gate: PermissionGate, tools: Iterable[Any], thread_id: str | None, base: BaseOf | None
) -> ToolSet:
    """Return the tools, each call judged before it is made."""
    return ToolSet(_wrapped(gate, tool, thread_id, base) for tool in tools)


def _wrapped(
    gate: PermissionGate,
    tool: Any,  # noqa: ANN401 - anything like a tool
    thread_id: str | None,
    base: BaseOf | None,
) -> Tool:
    ends_previews = isinstance(getattr(tool, "handler", None), JudgedHandler)

    async def handle(arguments: Mapping[str, Any], call_id: str | None) -> ToolResult:
        async with gate.calling(call_id):
            await gate.require_paths(list(path_uses(tool.name, arguments)), thread_id=thread_id)
            await _refuse_withheld(gate, tool.name, thread_id)
            version = await _version(gate, tool, arguments, base)
            request = ToolRequest(tool.name, arguments, version)
            await gate.require(request, thread_id=thread_id, call_id=call_id)
            if not ends_previews:
                stop_if_previewed()
            with standing_before(gate, thread_id):
                result: ToolResult = await tool.call(arguments, call_id=call_id)
            if result.interrupt is not None:
                await gate.give_back()
        return result

    if isinstance(tool, Tool):
        return replace(tool, handler=JudgedHandler(handle))
    return Tool(tool.name, tool.description, tool.parameters, JudgedHandler(handle))


async def _refuse_withheld(gate: PermissionGate, name: str, thread_id: str | None) -> None:
    """Refuse editFile where writeFile is denied and editFile is not allowed by its name."""
    if name != "editFile" or "editFile" in gate.policy.allowed["tool"]:
        return
    rule = (await gate.denied_rules(thread_id)).exact("tool", "writeFile")
    if rule is not None:
        raise PermissionDeniedError(
            "Permission denied: tool editFile is withheld, because writeFile is denied by a rule.",
            details={"rule": rule},
            hint="Do without it, or ask for permission.",
        )


async def _version(
    gate: PermissionGate,
    tool: Any,  # noqa: ANN401 - anything like a tool
    arguments: Mapping[str, Any],
    base: BaseOf | None,
) -> str | None:
    """Name the version that a call works on, where somebody may be asked about it."""
    if not gate.policy.may_ask(tool.name):
        return None
    if base is not None:
        found = base(tool.name, arguments)
        return await found if isinstance(found, Awaitable) else found
    own = getattr(tool, "base", None)
    named: str | None = None if own is None else await own(arguments)
    return named
