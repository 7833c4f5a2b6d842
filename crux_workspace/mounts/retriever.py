"""A mount whose files are what a retriever finds; read-only."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from crux_workspace.errors import ErrorCode, InvalidInputError, InvalidPathError, StorageError
from crux_workspace.model.contents import TextContent
from crux_workspace.model.files import ListResult, WorkspaceFile
from crux_workspace.model.globs import compile_glob, has_glob
from crux_workspace.model.jsontext import check_json
from crux_workspace.model.labels import check_label
from crux_workspace.model.matching import GrepMatch, compile_query
from crux_workspace.model.options import refused_option, whole_number
from crux_workspace.model.paths import is_at_or_below, is_below, normalise, sort_key
from crux_workspace.model.searches import GrepResult
from crux_workspace.model.sources import (
    MountGrepOptions,
    MountListOptions,
    MountPathOptions,
    MountReadOptions,
)
from crux_workspace.mounts.hits import RetrieverHit, RetrieverQuery, as_retriever

__all__ = ["RetrieverSource", "retriever_workspace_mount_source"]

QuerySetting: TypeAlias = "str | Callable[[RetrieverQuery], str | Awaitable[str]] | None"
_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class _Found:
    """The chunks of one path as one file."""

    path: str
    text: str
    mime_type: str
    metadata: dict[str, Any]

    def file(self) -> WorkspaceFile:
        return WorkspaceFile(
            path=self.path,
            mime_type=self.mime_type,
            size=len(self.text.encode()),
            metadata=self.metadata,
        )


class RetrieverSource:
    """Shows what a retriever finds as files: hits of one path, e.g. several chunks of one document, are one file.

    What a file is found by: a search by its own words, everything else by `query`, else by the path. A path that was shown lately can
    be read although another query finds it no longer.
    """

    kind = "retriever"

    def __init__(
        self,
        retriever: Any,  # noqa: ANN401 - a retriever of any library
        query: QuerySetting = None,
        limit: int | None = None,
        path_for_hit: Callable[[RetrieverHit], str] | None = None,
        content_for_hit: Callable[[RetrieverHit], str] | None = None,
        mime_type: str | Callable[[RetrieverHit], str] | None = None,
    ) -> None:
        whole_number("limit", limit, least=1)
        for name, value in (("path_for_hit", path_for_hit), ("content_for_hit", content_for_hit)):
            if value is not None and not callable(value):
                raise refused_option(name, "a function of a hit, or None", value)
        given: object = query
        if given is not None and not isinstance(given, str) and not callable(given):
            raise refused_option("query", "a str, a function of a RetrieverQuery, or None", given)
        if mime_type is not None and not callable(mime_type):
            check_label("mime_type", mime_type)
        self._retriever = as_retriever(retriever)
        self._query = query
        self._limit = limit
        self._path_for_hit = path_for_hit
        self._content_for_hit = content_for_hit
        self._mime_type = mime_type
        self._shown: OrderedDict[str, _Found] = OrderedDict()
        self._lock = threading.Lock()

    def list(self, path: str, options: MountListOptions) -> Any:  # noqa: ANN401 - a result, or what gives it
        """List the files found at or below a directory, or that a glob matches: all at once, for asking again may find others."""
        covers = _scope(path)

        def listed(files: dict[str, _Found]) -> ListResult:
            return ListResult([found.file() for where, found in files.items() if covers(where)])

        return self._find("list", path, None, options.mount_path, listed)

    def read(self, path: str, options: MountReadOptions) -> Any:  # noqa: ANN401
        """Return the chunks of a file, joined."""

        def content(files: dict[str, _Found]) -> TextContent | None:
            found = files.get(path) or self._shown.get(path)
            if found is None:
                return None
            return TextContent(
                path=path,
                content=found.text,
                mime_type=found.mime_type,
                metadata=found.metadata,
            )

        return self._find("read", path, None, options.mount_path, content)

    def stat(self, path: str, options: MountPathOptions) -> Any:  # noqa: ANN401
        """Return what is known of a file."""

        def file(files: dict[str, _Found]) -> WorkspaceFile | None:
            found = files.get(path) or self._shown.get(path)
            return None if found is None else found.file()

        return self._find("stat", path, None, options.mount_path, file)

    def exists(self, path: str, options: MountPathOptions) -> Any:  # noqa: ANN401
        """Tell whether a file is found."""

        def there(files: dict[str, _Found]) -> bool:
            return path in files or path in self._shown

        return self._find("exists", path, None, options.mount_path, there)

    def grep(self, query: str, options: MountGrepOptions) -> Any:  # noqa: ANN401
        """Retrieve by the words of the search, and search what was found line by line."""
        compiled = compile_query(query, ignore_case=options.ignore_case, regex=options.regex)
        covers = _scope(options.path or options.mount_path)

        def searched(files: dict[str, _Found]) -> GrepResult:
            matches: list[GrepMatch] = []
            for where, found in files.items():
                if covers(where):
                    left = options.max_results + 1 - len(matches)
                    matches += compiled.search(found.text, path=where, limit=left)
            most = options.max_results
            return GrepResult(matches[:most], len(matches) > most)

        return self._find("grep", options.path, query, options.mount_path, searched)

    # -- retrieving

    def _find(
        self,
        operation: Literal["list", "read", "grep", "exists", "stat"],
        path: str | None,
        query: str | None,
        mount_path: str,
        then: Callable[[dict[str, _Found]], Any],
    ) -> Any:  # noqa: ANN401 - a result, or what gives it when the retriever or the query is async
        asked = self._asked(RetrieverQuery(operation, path, query, mount_path))
        if inspect.isawaitable(asked):
            return self._find_later(asked, mount_path, then)
        found = self._retriever.retrieve(asked, limit=self._limit)
        if inspect.isawaitable(found):
            return self._joined_later(found, mount_path, then)
        return then(self._joined(found, mount_path))

    def _asked(self, request: RetrieverQuery) -> Any:  # noqa: ANN401 - str or what gives it
        if request.operation == "grep" and request.query:
            return request.query
        if callable(self._query):
            return self._query(request)
        return self._query if self._query is not None else request.query or request.path or ""

    async def _find_later(
        self, asked: Awaitable[str], mount_path: str, then: Callable[[dict[str, _Found]], Any]
    ) -> Any:  # noqa: ANN401
        query = await asked
        found = await asyncio.to_thread(self._retriever.retrieve, query, limit=self._limit)
        hits: Any = await found if inspect.isawaitable(found) else found
        return then(self._joined(hits, mount_path))

    async def _joined_later(
        self,
        found: Awaitable[builtins.list[RetrieverHit]],
        mount_path: str,
        then: Callable[[dict[str, _Found]], Any],
    ) -> Any:  # noqa: ANN401
        return then(self._joined(await found, mount_path))

    def _joined(self, hits: builtins.list[RetrieverHit], mount_path: str) -> dict[str, _Found]:
        """Make files of hits: those of one path are joined, each chunk once, in the order of the document."""
        by_path: dict[str, builtins.list[RetrieverHit]] = {}
        for hit in hits:
            by_path.setdefault(self._place(hit, mount_path), []).append(hit)
        files: dict[str, _Found] = {}
        for path in sorted(by_path, key=sort_key):
            files[path] = self._file(path, by_path[path])
        with self._lock:
            for path, found in files.items():
                self._shown[path] = found
                self._shown.move_to_end(path)
            while len(self._shown) > _REMEMBERED:
                self._shown.popitem(last=False)
        return files

    def _place(self, hit: RetrieverHit, mount_path: str) -> str:
        if self._path_for_hit is not None:
            raw = _text_of("path_for_hit", self._path_for_hit(hit))
        elif hit.source_path:
            raw = hit.source_path.lstrip("/")
        else:
            raw = f"{hit.source_id}/{hit.chunk_id}.md"
        try:
            path = normalise(raw if raw.startswith("/") else f"{mount_path}/{raw}")
        except InvalidPathError as error:
            raise _outside(raw, mount_path) from error
        if not is_below(path, mount_path):
            raise _outside(raw, mount_path)
        return path

    def _file(self, path: str, hits: builtins.list[RetrieverHit]) -> _Found:
        ranked = sorted(hits, key=lambda hit: hit.position if hit.position is not None else -1)
        texts = dict.fromkeys(self._text(hit) for hit in ranked)
        first = hits[0]
        chunks = list(dict.fromkeys(hit.chunk_id for hit in ranked))
        metadata: dict[str, Any] = {
            **{key: value for key, value in (first.metadata or {}).items() if _is_json(key, value)},
            "source_id": first.source_id,
            "chunk_id": first.chunk_id,
        }
        if len(chunks) > 1:
            metadata["chunk_ids"] = chunks
        mime = self._mime_type
        if callable(mime):
            mime = _text_of("mime_type", mime(first))
        return _Found(path, "\n\n".join(texts), mime or "text/markdown", metadata)

    def _text(self, hit: RetrieverHit) -> str:
        if self._content_for_hit is not None:
            return _text_of("content_for_hit", self._content_for_hit(hit))
        return hit.content if hit.parent_content is None else hit.parent_content


def _scope(path: str) -> Callable[[str], bool]:
    if has_glob(path):
        return compile_glob(path).matches
    return lambda where: is_at_or_below(where, path)


def _is_json(key: object, value: object) -> bool:
    try:
        check_json({key: value})
    except InvalidInputError:
        return False
    return True


def _text_of(option: str, given: object) -> str:
    if isinstance(given, str):
        return given
    raise StorageError(
        f"The function {option} of a RetrieverSource returned {type(given).__name__} instead of str.",
        code=ErrorCode.SOURCE_INVALID,
        hint=f"Give {option} that returns a str for every hit.",
    )


def _outside(raw: str, mount_path: str) -> StorageError:
    return StorageError(
        f'The retriever gave the hit path "{raw[:200]}", which is outside mount "{mount_path}".',
        code=ErrorCode.SOURCE_INVALID,
        details={"mount": mount_path},
        hint="Give path_for_hit, which says where below the mount a hit belongs.",
    )


def retriever_workspace_mount_source(
    retriever: Any,  # noqa: ANN401 - a retriever of any library
    query: QuerySetting = None,
    limit: int | None = None,
    path_for_hit: Callable[[RetrieverHit], str] | None = None,
    content_for_hit: Callable[[RetrieverHit], str] | None = None,
    mime_type: str | Callable[[RetrieverHit], str] | None = None,
) -> RetrieverSource:
    """Make a mount source of a retriever: ``Mount("/sources", access="read", source=...)``.

    Args:
        retriever: An object with ``retrieve(query, *, limit=None)``, sync or async; a LangChain or LlamaIndex retriever; or a callable of
            the query that returns hits, documents or strings.
        query: What to retrieve by when the call is no search; a callable is told about the call. None takes the path.
        limit: Most hits to ask for.
        path_for_hit: Where a hit belongs, absolute or below the mount; by default its `source_path`, else ``<source_id>/<chunk_id>.md``.
        content_for_hit: The text of a hit; by default its parent's, else its own.
        mime_type: Of all files, or of a hit; ``text/markdown`` by default.

    Returns:
        The source, read-only.

    Raises:
        InvalidInputError: It is no retriever, or a bad limit (``INVALID_ARGUMENT``).

    Cost:
        one retrieval a call

    Example:
        >>> source = retriever_workspace_mount_source(lambda query: ["Tides are caused by the moon."])
        >>> source.kind
        'retriever'
    """
    return RetrieverSource(retriever, query, limit, path_for_hit, content_for_hit, mime_type)
