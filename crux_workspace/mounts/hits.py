"""What retrievers find, whatever library they are of, and which retrievers can be asked."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from crux_workspace.errors import ErrorCode, InvalidInputError, StorageError

__all__ = ["Retriever", "RetrieverHit", "RetrieverQuery", "as_retriever"]

_MAX_SEGMENT = 120
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\\%\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class RetrieverHit:
    """One chunk that a retriever found."""

    source_id: str
    """Which document it is of."""
    chunk_id: str
    """Which part of it."""
    content: str = field(repr=False)
    score: float | None = None
    metadata: dict[str, Any] | None = field(default=None, repr=False)
    source_path: str | None = None
    """Path of the document below the mount; chunks with one path become one file."""
    parent_content: str | None = field(default=None, repr=False)
    """The whole document, where the retriever has it."""
    position: int | None = None
    """Where in the document it is, for putting chunks in order; None keeps the order of the hits."""


@dataclass(frozen=True, slots=True)
class RetrieverQuery:
    """What a callable `query` is told."""

    operation: Literal["list", "read", "grep", "exists", "stat"]
    path: str | None = None
    query: str | None = None
    mount_path: str | None = None


class Retriever(Protocol):
    """What a retriever source asks; sync or async."""

    def retrieve(
        self, query: str, *, limit: int | None = None
    ) -> list[RetrieverHit] | Awaitable[list[RetrieverHit]]:
        """Return what was found, best first."""
        ...


class _Adapted:
    """A retriever of another library, or a plain callable, asked in our way."""

    def __init__(self, ask: Callable[[str, int | None], Any]) -> None:
        self._ask = ask

    def retrieve(self, query: str, *, limit: int | None = None) -> Any:  # noqa: ANN401 - hits, or what gives them
        """Return the hits; awaitable when the retriever is async."""
        found = self._ask(query, limit)
        if inspect.isawaitable(found):
            return self._awaited(found, limit)
        return _hits(found, limit)

    async def _awaited(self, found: Awaitable[Any], limit: int | None) -> list[RetrieverHit]:
        return _hits(await found, limit)


def as_retriever(retriever: Any) -> Retriever:  # noqa: ANN401 - an object of any library
    """Return what can be asked with ``retrieve(query, limit=...)``: our own protocol, LangChain's and LlamaIndex's retrievers, callables.

    Raises:
        InvalidInputError: It is none of them (``INVALID_ARGUMENT``).
    """
    if callable(getattr(retriever, "aretrieve", None)):  # LlamaIndex
        return _Adapted(lambda query, _: retriever.aretrieve(query))
    if callable(getattr(retriever, "retrieve", None)):
        return _Adapted(lambda query, limit: retriever.retrieve(query, limit=limit))
    if callable(getattr(retriever, "ainvoke", None)):  # LangChain
        return _Adapted(lambda query, _: retriever.ainvoke(query))
    if callable(retriever):
        takes_limit = _takes_limit(retriever)
        return _Adapted(
            lambda query, limit: retriever(query, limit=limit) if takes_limit else retriever(query)
        )
    raise InvalidInputError(
        f"{type(retriever).__name__} is no retriever.",
        details={"option": "retriever"},
        hint="Give an object with retrieve(query, limit=None), a LangChain or LlamaIndex retriever, or a callable.",
    )


def _takes_limit(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "limit" or p.kind is p.VAR_KEYWORD for p in parameters)


def _hits(found: object, limit: int | None) -> list[RetrieverHit]:
    if found is None:
        return []
    if isinstance(found, str | bytes | dict) or not isinstance(found, Iterable):
        raise _unusable(f"{type(found).__name__} instead of a list of hits")
    hits = [_hit(item, rank) for rank, item in enumerate(found)]
    return hits if limit is None else hits[:limit]


def _hit(item: Any, rank: int) -> RetrieverHit:  # noqa: ANN401 - a hit of any library
    if isinstance(item, RetrieverHit):
        given: tuple[object, ...] = (item.content, item.source_id, item.chunk_id)
        if not all(isinstance(part, str) for part in given):
            raise _unusable("a hit whose content, source_id or chunk_id is no str")
        maybe: tuple[object, ...] = (item.source_path, item.parent_content)
        if not all(part is None or isinstance(part, str) for part in maybe):
            raise _unusable("a hit whose source_path or parent_content is no str")
        position: object = item.position
        metadata: object = item.metadata
        if not isinstance(position, int | None) or not isinstance(metadata, dict | None):
            raise _unusable("a hit whose position is no int, or its metadata no dict")
        return item
    if isinstance(item, str):
        digest = hashlib.sha256(item.encode(errors="replace")).hexdigest()[:12]
        return RetrieverHit(source_id="text", chunk_id=digest, content=item)
    if hasattr(item, "page_content"):
        return _langchain(item, rank)
    if hasattr(item, "node"):
        return _llama_index(item)
    raise _unusable(f"a hit of type {type(item).__name__}")


def _langchain(document: Any, rank: int) -> RetrieverHit:  # noqa: ANN401 - a langchain_core Document
    metadata = dict(document.metadata or {})
    named = metadata.get("source") or metadata.get("file_path") or metadata.get("title")
    source = str(named or document.id or _digest(document.page_content))
    position = metadata.get("start_index", metadata.get("chunk", metadata.get("page")))
    return RetrieverHit(
        source_id=source,
        chunk_id=str(document.id or (position if position is not None else rank)),
        content=document.page_content,
        metadata=metadata,
        source_path=_path_of(source),
        position=position if isinstance(position, int) else None,
    )


def _llama_index(scored: Any) -> RetrieverHit:  # noqa: ANN401 - a llama_index NodeWithScore
    node = scored.node
    metadata = dict(node.metadata or {})
    named = metadata.get("file_path") or metadata.get("file_name") or metadata.get("url")
    source = str(named or getattr(node, "ref_doc_id", None) or node.node_id)
    position = getattr(node, "start_char_idx", None)
    return RetrieverHit(
        source_id=source,
        chunk_id=str(node.node_id),
        content=node.get_content(),
        score=scored.score,
        metadata=metadata,
        source_path=_path_of(source),
        position=position if isinstance(position, int) else None,
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]


def _path_of(source: str) -> str:
    """Make a path of what a document is called: a URL, a file name, an id."""
    plain = _UNSAFE.sub("-", re.sub(r"^[a-z][a-z0-9+.-]*://", "", source.partition("#")[0]))
    segments = [part.strip() for part in plain.split("/") if part.strip() not in ("", ".", "..")]
    kept = [
        part if len(part) <= _MAX_SEGMENT else f"{part[:_MAX_SEGMENT]}-{_digest(part)}"
        for part in segments
    ][-6:]
    path = "/".join(kept) or _digest(source)
    return (
        path if re.search(r"\.(?:md|txt|rst|csv|html?|json|ya?ml|py|xml)$", path) else path + ".md"
    )


def _unusable(why: str) -> StorageError:
    return StorageError(
        f"The retriever returned something unusable: {why}.",
        code=ErrorCode.SOURCE_INVALID,
        hint="Hits are RetrieverHit(source_id, chunk_id, content), or documents of LangChain or LlamaIndex.",
    )
