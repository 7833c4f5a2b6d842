"""What the library promises to keep: every exported name with its signature, as text.

``make snapshot`` rewrites ``public_api.txt``; its diff is what a reviewer judges.
"""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pathlib import Path

from msgspec import Struct, structs

PUBLIC = (
    "crux_workspace",
    "crux_workspace.agent",
    "crux_workspace.errors",
    "crux_workspace.http",
    "crux_workspace.index",
    "crux_workspace.inspector",
    "crux_workspace.mounts",
    "crux_workspace.server",
    "crux_workspace.storage",
    "crux_workspace.telemetry",
    "crux_workspace.testing",
    "crux_workspace.tools",
    "storage_adapters",
    "storage_adapters.journaled",
    "storage_adapters.local_files",
    "storage_adapters.object_stores",
    "storage_adapters.s3",
    "storage_adapters.sql",
)
"""Modules whose ``__all__`` is public."""

SNAPSHOT = Path(__file__).with_name("public_api.txt")


def exports() -> Iterator[tuple[str, str, object]]:
    """Yield module, name and object of everything public."""
    for module_name in PUBLIC:
        module = import_module(module_name)
        for name in sorted(module.__all__):
            yield module_name, name, getattr(module, name)


WHOLE = {"WorkspaceContract", "WorkspaceMachine"}
"""Classes to derive from whose methods are checks: pytest and Hypothesis call them, users don't."""


def signature(call: object) -> str:
    """Return a signature with the defaults that users can tell apart."""
    try:
        text = str(inspect.signature(call))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(...)"
    text = re.sub(r"<object object at 0x[0-9a-f]+>", "...", text)
    return re.sub(r"<(?:function|class) '?([\w.]+)'?(?: at 0x[0-9a-f]+)?>", r"\1", text)


def members(kind: type) -> Iterator[tuple[str, object]]:
    """Yield the public attributes of a class of ours, its ancestors' included."""
    found: dict[str, object] = {}
    if kind.__name__ in WHOLE:
        return
    for ancestor in reversed(kind.__mro__):
        if ancestor.__module__.startswith(("crux_workspace", "storage_adapters")):
            found.update(vars(ancestor))
    for name, value in sorted(found.items()):
        if not name.startswith("_"):
            yield name, value


def _fields(kind: type) -> Iterator[tuple[str, str]]:
    """Yield (name, type and whether it may be left out) of the fields of a dataclass or a struct."""
    if is_dataclass(kind):
        for field in fields(kind):
            optional = field.default is not MISSING or field.default_factory is not MISSING
            yield field.name, f"{field.type}{' = ...' if optional else ''}"
    elif issubclass(kind, Struct):
        for part in structs.fields(kind):
            yield part.name, f"{kind.__annotations__[part.name]}{'' if part.required else ' = ...'}"


def _class_lines(kind: type) -> Iterator[str]:
    ours = [base.__name__ for base in kind.__bases__ if base is not object]
    yield f"class {kind.__name__}({', '.join(ours)})"
    if issubclass(kind, enum.Enum):
        yield from (f"    {member.name} = {member.value!r}" for member in kind)
        return
    named = {name for name, _ in _fields(kind)}
    yield from (f"    {name}: {spelled}" for name, spelled in _fields(kind))
    if not named and "__init__" in vars(kind):
        yield f"    __init__{signature(vars(kind)['__init__'])}"
    for name, value in members(kind):
        if name in named:
            continue
        if isinstance(value, property):
            yield f"    {name}: property{signature(value.fget).partition(')')[2]}"
        elif isinstance(value, classmethod | staticmethod):
            yield f"    {type(value).__name__} {name}{signature(value.__func__)}"
        elif callable(value):
            waits = inspect.iscoroutinefunction(value)
            yield f"    {'async ' if waits else ''}{name}{signature(value)}"


def surface() -> str:
    """Return the whole public surface as text."""
    lines: list[str] = []
    current = ""
    for module_name, name, value in exports():
        if module_name != current:
            current = module_name
            lines += ["", f"# {module_name}", ""]
        if inspect.isclass(value):
            lines += _class_lines(value)
        elif callable(value):
            lines.append(f"{name}{signature(value)}")
        else:
            lines.append(f"{name}: {type(value).__name__}")
    return "\n".join(lines).lstrip() + "\n"


if __name__ == "__main__":
    SNAPSHOT.write_text(surface(), encoding="utf-8")
