"""A workspace as a LangGraph store, held against LangGraph's own; and inside a graph."""

from __future__ import annotations

from datetime import UTC
from typing import Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from crux_workspace import Workspace, open_workspace_sync, workspace
from crux_workspace.errors import InvalidInputError
from crux_workspace.integrations.langgraph import WorkspaceStore
from crux_workspace.storage import memory_storage
from tests.conftest import MakeWorkspace
from tests.support.report_task import ReportTask


async def test_items_come_back(ws: Workspace) -> None:
    store = WorkspaceStore(ws)
    await store.aput(("users", "u/1"), "läst seen", {"at": [1, None, "ü"]})
    item = await store.aget(("users", "u/1"), "läst seen")
    assert item is not None
    assert (item.value, item.key, item.namespace) == ({"at": [1, None, "ü"]}, "läst seen", ("users", "u/1"))  # fmt: skip
    assert item.created_at.tzinfo == UTC
    assert await store.aget(("users",), "none") is None
    await store.aput(("users", "u/1"), "läst seen", {"at": 2})
    assert len(await ws.history("/workspace/store/users/u~2F1/l~C3~A4st seen.json")) == 2
    await store.adelete(("users", "u/1"), "läst seen")
    await store.adelete(("users", "u/1"), "läst seen")
    assert await store.aget(("users", "u/1"), "läst seen") is None


async def test_search_filters_and_ranks(ws: Workspace) -> None:
    store = WorkspaceStore(ws)
    for n in range(12):
        await store.aput(("m", "a" if n % 2 else "b"), f"k{n:02}", {"n": n, "text": "moon tide" if n == 7 else "tide"})  # fmt: skip
    assert len(await store.asearch(("m",))) == 10
    assert [i.key for i in await store.asearch(("m", "a"), limit=2, offset=1)] == ["k03", "k05"]
    assert sorted(i.value["n"] for i in await store.asearch(("m",), filter={"n": {"$gte": 10}})) == [10, 11]  # fmt: skip
    assert await store.asearch(("m",), filter={"n": 3, "text": "none"}) == []
    ranked = await store.asearch((), query="Moon TIDE", limit=1)
    assert [(i.key, i.score) for i in ranked] == [("k07", 1.0)]
    assert sorted(await store.alist_namespaces()) == [("m", "a"), ("m", "b")]
    assert await store.alist_namespaces(max_depth=1) == [("m",)]
    assert await store.alist_namespaces(suffix=("b",)) == [("m", "b")]
    assert await store.alist_namespaces(prefix=("*", "a")) == [("m", "a")]


async def test_a_batch_is_one_commit(ws: Workspace) -> None:
    store = WorkspaceStore(ws)
    results = await store.abatch(
        [
            PutOp(("a",), "k", {"n": 1}),
            PutOp(("a",), "k", {"n": 2}),
            PutOp(("b",), "k", {"n": 3}),
            PutOp(("b",), "gone", None),
            GetOp(("a",), "k"),
        ]
    )
    assert results == [None, None, None, None, None]
    assert len(await ws.log()) == 1
    assert (await store.aget(("a",), "k")).value == {"n": 2}  # type: ignore[union-attr]


@pytest.mark.parametrize("namespace", [(), ("",), ("a.b",), ("langgraph",)])
async def test_bad_namespaces_are_refused_as_everywhere(
    ws: Workspace, namespace: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidNamespaceError):
        await WorkspaceStore(ws).aput(namespace, "k", {})


@pytest.mark.parametrize(("label", "key"), [("a", "\ud800"), ("\ud800", "k"), ("a", "")])
async def test_keys_and_labels_that_are_no_text_are_typed_errors(
    ws: Workspace, label: str, key: Any
) -> None:
    store = WorkspaceStore(ws)
    for call in (store.aput((label,), key, {}), store.aget((label,), key)):
        with pytest.raises(InvalidInputError):
            await call


async def test_a_number_beyond_a_float_compares_with_nothing(ws: Workspace) -> None:
    store = WorkspaceStore(ws)
    await store.aput(("a",), "huge", {"n": 10**400})
    await store.aput(("a",), "small", {"n": 2})
    assert [item.key for item in await store.asearch(("a",), filter={"n": {"$gt": 1}})] == ["small"]


async def test_what_is_no_item_is_passed_over(ws: Workspace) -> None:
    store = WorkspaceStore(ws)
    await ws.write("/workspace/store/a/notes.md", "text")
    await ws.write("/workspace/store/a/text.json", "not JSON")
    await ws.write("/workspace/store/a/list.json", [1])
    await store.aput(("a",), "k", {"n": 1})
    assert [item.key for item in await store.asearch(("a",))] == ["k"]
    assert await store.aget(("a",), "text") is None


LABELS = st.text(st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="."), min_size=1, max_size=12)  # fmt: skip
KEYS = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=12)


@settings(max_examples=40)
@given(st.data())
async def test_it_agrees_with_the_store_in_memory(data: st.DataObject) -> None:
    """Puts, deletes, gets and searches over odd names give what LangGraph's own store gives."""
    ws = workspace(id="w", namespace="n", storage=memory_storage())
    ours, theirs = WorkspaceStore(ws), InMemoryStore()
    labels = data.draw(st.lists(LABELS, min_size=2, max_size=3, unique=True))
    keys = data.draw(st.lists(KEYS, min_size=2, max_size=3, unique=True))
    places = [(label,) for label in labels] + [(labels[0], labels[1])]
    for _ in range(data.draw(st.integers(1, 8))):
        namespace, key = data.draw(st.sampled_from(places)), data.draw(st.sampled_from(keys))
        value = data.draw(st.none() | st.fixed_dictionaries({"n": st.integers(0, 3)}))
        for store in (ours, theirs):
            await store.abatch([PutOp(namespace, key, value)])
    for namespace in places:
        for key in keys:
            ops = [GetOp(namespace, key)]
            [mine], [other] = await ours.abatch(ops), await theirs.abatch(ops)
            assert _plain(mine) == _plain(other)
        for wanted in (None, {"n": 1}, {"n": {"$gt": 1}}):
            ops_ = [SearchOp(namespace, filter=wanted, limit=50)]
            [found], [expected] = await ours.abatch(ops_), await theirs.abatch(ops_)
            assert sorted(map(str, map(_plain, found))) == sorted(map(str, map(_plain, expected)))  # type: ignore[arg-type]


def _plain(item: Any) -> Any:
    return None if item is None else (item.namespace, item.key, item.value)


class State(TypedDict):
    text: str


async def test_a_graph_remembers_in_a_workspace(ws: Workspace) -> None:
    async def note(state: State, *, store: BaseStore) -> State:
        before = await store.asearch(("memories", "user"))
        await store.aput(("memories", "user"), f"m{len(before)}", {"text": state["text"]})
        return {"text": f"{len(before)} before"}

    graph = StateGraph(State)
    graph.add_node("note", note)
    graph.add_edge(START, "note")
    graph.add_edge("note", END)
    compiled = graph.compile(store=WorkspaceStore(ws.acting_as("agent:memory")))
    assert [(await compiled.ainvoke({"text": text}))["text"] for text in "abc"] == ["0 before", "1 before", "2 before"]  # fmt: skip
    assert {entry.actor for entry in await ws.log()} == {"agent:memory"}
    assert (await ws.read_json("/workspace/store/memories/user/m2.json")) == {"text": "c"}


async def test_the_task_of_all_frameworks_with_a_memory(make_ws: MakeWorkspace) -> None:
    """A graph plays the report task turn by turn and notes each turn in the store, in the same workspace."""
    task = ReportTask.on(make_ws)
    tools = task.tools()

    class Turn(TypedDict):
        told: str | None

    async def act(state: Turn, *, store: BaseStore) -> Turn:
        call = await task.following(state["told"])
        if call is None:
            return {"told": None}
        result = await tools.call(call.tool, call.arguments)
        await store.aput(("turns",), f"{task.turn:02}", {"tool": call.tool, "ok": result.ok})
        return {"told": result.text}

    graph = StateGraph(Turn)
    graph.add_node("act", act)
    graph.add_edge(START, "act")
    graph.add_conditional_edges("act", lambda state: "act" if state["told"] else END)
    compiled = graph.compile(store=WorkspaceStore(task.ws))
    await compiled.ainvoke({"told": None}, {"recursion_limit": 50})
    await task.check()
    failed = await WorkspaceStore(task.ws).asearch(("turns",), filter={"ok": False})
    assert [item.key for item in failed] == ["02", "04", "06"]


def test_a_graph_that_waits() -> None:
    with open_workspace_sync("memory://") as sws:
        store = WorkspaceStore(sws)
        store.put(("a",), "k", {"n": 1})
        item = store.get(("a",), "k")
        assert item is not None
        assert item.value == {"n": 1}
        assert [found.key for found in store.search(("a",))] == ["k"]
