"""What an annotation says: the library's types, classes of the folder, and who a parameter is injected by."""

from __future__ import annotations

import ast

from crux_workspace.index.evaluating import evaluate
from crux_workspace.index.program import Frame
from crux_workspace.index.texts import last_name
from crux_workspace.index.types import objects_of
from crux_workspace.index.values import EMPTY, Handle, Instance, Values, collection, joined, one

__all__ = ["annotated", "completed"]

_MAX_DEPTH = 8
_WRAPPERS = frozenset({"Optional", "Annotated", "Union", "Final", "ClassVar", "Mapped", "InitVar"})
_CONTAINERS = frozenset(
    {"list", "List", "Sequence", "Iterable", "tuple", "Tuple", "set", "Set", "dict", "Dict", "Mapping", "AsyncIterator",
     "Iterator", "Generator", "AsyncGenerator"}
)  # fmt: skip


def annotated(frame: Frame, node: ast.expr | None, depth: int = 0) -> Values:
    """Return objects of the annotated type, as far as the type matters here."""
    if node is None or depth > _MAX_DEPTH:
        return EMPTY
    parts: tuple[ast.expr | None, ...] = ()
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        parts = (_parsed(node.value),)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        parts = (node.left, node.right)
    elif isinstance(node, ast.Subscript):
        return _generic(frame, node, depth)
    elif isinstance(node, ast.Name | ast.Attribute):
        return objects_of(evaluate(frame, node))
    elif isinstance(node, ast.Call):  # Depends(...) inside Annotated
        return frozenset(v for v in evaluate(frame, node) if isinstance(v, Handle | Instance))
    return joined(*(annotated(frame, part, depth + 1) for part in parts))


def _generic(frame: Frame, node: ast.Subscript, depth: int) -> Values:
    name = last_name(node.value)
    inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    found = joined(*(annotated(frame, each, depth + 1) for each in inside[:20]))
    if name in _WRAPPERS or not found:
        return found
    return one(collection(found)) if name in _CONTAINERS else EMPTY


def _parsed(text: str) -> ast.expr | None:
    if len(text) > 500:
        return None
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def completed(values: Values, typed: Values) -> Values:
    """Return what is known, and what the annotation says where nothing is known of that sort."""
    sorts = {_sort(value) for value in values}
    return joined(values, [value for value in typed if _sort(value) not in sorts])


def _sort(value: object) -> object:
    return (type(value), value.kind) if isinstance(value, Handle) else type(value)
