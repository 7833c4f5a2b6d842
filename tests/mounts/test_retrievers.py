"""Retrievers of LangChain and LlamaIndex, and plain callables, as mounts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from llama_index.core.retrievers import BaseRetriever as LlamaRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from crux_workspace import (
    Mount,
    RetrieverHit,
    RetrieverQuery,
    RetrieverSource,
    Workspace,
    retriever_workspace_mount_source,
)
from crux_workspace.errors import ErrorCode, InvalidInputError, StorageError
from crux_workspace.testing.workspace import refused
from tests.conftest import MakeWorkspace

CHUNKS = [
    ("https://example.org/tides.html#sun", "The Sun adds to them.", 40),
    ("https://example.org/tides.html", "Tides are caused by the Moon.", 0),
    ("/home/me/Papers/Waves & wind.pdf", "Waves are caused by wind.", 0),
]


class Chain(BaseRetriever):
    asked: list[str]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.asked.append(query)
        return [
            Document(
                page_content=text, metadata={"source": source, "start_index": at, "odd": object()}
            )
            for source, text, at in CHUNKS
        ]


class Llama(LlamaRetriever):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        self.asked.append(query_bundle.query_str)
        nodes = []
        for n, (source, text, at) in enumerate(CHUNKS):
            end = at + len(text)
            node = TextNode(text=text, id_=f"node{n}", start_char_idx=at, end_char_idx=end)
            node.metadata = {"file_path": source}
            node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=source)
            nodes.append(NodeWithScore(node=node, score=1 - n / 10))
        return nodes


def mounted(make_ws: MakeWorkspace, retriever: Any, **options: Any) -> Workspace:
    source = RetrieverSource(retriever, **options)
    return make_ws(mounts=[Mount("/workspace"), Mount("/sources", "read", None, source)])


@pytest.mark.parametrize("library", ["langchain", "llama-index"])
async def test_chunks_of_one_document_are_one_file(make_ws: MakeWorkspace, library: str) -> None:
    retriever: Any = Chain(asked=[]) if library == "langchain" else Llama()
    ws = mounted(make_ws, retriever, query="the sea")
    paths = [entry.path for entry in await ws.list("/sources", recursive=True)]
    assert paths == [
        "/sources/example.org/tides.html",
        "/sources/home/me/Papers/Waves & wind.pdf.md",
    ]
    assert await ws.read_text(paths[0]) == "Tides are caused by the Moon.\n\nThe Sun adds to them."
    file = await ws.stat(paths[0])
    assert file is not None
    assert file.metadata is not None
    assert len(file.metadata["chunk_ids"]) == 2
    assert "odd" not in file.metadata
    assert set(retriever.asked) == {"the sea"}
    found = await ws.grep("moon", ignore_case=True, path="/sources")
    assert [(m.path, m.line) for m in found] == [(paths[0], 1)]
    assert retriever.asked[-1] == "moon"
    await ws.copy(paths[0], "/workspace/tides.md")
    [artifact] = await ws.artifacts()
    assert artifact.produced_by is not None
    assert artifact.produced_by["sources"][0].startswith(f"{paths[0]}@sha256:")


@pytest.mark.parametrize("kind", ["sync", "async", "limit"])
async def test_plain_callables(make_ws: MakeWorkspace, kind: str) -> None:
    def find(query: str) -> list[str]:
        return [f"about {query}", "and more"]

    async def find_later(query: str) -> list[str]:
        await asyncio.sleep(0)
        return find(query)

    def find_some(query: str, limit: int | None = None) -> list[str]:
        return find(query)[:limit]

    function: Any = {"sync": find, "async": find_later, "limit": find_some}[kind]
    ws = mounted(make_ws, function, query="tides", limit=1)
    assert [entry.path for entry in await ws.list("/sources")] == ["/sources/text"]
    [file] = await ws.list("/sources", recursive=True)
    assert file.path.startswith("/sources/text/")
    assert await ws.read_text(file.path) == "about tides"


async def test_the_query_may_depend_on_the_call(make_ws: MakeWorkspace) -> None:
    asked: list[RetrieverQuery] = []
    queries: list[str] = []

    async def query(request: RetrieverQuery) -> str:
        asked.append(request)
        return f"{request.operation} of {request.path}"

    def retrieve(text: str) -> list[RetrieverHit]:
        queries.append(text)
        return [RetrieverHit("s", "c", "text of the hit")]

    ws = mounted(make_ws, retrieve, query=query)
    await ws.list("/sources")
    await ws.read("/sources/s/c.md")
    await ws.stat("/sources/s/c.md")
    await ws.exists("/sources/s/c.md")
    await ws.grep("hit", path="/sources/s")
    assert queries == [
        "list of /sources",
        "read of /sources/s/c.md",
        "stat of /sources/s/c.md",
        "exists of /sources/s/c.md",
        "hit",
    ]
    assert asked[1] == RetrieverQuery("read", "/sources/s/c.md", None, "/sources")


async def test_without_a_query_the_path_is_asked_for(make_ws: MakeWorkspace) -> None:
    queries: list[str] = []

    def retrieve(text: str) -> list[RetrieverHit]:
        queries.append(text)
        return []

    ws = mounted(make_ws, retrieve)
    await ws.list("/sources/d")
    assert await ws.stat("/sources/x.md") is None
    assert queries[0] == "/sources/d"


async def test_a_file_that_a_search_showed_can_be_read(make_ws: MakeWorkspace) -> None:
    def retrieve(text: str) -> list[RetrieverHit]:
        return [RetrieverHit("s", "c", "the moon")] if "moon" in text else []

    ws = mounted(make_ws, retrieve)
    [match] = await ws.grep("moon", path="/sources")
    assert await ws.read_text(match.path) == "the moon"


async def test_callbacks_shape_the_files(make_ws: MakeWorkspace) -> None:
    hits = [
        RetrieverHit("a", "1", "chunk", parent_content="the whole parent", metadata={"lang": "en"}),
        RetrieverHit("a", "2", "other", parent_content="the whole parent"),
    ]
    ws = mounted(
        make_ws,
        lambda query: hits,
        path_for_hit=lambda hit: f"/sources/docs/{hit.source_id}.txt",
        mime_type=lambda hit: "text/plain; lang=en" if hit.metadata else "text/x",
    )
    content = await ws.read("/sources/docs/a.txt")
    assert content.to_dict()["content"] == "the whole parent"
    assert content.mime_type == "text/plain; lang=en"
    shaped = mounted(make_ws, lambda query: hits, content_for_hit=lambda hit: hit.chunk_id * 3)
    assert await shaped.read_text("/sources/a/2.md") == "222"


@pytest.mark.parametrize(
    "path", ["/workspace/x.md", "../x.md", "/sources", "", "/sources/../workspace/x", "a\x00b"]
)
async def test_a_hit_outside_the_mount_is_an_error(make_ws: MakeWorkspace, path: str) -> None:
    ws = mounted(make_ws, lambda query: [RetrieverHit("a", "1", "x")], path_for_hit=lambda hit: path)  # fmt: skip
    with refused(ErrorCode.SOURCE_INVALID):
        await ws.list("/sources")


BAD_HITS: list[dict[str, Any]] = [
    {"content": 5},
    {"source_id": None},
    {"chunk_id": 5},
    {"source_path": 5},
    {"parent_content": b"x"},
    {"position": "first"},
    {"metadata": ["x"]},
]


@pytest.mark.parametrize(
    "found",
    [
        5,
        "text",
        {"a": 1},
        [5],
        *(
            [RetrieverHit(**{"source_id": "a", "chunk_id": "1", "content": "x", **bad})]
            for bad in BAD_HITS
        ),
    ],
)
async def test_unusable_hits_are_an_error(make_ws: MakeWorkspace, found: Any) -> None:
    with refused(ErrorCode.SOURCE_INVALID):
        await mounted(make_ws, lambda query: found).list("/sources")


async def test_a_retriever_that_fails(make_ws: MakeWorkspace) -> None:
    async def fails(query: str) -> list[Any]:
        raise ConnectionError("db.internal:5432")

    with pytest.raises(StorageError) as caught:
        await mounted(make_ws, fails).grep("x", path="/sources")
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert "db.internal" not in str(caught.value.to_dict())


async def test_pages_retrieve_once(make_ws: MakeWorkspace) -> None:
    asked: list[str] = []

    def retrieve(query: str) -> list[RetrieverHit]:
        asked.append(query)
        return [RetrieverHit(f"s{n:03}", "1", "text") for n in range(100)]

    ws = mounted(make_ws, retrieve, query="all")
    ways: list[dict[str, Any]] = [{}, {"recursive": True}]
    for options in ways:
        asked.clear()
        found, cursor = 0, None
        while True:
            page = await ws.list("/sources", limit=10, cursor=cursor, **options)
            found += len(page)
            cursor = page.cursor
            if cursor is None:
                break
        assert (found, len(asked)) == (100, 1)


async def test_it_is_read_only(make_ws: MakeWorkspace) -> None:
    source = retriever_workspace_mount_source(lambda query: [])
    ws = make_ws(mounts=[Mount("/s", source=source)])
    with refused(ErrorCode.SOURCE_UNSUPPORTED):
        await ws.write("/s/a.md", "x")
    assert source.kind == "retriever"


@pytest.mark.parametrize(
    "bad",
    [
        {"retriever": 5},
        {"limit": 0},
        {"limit": "5"},
        {"query": 5},
        {"path_for_hit": "a.md"},
        {"content_for_hit": 5},
        {"mime_type": 5},
        {"mime_type": "\n"},
    ],
)
def test_what_is_no_retriever_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError):
        RetrieverSource(**{"retriever": print, **bad})


@pytest.mark.parametrize("name", ["path_for_hit", "content_for_hit", "mime_type"])
async def test_a_function_of_a_hit_that_gives_no_text(make_ws: MakeWorkspace, name: str) -> None:
    ws = mounted(make_ws, lambda query: [RetrieverHit("a", "1", "x")], **{name: lambda hit: None})
    with refused(ErrorCode.SOURCE_INVALID):
        await ws.list("/sources")
