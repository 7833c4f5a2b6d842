"""A workspace as a LangGraph store; needs the extra ``langgraph``.

An item is a JSON file: its namespace is the directory, its key the name. So what an agent remembers has versions, a log and an undo, and
people can read it. There are no vectors: a query ranks by the words that an item holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from crux_workspace.model.extras import need_extra

need_extra("langgraph", "langgraph")

from langgraph.store.base import (  # noqa: E402 - after the extra was asked for
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from crux_workspace.api.facade import Workspace  # noqa: E402
from crux_workspace.api.sync_facade import SyncWorkspace  # noqa: E402
from crux_workspace.api.transaction import Transaction  # noqa: E402
from crux_workspace.errors import InvalidInputError  # noqa: E402
from crux_workspace.integrations.bridging import Bridge  # noqa: E402
from crux_workspace.model.contents import JsonContent  # noqa: E402
from crux_workspace.model.files import WorkspaceFile  # noqa: E402
from crux_workspace.model.jsontext import dump_compact  # noqa: E402
from crux_workspace.model.paths import normalise  # noqa: E402
from crux_workspace.model.sendable import writable  # noqa: E402

__all__ = ["WorkspaceStore"]

_SUFFIX = ".json"
_PAGE = 256


class WorkspaceStore(BaseStore):
    """Keeps items as JSON files below one directory of a workspace. All puts of a batch are one commit."""

    supports_ttl = False
    __slots__ = ("_bridge", "_root", "_ws")

    def __init__(
        self,
        workspace: Workspace | SyncWorkspace,
        *,
        root: str = "/workspace/store",
        namespace: str | None = None,
    ) -> None:
        """Make a store.

        Args:
            workspace: An open workspace; with a blocking one, graphs may run synchronously too.
            root: Directory that holds the items, on a mount that the workspace keeps itself.
            namespace: Work in this namespace of the workspace.

        Raises:
            InvalidInputError: No workspace, or a bad path or namespace (``INVALID_ARGUMENT``, ``INVALID_PATH``).
        """
        self._bridge = Bridge(workspace)
        ws = self._bridge.ws
        self._ws = ws if namespace is None else ws.for_namespace(namespace)
        self._root = normalise(root)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations from a thread that does not run the workspace's loop."""
        listed = list(ops)
        return self._bridge.waited(lambda: self._batch(listed))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: reads see what was there before, then all puts are one commit, the last of a key counts."""
        listed = list(ops)
        return await self._bridge.awaited(lambda: self._batch(listed))

    async def _batch(self, ops: list[Op]) -> list[Result]:
        results: list[Result] = []
        puts: dict[str, PutOp] = {}
        for op in ops:
            validate_op_namespace(op)
            if isinstance(op, GetOp):
                results.append(await self._get(op))
            elif isinstance(op, SearchOp):
                results.append([*await self._search(op)])
            elif isinstance(op, ListNamespacesOp):
                results.append(await self._namespaces(op))
            else:
                puts.pop(self._path(op.namespace, op.key), None)
                puts[self._path(op.namespace, op.key)] = op
                results.append(None)
        if puts:

            async def put_all(tx: Transaction) -> None:
                for path, op in puts.items():
                    if op.value is None:
                        await tx.delete(path)
                    else:
                        await tx.write(path, dict(op.value))

            await self._ws.transaction(put_all, max_attempts=10)
        return results

    # -- where an item is

    def _directory(self, namespace: Sequence[str]) -> str:
        return "/".join([self._root, *(_segment(label) for label in namespace)])

    def _path(self, namespace: Sequence[str], key: str) -> str:
        return f"{self._directory(namespace)}/{_segment(key)}{_SUFFIX}"

    def _place(self, path: str) -> tuple[tuple[str, ...], str]:
        *labels, name = path[len(self._root) + 1 :].split("/")
        return tuple(_plain(label) for label in labels), _plain(name.removesuffix(_SUFFIX))

    def _item(self, file: WorkspaceFile, value: dict[str, Any]) -> Item:
        namespace, key = self._place(file.path)
        return Item(
            value=value,
            key=key,
            namespace=namespace,
            created_at=_time(file.created_at),
            updated_at=_time(file.updated_at),
        )

    # -- reading

    async def _get(self, op: GetOp) -> Item | None:
        path = self._path(op.namespace, op.key)
        content = (await self._ws.read_many([path]))[path]
        file = await self._ws.stat(path)
        if file is None or not isinstance(content, JsonContent):
            return None
        return self._item(file, content.content)

    async def _items(self, prefix: Sequence[str]) -> list[Item]:
        found: list[Item] = []
        waiting: list[WorkspaceFile] = []

        async def read() -> None:
            contents = await self._ws.read_many([file.path for file in waiting])
            for file in waiting:
                content = contents[file.path]
                if isinstance(content, JsonContent) and isinstance(content.content, dict):
                    found.append(self._item(file, content.content))
            waiting.clear()

        async for file in self._ws.walk(self._directory(prefix)):
            if file.content_kind == "json" and file.path.endswith(_SUFFIX):
                waiting.append(file)
            if len(waiting) == _PAGE:
                await read()
        await read()
        return found

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        matches = [item for item in await self._items(op.namespace_prefix) if _passes(item, op)]
        scored: list[tuple[float | None, Item]] = [(None, item) for item in matches]
        if op.query and op.query.strip():
            words = op.query.casefold().split()
            scored = [(_score(item, words), item) for item in matches]
            scored.sort(key=lambda pair: -(pair[0] or 0))
        return [
            SearchItem(
                namespace=item.namespace,
                key=item.key,
                value=item.value,
                created_at=item.created_at,
                updated_at=item.updated_at,
                score=score,
            )
            for score, item in scored[op.offset : op.offset + op.limit]
        ]

    async def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found: set[tuple[str, ...]] = set()
        async for file in self._ws.walk(self._root):
            namespace, _ = self._place(file.path)
            if namespace and all(_matches(c, namespace) for c in op.match_conditions or ()):
                found.add(namespace[: op.max_depth])
        return sorted(found)[op.offset : op.offset + op.limit]


def _segment(label: str) -> str:
    """Make one segment of a path of a label or key; what a name cannot hold is escaped by ``~``."""
    given: object = label
    if not isinstance(given, str) or not given:
        raise InvalidInputError("Keys and labels must be strings that are not empty.")
    if writable(label) != label:
        raise InvalidInputError("Keys and labels must be text without lone surrogates.")
    escaped = quote(label, safe=" ").replace("~", "~7E").replace("%", "~")
    return escaped if escaped.strip(". ") else escaped.replace(".", "~2E").replace(" ", "~20")


def _plain(segment: str) -> str:
    return unquote(segment.replace("~", "%"))


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, wanted: bool(value == wanted),
    "$ne": lambda value, wanted: bool(value != wanted),
    "$gt": lambda value, wanted: float(value) > float(wanted),
    "$gte": lambda value, wanted: float(value) >= float(wanted),
    "$lt": lambda value, wanted: float(value) < float(wanted),
    "$lte": lambda value, wanted: float(value) <= float(wanted),
}


def _passes(item: Item, op: SearchOp) -> bool:
    return all(_agrees(item.value.get(name), wanted) for name, wanted in (op.filter or {}).items())


def _agrees(value: Any, wanted: Any) -> bool:  # noqa: ANN401 - JSON values
    """Compare as LangGraph's own stores do: operators, nested objects, lists item by item."""
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return all(_operated(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, dict) and all(
            _agrees(value.get(name), part) for name, part in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(_agrees(v, w) for v, w in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _operated(value: Any, operator: str, operand: Any) -> bool:  # noqa: ANN401 - JSON values
    if operator not in _OPERATORS:
        raise ValueError(f"Unsupported operator: {operator}")
    try:
        return _OPERATORS[operator](value, operand)
    except (TypeError, ValueError, OverflowError):
        return False


def _score(item: Item, words: list[str]) -> float:
    text = dump_compact(item.value).decode().casefold()
    return sum(word in text for word in words) / len(words)


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
