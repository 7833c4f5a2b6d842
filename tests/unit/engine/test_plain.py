"""The short way to a batch makes the batch that the builder makes, or none."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from crux_workspace.engine.build import build_any
from crux_workspace.engine.built import Built
from crux_workspace.engine.changeset import Changeset, Draft, FileDelta, FrozenVersion, NewContent
from crux_workspace.engine.codec import Gone, Head
from crux_workspace.engine.entry import Entry, GoneFile
from crux_workspace.engine.guard import GuardedReader
from crux_workspace.engine.keys import gone_key, head_key
from crux_workspace.engine.plain import build_plain
from crux_workspace.engine.ports import EnginePorts
from crux_workspace.engine.tree import LiveTree
from crux_workspace.model.settings import ContentOptions, Limits, Retention, Versioning
from crux_workspace.storage.layout import Meta
from crux_workspace.storage.memory import MemoryRecordStore
from crux_workspace.storage.planning import PartitionReader

PATH = "/workspace/d/a.md"
ID = "f" * 32
COMMIT = "c" * 24
NOW = 2_000


def _or_none(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


def _rare(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Nearly always None: what the short way leaves to the builder comes alone."""
    return st.integers(0, 40).flatmap(lambda n: values if n == 40 else st.none())


contents = st.builds(
    NewContent,
    kind=st.sampled_from("tjb"),
    size=st.sampled_from([0, 1, 7, 4096, 5000]),
    sha256=st.just("a" * 64),
    lines=st.integers(0, 3),
    preview=_or_none(st.text(max_size=5)),
    body=_rare(st.just(b"")).map(lambda empty: b"body" if empty is None else None),
    asset=_rare(st.just("ref")),
)
drafts = st.builds(
    Draft,
    path=_rare(st.just("/workspace/b.md")).map(lambda path: path or PATH),
    content=contents,
    operation=st.sampled_from(["write", "edit", "append", "undo"]),
    restored_from=_or_none(st.integers(1, 9)),
    walk=_or_none(st.tuples(st.integers(1, 9), st.integers(1, 9))),
    mime_type=st.sampled_from(["text/plain", "text/markdown"]),
    metadata=_or_none(st.just({"a": [1, "ü"]})),
    status=_rare(st.sampled_from(["draft", "final"])),
    artifact_kind=_rare(st.just("report")),
    produced_by=_rare(st.just({"run_id": "r"})),
    pinned=_rare(st.integers(1, 9)),
)
heads = st.builds(
    Head,
    file_id=st.just(ID),
    version=st.integers(1, 17),
    commit=st.just("b" * 24),
    kind=st.sampled_from("tjb"),
    mime_type=st.sampled_from(["text/plain", "text/markdown"]),
    size=st.sampled_from([0, 1, 7, 4096, 5000]),
    lines=st.integers(0, 3),
    sha256=st.just("e" * 64),
    asset=_rare(st.just("old")),
    preview=_or_none(st.text(max_size=5)),
    metadata=_or_none(st.just({"b": None})),
    operation=st.sampled_from(["write", "edit", "undo"]),
    restored_from=_or_none(st.integers(1, 9)),
    status=_rare(st.sampled_from(["draft", "final"])),
    artifact_kind=_rare(st.just("report")),
    produced_by=_rare(st.just({"run_id": "q"})),
    pinned=_rare(st.integers(1, 9)),
    version_path=_or_none(st.just("/workspace/earlier.md")),
    version_sequence=_or_none(st.integers(1, 9)),
    version_commit=_or_none(st.just("d" * 24)),
    version_at=_or_none(st.integers(1, 999)),
    commit_sequence=_or_none(st.integers(1, 9)),
    commit_at=_or_none(st.integers(1, 999)),
    bound=_or_none(st.integers(1, 9)),
    changed=_or_none(st.integers(1, 9)),
    created_at=_or_none(st.integers(999, 1001)),
    first=st.integers(1, 3),
    walk=_or_none(st.tuples(st.integers(1, 9), st.integers(1, 9))),
    due=_rare(st.integers(1, 5000)),
    filed=_rare(st.integers(1, 5000)),
)
entries = st.builds(
    Entry,
    path=st.just(PATH),
    head=heads,
    revision=st.integers(1, 9),
    at=st.just(1000),
    provisional=_rare(st.just(True)).map(bool),
)
gone_files = st.builds(
    GoneFile,
    path=st.just(PATH),
    gone=st.builds(
        Gone, file_id=st.just(ID), version=st.integers(1, 4), created_at=st.integers(1, 9)
    ),
    revision=st.integers(1, 9),
)
frozen = st.builds(
    FrozenVersion,
    version=st.integers(1, 9),
    content=contents.map(lambda content: replace(content, body=b"frozen")),
    draft=drafts,
)


@st.composite
def changesets(draw: st.DrawFn) -> Changeset:
    before = draw(_or_none(entries))
    after = draw(drafts)
    if before is not None and draw(_rare(st.just(True))):
        after.content = None
    staged = draw(_rare(frozen))
    delta = FileDelta(
        file_id=ID,
        before=before,
        gone=None if before is not None else draw(_rare(gone_files)),
        after=after,
        frozen=[] if staged is None else [staged],
    )
    changes = Changeset([delta], creates=[] if before is not None else [PATH])
    if draw(_rare(st.just(True))):
        changes.extra_deletes = ["exp\x01"]
    return changes


def _ports(limits: Limits, versioning: Versioning, retention: Retention) -> EnginePorts:
    return EnginePorts(
        records=MemoryRecordStore(),
        assets=None,
        workspace_id="w",
        namespace="n",
        partition="w\x01n\x01",
        limits=limits,
        retention=retention,
        versioning=versioning,
        content=ContentOptions(),
        clock=lambda: NOW,
        ids=lambda: ID,
        actor="somebody",
    )


def _driven(work: Coroutine[Any, Any, Built]) -> Built:
    """Run what awaits nothing but the store in memory."""
    try:
        work.send(None)
    except StopIteration as stop:
        built: Built = stop.value
        return built
    raise AssertionError("it waited")


def _tree(ports: EnginePorts, *, gone: bool, meta: Meta | None) -> LiveTree:
    tree = LiveTree(GuardedReader(PartitionReader(ports.records, ports.partition)), NOW)
    tree.meta, tree.looked = meta, True
    tree.expect = {head_key(PATH): 3, head_key("/workspace/d"): 0}
    if gone:
        tree.expect[gone_key(PATH)] = 0
        tree.expect[gone_key("/workspace/b.md")] = 0
    return tree


limits = st.builds(
    Limits,
    max_files=_or_none(st.integers(1, 9)),
    max_namespace_bytes=_or_none(st.integers(1, 9)),
    max_history_bytes=_rare(st.just(1_000_000)),
)
metas = st.one_of(
    st.none(), st.just(Meta(sequence=9, incarnation="i" * 24, at=1000, counters={"versions": 9}))
)


@settings(max_examples=400, deadline=None)
@given(
    changesets(),
    limits,
    st.sampled_from([None, 1, 2, 5, 100]),
    _rare(st.just(60_000)),
    metas,
    _rare(st.just(True)),
)
def test_both_ways_make_the_same_batch(
    changes: Changeset,
    limits: Limits,
    most: int | None,
    ttl_ms: int | None,
    meta: Meta | None,
    blind: bool | None,
) -> None:
    ports = _ports(limits, Versioning(max_versions=most), Retention(ttl_ms=ttl_ms))
    tree = _tree(ports, gone=not blind, meta=meta)
    plain = build_plain(ports, tree, changes, "write", COMMIT)
    if plain is None:
        return
    whole = _driven(build_any(ports, tree, changes, "write", COMMIT))
    assert plain == whole
    assert list(plain.batch.counters) == list(whole.batch.counters)
    assert [put.value for put in plain.batch.puts] == [put.value for put in whole.batch.puts]


def _plain_cases() -> dict[str, tuple[Changeset, Versioning]]:
    def draft(**more: Any) -> Draft:
        content = NewContent(
            kind="t", size=4, sha256="a" * 64, lines=1, preview="body", body=b"body"
        )
        return Draft(path=PATH, content=content, mime_type="text/markdown", **more)

    old = Head(file_id=ID, version=8, commit="b" * 24, size=9)
    before = Entry(PATH, old, 3, 1000)
    return {
        "create": (Changeset([FileDelta(file_id=ID, after=draft())], [PATH]), Versioning()),
        "overwrite": (
            Changeset([FileDelta(file_id=ID, before=before, after=draft())]),
            Versioning(),
        ),
        "edit": (
            Changeset([FileDelta(file_id=ID, before=before, after=draft(operation="edit"))]),
            Versioning(max_versions=9),
        ),
    }


@pytest.mark.parametrize("name", _plain_cases())
def test_plain_writes_go_the_short_way(name: str) -> None:
    changes, versioning = _plain_cases()[name]
    ports = _ports(Limits(), versioning, Retention())
    meta = Meta(sequence=9, incarnation="i" * 24, at=1000)
    tree = _tree(ports, gone=True, meta=meta)
    plain = build_plain(ports, tree, changes, "write", COMMIT)
    assert plain is not None
    assert plain == _driven(build_any(ports, tree, changes, "write", COMMIT))


def _cases_of_the_builder() -> dict[str, tuple[Changeset, Versioning, Retention]]:
    found: dict[str, tuple[Changeset, Versioning, Retention]] = {}
    unusual: dict[str, dict[str, Any]] = {
        "a pin": {"pinned": 3},
        "a status": {"status": "draft"},
        "a due time": {"due": 9_999},
        "an asset": {"asset": "ref"},
        "a turn": {"size": 5000},
    }
    for name, changed in unusual.items():
        changes, versioning = _plain_cases()["overwrite"]
        before = changes.deltas[0].before
        assert before is not None
        before.head = replace(before.head, **changed)
        found[name] = changes, versioning, Retention()
    overwrite, _ = _plain_cases()["overwrite"]
    found["collection"] = overwrite, Versioning(max_versions=8), Retention()
    found["expiry"] = overwrite, Versioning(), Retention(ttl_ms=60_000)
    return found


@pytest.mark.parametrize("name", _cases_of_the_builder())
def test_what_is_more_is_left_to_the_builder(name: str) -> None:
    changes, versioning, retention = _cases_of_the_builder()[name]
    ports = _ports(Limits(), versioning, retention)
    tree = _tree(ports, gone=True, meta=Meta(sequence=9, incarnation="i" * 24, at=1000))
    assert build_plain(ports, tree, changes, "write", COMMIT) is None
