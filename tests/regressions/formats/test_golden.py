"""Golden records: what today's code writes is byte for byte what it wrote before, and what it wrote before is still read.

Each act of the script below works on a namespace of its own, with a clock and ids that count. Its golden file
`v1/<act>.json` lists, commit by commit, every record that the commit wrote or deleted. After an intended addition:

    python -m pytest tests/regressions/formats --regenerate-golden

and read the difference: only names may be added, see `docs/format.md`, "Growth".
"""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from sortedcontainers import SortedDict

from crux_workspace import (
    ContentOptions,
    Retention,
    Versioning,
    Workspace,
    workspace,
)
from crux_workspace.engine.compression import DIFFERENCE, WHOLE
from crux_workspace.engine.content import asset_prefix
from crux_workspace.errors import ErrorCode, NotFoundError, StateError, WorkspaceError
from crux_workspace.storage import (
    Batch,
    Committed,
    MemoryAssetStore,
    MemoryRecordStore,
    Plan,
    PutOptions,
    Record,
    RecordStore,
    storage,
)
from crux_workspace.storage.layout import META_KEY, decode_meta, is_log_head, partition_name
from crux_workspace.storage.memory import _Partition
from crux_workspace.testing.delegating import DelegatingRecordStore
from crux_workspace.testing.doubles import FixedClock, SequentialIds
from storage_adapters.sql import SqliteRecordStore

ID = "golden"
MANY = 64
"""A commit that writes more records than this is kept as its log and a hash of the rest."""
LARGE = 4096
"""A body of more bytes is kept as its size and hash."""


# -- the stage


class Recorder(DelegatingRecordStore):
    """Notes, after each commit, what it changed in the one partition that is watched."""

    def __init__(self, inner: RecordStore, partition: str) -> None:
        super().__init__(inner)
        self.partition = partition
        self.step = ""
        self.known: dict[str, Record] = {}
        self.commits: list[dict[str, Any]] = []

    async def commit(self, partition: str, batch: Batch) -> Committed:
        done = await self.inner.commit(partition, batch)
        await self.note(partition, done)
        return done

    async def commit_planned(self, partition: str, plan: Plan) -> Committed:
        done = await self.inner.commit_planned(partition, plan)
        await self.note(partition, done)
        return done

    async def drop(self, partition: str) -> None:
        await self.inner.drop(partition)
        found = await everything(self.inner, partition)
        assert found == {}, "a dropped namespace leaves nothing"
        self.known = {}
        self.commits.append({"dropped": True, "step": self.step})

    async def note(self, partition: str, done: Committed) -> None:
        if partition != self.partition:
            return
        found = await everything(self.inner, partition)
        written = [record for key, record in found.items() if self.known.get(key) != record]
        assert {(r.revision, r.at) for r in written} == {(done.sequence, done.at)}
        deleted = [key for key in self.known if key not in found]
        self.commits.append(
            {
                "sequence": done.sequence,
                "at": done.at,
                "step": self.step,
                **_listed(written),
                **_listed_keys(deleted),
            }
        )
        self.known = found


async def everything(records: RecordStore, partition: str) -> dict[str, Record]:
    """Return all records of a partition, in key order."""
    found: dict[str, Record] = {}
    after: str | None = None
    while True:
        page = await records.scan(partition, "", after=after, limit=500, bodies=True)
        found.update((record.key, record) for record in page.records)
        if page.next is None:
            return found
        after = page.next


def _listed(written: list[Record]) -> dict[str, Any]:
    if len(written) <= MANY:
        return {"writes": [to_json(record) for record in written]}
    shown = [r for r in written if r.key.startswith(("meta", "log"))]
    rest = [r for r in written if not r.key.startswith(("meta", "log"))]
    digest = hashlib.sha256("\n".join(_line(to_json(r)) for r in rest).encode()).hexdigest()
    return {
        "writes": [to_json(record) for record in shown],
        "others": {"count": len(rest), "sha256": digest},
    }


def _listed_keys(deleted: list[str]) -> dict[str, Any]:
    if len(deleted) <= MANY:
        return {"deletes": deleted}
    digest = hashlib.sha256("\n".join(deleted).encode()).hexdigest()
    return {"deletes": [], "other_deletes": {"count": len(deleted), "sha256": digest}}


def to_json(record: Record) -> dict[str, Any]:
    """Write a record as the golden files do; the value's text can be had back exactly."""
    value = json.loads(record.value)
    assert _line(value).encode() == record.value
    shown = {"key": record.key, "revision": record.revision, "at": record.at, "value": value}
    if record.body is not None:
        shown["body"] = _body_to_json(record.body)
    return shown


def _body_to_json(body: bytes) -> dict[str, Any]:
    if len(body) > LARGE:
        return {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def from_json(shown: dict[str, Any]) -> Record:
    body = shown.get("body")
    data = None
    if body is not None:
        data = body["text"].encode() if "text" in body else base64.b64decode(body["base64"])
    return Record(
        shown["key"], _line(shown["value"]).encode(), data, shown["revision"], shown["at"]
    )


def _asset_to_json(data: bytes) -> str:
    if len(data) <= LARGE:
        return base64.b64encode(data).decode()
    return "zlib:" + base64.b64encode(zlib.compress(data)).decode()


def _asset_from_json(shown: str) -> bytes:
    if shown.startswith("zlib:"):
        return zlib.decompress(base64.b64decode(shown[5:]))
    return base64.b64decode(shown)


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def render(golden: dict[str, Any]) -> str:
    """Write a golden file: one record a line, so that differences are readable."""
    lines = ["{", f' "partition": {json.dumps(golden["partition"])},', ' "commits": [']
    for i, commit in enumerate(golden["commits"]):
        plain = {k: v for k, v in commit.items() if k not in ("writes", "deletes")}
        lines.append("  {" + json.dumps(plain, ensure_ascii=False)[1:-1] + ",")
        for name in ("deletes", "writes"):
            items = [json.dumps(item, ensure_ascii=False) for item in commit.get(name, [])]
            lines.append(f'   "{name}": [')
            lines.extend(
                f"    {item}{'' if j == len(items) - 1 else ','}" for j, item in enumerate(items)
            )
            lines.append("   ]" + ("," if name == "deletes" else ""))
        lines.append("  }" + ("" if i == len(golden["commits"]) - 1 else ","))
    lines += [" ],", ' "assets": ' + json.dumps(golden["assets"], indent=2), "}", ""]
    return "\n".join(lines)


def same_frames(rendered: str) -> str:
    """Leave the bytes of zstd frames out: another release of the library writes others, and reads these."""
    golden = json.loads(rendered)
    for commit in golden["commits"]:
        for record in commit.get("writes", []):
            if record["value"].get("e") in (WHOLE, DIFFERENCE):
                assert record["body"]["base64"]
                record["body"] = "a frame"
    return render(golden)


class Stage:
    """One namespace, a clock that each step moves on by a second, and ids that count."""

    def __init__(self, records: RecordStore, namespace: str) -> None:
        self.namespace = namespace
        self.partition = partition_name(ID, namespace)
        self.clock = FixedClock()
        self.ids = SequentialIds()
        self.assets = MemoryAssetStore(clock=self.clock)
        self.recorder = Recorder(records, self.partition)

    def workspace(self, **options: Any) -> Workspace:
        return workspace(
            id=ID,
            namespace=self.namespace,
            storage=storage(records=self.recorder, assets=self.assets),
            clock=self.clock,
            ids=self.ids,
            **options,
        )

    def step(self, what: str, ms: int = 1000) -> None:
        self.recorder.step = what
        self.clock.advance(ms)

    async def golden(self) -> dict[str, Any]:
        kept: dict[str, str] = {}
        page = await self.assets.list("", limit=1000)
        for info in page.assets:
            kept[info.ref] = _asset_to_json(await self.assets.get(info.ref))
        return {"partition": self.partition, "commits": self.recorder.commits, "assets": kept}


# -- the script


async def files(stage: Stage) -> None:
    ws = stage.workspace()
    stage.step("create")
    await ws.write("/workspace/a.md", "one\n")
    stage.step("overwrite, with metadata")
    await ws.write("/workspace/a.md", "two\n", metadata={"k": [1, None, "é"]})
    stage.step("create json")
    await ws.write("/workspace/b.json", {"b": [1, "é"], "a": None})
    stage.step("edit")
    await ws.edit("/workspace/a.md", "two", "three")
    stage.step("append by an actor")
    await ws.acting_as("agent:writer").append("/workspace/a.md", "more")
    stage.step("update")
    await ws.update("/workspace/b.json", lambda value: {**value, "c": True})
    stage.step("set: a state ends, no version")
    await ws.set("/workspace/a.md", metadata=None, mime_type="text/plain")
    stage.step("overwrite after set: two states of version 4")
    await ws.write("/workspace/a.md", "five")
    stage.step("empty file, name with signs, CJK and a combining mark")
    await ws.write("/outputs/e\u0301 +%_*/[x] 字.txt", "")


async def assets(stage: Stage) -> None:
    ws = stage.workspace(content=ContentOptions(inline_text_below_bytes=16))
    stage.step("text above the inline limit: an asset")
    await ws.write("/workspace/big.txt", "seventeen bytes!\n")
    stage.step("binary: an asset")
    await ws.write("/workspace/pic.png", b"\x89PNG\x00\x01")
    stage.step("copy: the asset is shared")
    await ws.copy("/workspace/pic.png", "/outputs/pic.png")
    stage.step("across the limit: inline again, the ended version keeps the asset")
    await ws.write("/workspace/big.txt", "small")
    stage.step("undo: the asset is shared with the earlier version")
    await ws.undo("/workspace/big.txt")
    stage.step("overwrite binary")
    await ws.write("/workspace/pic.png", b"\x00\xff")
    stage.step("purge the copy: one reference less")
    await ws.delete("/outputs/pic.png", purge=True)
    stage.step("purge the original: the last references go, trash is written")
    await ws.delete("/workspace/pic.png", purge=True)
    stage.step("an upload that no commit refers to")
    lost = asset_prefix(ID, stage.namespace) + "f" * 32
    await stage.assets.put(b"lost", PutOptions(key=lost, mime_type="text/plain"))
    stage.step("gc: trash is emptied, the horizon of uploads moves", 3_600_000)
    await ws.gc(dry_run=False)


async def parts(stage: Stage) -> None:
    ws = stage.workspace(content=ContentOptions(inline_text_below_bytes=16))
    path = "/workspace/log.txt"
    stage.step("text above the inline limit: one asset")
    await ws.write(path, "the first 20 bytes.\n")
    stage.step("append: two parts, the first is shared with version 1")
    await ws.append(path, "more\n")
    stage.step("append of nothing: a version with the same parts")
    await ws.append(path, "")
    stage.step("copy, rename, set: all parts are counted once more, and stay")
    await ws.copy(path, "/workspace/copy.txt")
    await ws.rename("/workspace/copy.txt", "/outputs/copy.txt")
    await ws.set("/outputs/copy.txt", metadata={"a": 1})
    stage.step("finalize: the artifact has no asset of its own")
    await ws.finalize("/outputs/copy.txt")
    stage.step("two appends in one transaction are one version with two new parts")
    async with ws.transaction() as tx:
        await tx.append(path, "in ")
        await tx.append(path, "one\n")
    stage.step("edit: one asset again")
    await ws.edit(path, "more", "less")
    stage.step("undo: the parts are shared")
    await ws.undo(path)
    stage.step("purge: the parts of the copy go from the counts")
    await ws.delete("/outputs/copy.txt", purge=True)
    stage.step("purge: the last references go")
    await ws.delete(path, purge=True)
    stage.step("text of 131,072 bytes and more has a line index")
    await ws.write("/workspace/index.txt", "16 bytes a line\n" * 16_385)
    stage.step("an append goes on with it")
    await ws.append("/workspace/index.txt", "16 bytes a line\n" * 8_192)


async def artifacts(stage: Stage) -> None:
    ws = stage.workspace()
    stage.step("a draft")
    await ws.write("/outputs/r.md", "1", status="draft", kind="report", metadata={"n": 1})
    stage.step("a new version of the draft")
    await ws.write("/outputs/r.md", "22")
    stage.step("finalize an older version")
    await ws.finalize("/outputs/r.md", version=1)
    stage.step("edit below the pin: art shows version 1 and the new head version")
    await ws.write("/outputs/r.md", "333")
    stage.step("set metadata")
    await ws.set("/outputs/r.md", metadata={"n": 3})
    stage.step("rename: art moves")
    await ws.rename("/outputs/r.md", "/outputs/final.md")
    stage.step("finalize the head")
    await ws.finalize("/outputs/final.md", kind="paper")
    stage.step("copy: final at its own version 1")
    await ws.copy("/outputs/final.md", "/workspace/copy.md")
    stage.step("withdraw")
    await ws.withdraw("/outputs/final.md")
    stage.step("delete: art goes")
    await ws.delete("/outputs/final.md")
    stage.step("undo the deletion: a draft again")
    await ws.undo("/outputs/final.md")


async def places(stage: Stage) -> None:
    ws = stage.workspace()
    stage.step("create")
    await ws.write("/workspace/a.md", "first")
    stage.step("rename: was and file, no state")
    await ws.rename("/workspace/a.md", "/workspace/b.md")
    stage.step("write at the renamed-away path: a new file")
    await ws.write("/workspace/a.md", "second")
    stage.step("rename with overwrite: a tombstone, no gone")
    await ws.rename("/workspace/a.md", "/workspace/b.md", overwrite=True)
    stage.step("delete: tombstone, was, gone, file")
    await ws.delete("/workspace/b.md")
    stage.step("recreate: the file goes on")
    await ws.write("/workspace/b.md", "third")
    stage.step("create below directories")
    await ws.write("/workspace/d/x.md", "x")
    stage.step("create another")
    await ws.write("/workspace/d/e/y.md", "y")
    stage.step("rename a directory")
    await ws.rename("/workspace/d", "/workspace/f")
    stage.step("rename with overwrite, to be undone")
    await ws.rename("/workspace/f/x.md", "/workspace/b.md", overwrite=True)
    stage.step("undo_commit: both files are back")
    [commit] = await ws.log(limit=1)
    await ws.undo_commit(commit)
    stage.step("rename after a change of attributes in the same state")
    await ws.set("/workspace/b.md", metadata={"a": 1})
    stage.step("rename again")
    await ws.rename("/workspace/b.md", "/workspace/c.md")
    stage.step("delete a directory")
    await ws.delete("/workspace/f", recursive=True)
    stage.step("another file on a gone path")
    await ws.rename("/workspace/c.md", "/workspace/f/x.md")


async def walk(stage: Stage) -> None:
    ws = stage.workspace()
    path = "/workspace/w.md"
    for text in ("a", "b", "c"):
        stage.step(f"write {text}")
        await ws.write(path, text)
    for verb in ("undo", "undo", "redo"):
        stage.step(verb)
        await getattr(ws, verb)(path)
    stage.step("a change ends the walk")
    await ws.write(path, "x")
    stage.step("undo after it")
    await ws.undo(path)
    stage.step("delete")
    await ws.delete(path)
    stage.step("undo of the deletion")
    await ws.undo(path)
    stage.step("undo to a version")
    await ws.undo(path, to_version=2)


async def expiry(stage: Stage) -> None:
    ws = stage.workspace(retention=Retention(ttl_ms=10_000))
    stage.step("create: exp is filed")
    await ws.write("/workspace/a.md", "1")
    stage.step("a content change moves the due time in the head only", 5000)
    await ws.write("/workspace/a.md", "2")
    stage.step("create another")
    await ws.write("/workspace/b.md", "b")
    stage.step("rename: exp stays, file wins")
    await ws.rename("/workspace/b.md", "/workspace/c.md")
    stage.step("sweep: the early row is filed again, the head rewritten with its stamps", 4000)
    await ws.gc(dry_run=False)
    stage.step("write over an expired head: expiry and create in one commit", 5000)
    await ws.write("/workspace/a.md", "3")
    stage.step("sweep: the renamed file expires")
    await ws.gc(dry_run=False)
    stage.step("undo of an expired file", 10_000)
    await ws.undo("/workspace/a.md")


async def collection(stage: Stage) -> None:
    ws = stage.workspace(versioning=Versioning(max_versions=3))
    path = "/workspace/c.md"
    for number in range(1, 4):
        stage.step(f"version {number}")
        await ws.write(path, f"{number}")
    stage.step("pin version 1")
    await ws.finalize(path, version=1)
    stage.step("version 4: version 1 is due, but pinned")
    await ws.write(path, "4")
    stage.step("version 5: version 2 goes")
    await ws.write(path, "5")
    stage.step("withdraw: version 1 goes with the pin")
    await ws.withdraw(path)
    stage.step("version 6: version 3 goes, both states of version 5 stay")
    await ws.write(path, "6")
    stage.step("gc under a lower count: the head is rewritten with its stamps")
    await stage.workspace(versioning=Versioning(max_versions=2)).gc(dry_run=False)
    stage.step("delete: the newest content stays")
    await stage.workspace(versioning=Versioning(max_versions=1)).delete(path)
    stage.step("write again: the rest goes")
    await stage.workspace(versioning=Versioning(max_versions=1)).write(path, "8")


async def histories(stage: Stage) -> None:
    ws = stage.workspace()
    path = "/workspace/h.md"

    def text(number: int) -> str:
        lines = [f"line {n:02d} {n * n * 7919 % 9973:04d}" for n in range(240)]
        lines[number] = f"changed by version {number}"
        return "\n".join(lines).ljust(LARGE, ".")[:LARGE]

    for number in range(1, 9):
        stage.step(f"version {number}")
        await ws.write(path, text(number))
    stage.step("version 9: 1 to 6 are written smaller")
    await ws.write(path, text(9))
    stage.step("pin a version that is a difference")
    await ws.finalize(path, version=3)
    stage.step("version 10: all below 7 go but the pinned one, which is written raw")
    await stage.workspace(versioning=Versioning(max_versions=4)).write(path, text(10))
    stage.step("delete")
    await ws.delete(path)
    stage.step("gc: what is left is written smaller")
    await ws.gc(dry_run=False)


async def purging(stage: Stage) -> None:
    ws = stage.workspace()
    for number in range(17):
        stage.step(f"create {number:02d}")
        await ws.write(f"/workspace/d/{number:02d}.md", f"{number}")
    stage.step("copy a directory of 17: the changes are in the log's body")
    await ws.copy("/workspace/d", "/workspace/e")
    stage.step("change one of them")
    await ws.write("/workspace/e/03.md", "secret")
    stage.step("rename it")
    await ws.rename("/workspace/e/03.md", "/workspace/e/99.md")
    stage.step("purge it: job, redaction, erasure, end")
    await ws.delete("/workspace/e/99.md", purge=True)
    stage.step("delete one")
    await ws.delete("/workspace/d/00.md")
    stage.step("purge a deleted file")
    await ws.delete("/workspace/d/00.md", purge=True)
    stage.step("write there: a new file")
    await ws.write("/workspace/d/00.md", "new")


async def many(stage: Stage) -> None:
    ws = stage.workspace()
    for number in range(16):
        stage.step(f"create {number:02d}")
        await ws.write(f"/workspace/g/{number:02d}.md", f"{number}")
    for size in (16, 32, 64, 128, 256, 512):
        stage.step(f"copy a directory of {size}")
        await ws.copy("/workspace/g", "/workspace/h")
        stage.step(f"move {size} files")
        await ws.move("/workspace/h", f"/workspace/g/{size}")
    stage.step("copy 1024: further log records")
    await ws.copy("/workspace/g", "/outputs/g")
    stage.step("delete 1024")
    await ws.delete("/outputs/g", recursive=True)


async def idempotency(stage: Stage) -> None:
    ws = stage.workspace()
    stage.step("write with a key")
    await ws.write("/workspace/a.md", "a", idempotency_key="key-1")
    stage.step("the same again: no commit")
    await ws.write("/workspace/a.md", "a", idempotency_key="key-1")
    stage.step("finalize with a key")
    await ws.finalize("/workspace/a.md", idempotency_key="key-2")
    stage.step("copy with a key")
    await ws.copy("/workspace/a.md", "/workspace/d/b.md", idempotency_key="key-3")
    stage.step("rename a directory with a key")
    await ws.rename("/workspace/d", "/workspace/e", idempotency_key="key-4")
    stage.step("delete with a key")
    await ws.delete("/workspace/a.md", idempotency_key="key-5")
    stage.step("undo_commit with a key")
    [commit] = await ws.log(limit=1)
    await ws.undo_commit(commit, idempotency_key="key-6")
    stage.step("gc after a day", 86_400_000)
    await ws.gc(dry_run=False)


async def transaction(stage: Stage) -> None:
    ws = stage.workspace(content=ContentOptions(inline_text_below_bytes=16))
    stage.step("create a")
    await ws.write("/workspace/a.md", "a")
    stage.step("create b")
    await ws.write("/workspace/b.md", "b")
    stage.step(
        "two writes and an edit are one version; a new file; an asset; create and delete are nothing"
    )
    async with ws.transaction() as tx:
        await tx.write("/workspace/a.md", "aa")
        await tx.edit("/workspace/a.md", "aa", "aaa")
        await tx.write("/workspace/c.md", "seventeen bytes!\n")
        await tx.write("/workspace/d.md", "d")
        await tx.delete("/workspace/d.md")
    stage.step("a published version that is replaced is frozen")
    async with ws.transaction(idempotency_key="key-1") as tx:
        await tx.write("/workspace/a.md", "published")
        await tx.finalize("/workspace/a.md")
        await tx.write("/workspace/a.md", "draft")
    stage.step("a swap is two renames")
    async with ws.transaction() as tx:
        await tx.rename("/workspace/b.md", "/workspace/x.md")
        await tx.rename("/workspace/c.md", "/workspace/b.md")
        await tx.rename("/workspace/x.md", "/workspace/c.md")
    stage.step("delete and write are one update")
    async with ws.transaction() as tx:
        await tx.delete("/workspace/b.md")
        await tx.write("/workspace/b.md", "b again")


async def trimming(stage: Stage) -> None:
    ws = stage.workspace(retention=Retention(log_ms=2500))
    for text in "abc":
        stage.step(f"write {text}")
        await ws.write("/workspace/a.md", text)
    stage.step("delete")
    await ws.delete("/workspace/a.md")
    stage.step("gc: commits older than log_ms leave the log")
    await ws.gc(dry_run=False)


async def dropping(stage: Stage) -> None:
    ws = stage.workspace()
    stage.step("first commit: its id is the incarnation")
    await ws.write("/workspace/a.md", "before")
    stage.step("drop")
    await workspace(id=ID, records=stage.recorder).drop_namespace(stage.namespace)
    stage.step("another incarnation starts from 1")
    await ws.write("/workspace/a.md", "after")


ACTS: dict[str, Callable[[Stage], Awaitable[None]]] = {
    act.__name__: act
    for act in (
        files,
        assets,
        parts,
        artifacts,
        places,
        walk,
        expiry,
        collection,
        histories,
        purging,
        many,
        idempotency,
        transaction,
        trimming,
        dropping,
    )
}
READABLE = [name for name in ACTS if name != "many"]


async def perform(name: str, records: RecordStore) -> dict[str, Any]:
    stage = Stage(records, name)
    await ACTS[name](stage)
    return await stage.golden()


# -- what is written


@pytest.mark.parametrize("name", ACTS)
async def test_the_records_are_byte_for_byte_the_golden_ones(
    name: str, golden_folder: Path, regenerate: bool
) -> None:
    written = render(await perform(name, MemoryRecordStore()))
    file = golden_folder / f"{name}.json"
    if regenerate:
        file.write_text(written, encoding="utf-8")
    assert same_frames(file.read_text(encoding="utf-8")) == same_frames(written)


@pytest.mark.parametrize("name", ACTS)
async def test_sqlite_holds_the_same_records(
    name: str, golden_folder: Path, tmp_path: Path
) -> None:
    from storage_adapters import open_storage

    async with open_storage(f"sqlite:///{tmp_path / 'records.db'}?durability=normal") as opened:
        written = render(await perform(name, opened.records))
    golden = (golden_folder / f"{name}.json").read_text(encoding="utf-8")
    assert same_frames(golden) == same_frames(written)


def test_every_kind_of_record_is_in_a_golden_file(golden_folder: Path) -> None:
    kinds = {
        record["key"].split("\x01")[0]
        for name in ACTS
        for commit in load(golden_folder, name)["commits"]
        for record in commit.get("writes", [])
    }
    assert kinds == {
        "meta", "log", "head", "gone", "state", "was", "file", "art", "asset", "trash", "exp", "op",
        "job",
    }  # fmt: skip


# -- what is read


def load(folder: Path, name: str) -> dict[str, Any]:
    golden: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return golden


def trees(golden: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Record]]]:
    """Yield each commit with all records as they were after it."""
    records: dict[str, Record] = {}
    for commit in golden["commits"]:
        if "dropped" in commit:
            records = {}
            continue
        for key in commit["deletes"]:
            del records[key]
        records |= {shown["key"]: from_json(shown) for shown in commit["writes"]}
        yield commit, records


def at_the_end(golden: dict[str, Any]) -> dict[str, Record]:
    return list(trees(golden))[-1][1]


def live(records: dict[str, Record], now: int) -> dict[str, tuple[int, str]]:
    """Return {path: (version, sha256)} of the heads, by nothing but the format's description."""
    found: dict[str, tuple[int, str]] = {}
    for key, record in records.items():
        kind, field, *_ = key.split("\x01")
        value = json.loads(record.value)
        if kind == "head" and value.get("d", now + 1) > now:
            found["/" + field.replace("\x02", "/")] = (value["v"], value["h"])
    return found


@asynccontextmanager
async def in_memory(
    golden: dict[str, Any], records: dict[str, Record], folder: Path
) -> AsyncIterator[RecordStore]:
    del folder
    store = MemoryRecordStore()
    meta = decode_meta(records[META_KEY].value)
    store._partitions[golden["partition"]] = _Partition(SortedDict(records), meta)
    yield store


@asynccontextmanager
async def in_sqlite(
    golden: dict[str, Any], records: dict[str, Record], folder: Path
) -> AsyncIterator[RecordStore]:
    """Write the tables from outside, as their description says."""
    path = folder / "records.db"
    async with await SqliteRecordStore.open(path, durability="normal"):
        pass
    with closing(sqlite3.connect(path)) as tables, tables:
        tables.execute("insert into partitions(id, name) values (7, ?)", (golden["partition"],))
        for number, record in enumerate(records.values(), 1):
            body_id = None
            if record.body is not None:
                body_id = number
                tables.execute("insert into bodies values (?, ?)", (body_id, record.body))
            tables.execute(
                "insert into records(part, key, revision, at, value, body_id) values (7, ?, ?, ?, ?, ?)",
                (record.key, record.revision, record.at, record.value, body_id),
            )
    async with await SqliteRecordStore.open(path, durability="normal") as store:
        yield store


@asynccontextmanager
async def reopened(golden: dict[str, Any], opening: Any, folder: Path) -> AsyncIterator[Workspace]:
    records = at_the_end(golden)
    async with opening(golden, records, folder) as store:
        clock = FixedClock(golden["commits"][-1]["at"])
        assets = MemoryAssetStore(clock=clock)
        for ref, data in golden["assets"].items():
            await assets.put(_asset_from_json(data), PutOptions(key=ref, mime_type="x/y"))
        namespace = golden["partition"].split("\x01")[1]
        yield workspace(
            id=ID, namespace=namespace, storage=storage(records=store, assets=assets), clock=clock
        )


both = pytest.mark.parametrize("opening", [in_memory, in_sqlite])


@both
@pytest.mark.parametrize("name", READABLE)
async def test_golden_files_are_read(
    name: str, opening: Any, golden_folder: Path, tmp_path: Path
) -> None:
    golden = load(golden_folder, name)
    records = at_the_end(golden)
    expected = live(records, golden["commits"][-1]["at"])
    async with reopened(golden, opening, tmp_path) as ws:
        found = {file.path: (file.version, file.sha256) async for file in ws.walk("/")}
        assert found == expected
        for path, (version, sha256) in expected.items():
            assert hashlib.sha256(await ws.read_bytes(path)).hexdigest() == sha256
            history = await ws.history(path)
            assert history[0].version == version
            for entry in history:
                assert entry.commit.startswith(f"{entry.sequence}-")
                if entry.operation != "delete":
                    old = await ws.read_bytes(path, version=entry.version)
                    assert hashlib.sha256(old).hexdigest() == entry.sha256
        shown = {artifact.path for artifact in await ws.artifacts()}
        kept = {
            "/" + k.split("\x01")[1].replace("\x02", "/") for k in records if k.startswith("art")
        }
        assert shown == kept
        for artifact in await ws.artifacts():
            assert hashlib.sha256(await ws.resolve(artifact.uri)).hexdigest() == artifact.sha256
        heads = [key for key in records if key.startswith("log") and is_log_head(key)]
        assert len(await ws.log(limit=1000)) == len(heads)


@both
@pytest.mark.parametrize("name", READABLE)
async def test_golden_files_show_every_past_tree(
    name: str, opening: Any, golden_folder: Path, tmp_path: Path
) -> None:
    golden = load(golden_folder, name)
    kept = {key for key in at_the_end(golden) if key.startswith("log")}
    started = max(
        (i for i, commit in enumerate(golden["commits"]) if commit.get("dropped")), default=-1
    )
    then = [
        (commit["sequence"], live(records, commit["at"]))
        for commit, records in trees({**golden, "commits": golden["commits"][started + 1 :]})
        if f"log\x01{commit['sequence']:016d}\x01" in kept
    ]
    async with reopened(golden, opening, tmp_path) as ws:
        for sequence, expected in then:
            view = ws.at(sequence)
            page = await view.list("/", recursive=True)
            found = {file.path: (file.version, file.sha256) for file in page.entries}  # type: ignore[union-attr]
            assert found.items() <= expected.items()
            assert len(found) + page.expired == len(expected)
            for path, (_, sha256) in expected.items():
                if path in found:
                    data = await view.read_bytes(path)
                    assert hashlib.sha256(data).hexdigest() == sha256
                    continue
                with pytest.raises(NotFoundError) as refused:
                    await view.read_bytes(path)
                assert refused.value.code == ErrorCode.VERSION_EXPIRED


@both
@pytest.mark.parametrize("name", READABLE)
async def test_golden_files_are_gone_on_with(
    name: str, opening: Any, golden_folder: Path, tmp_path: Path
) -> None:
    golden = load(golden_folder, name)
    expected = live(at_the_end(golden), golden["commits"][-1]["at"])
    async with reopened(golden, opening, tmp_path) as ws:
        for path, (version, _) in expected.items():
            before = await ws.history(path)
            refused: str | None = None
            try:
                undone = await ws.undo(path)
            except (NotFoundError, StateError) as error:
                refused = error.code
            else:
                assert undone.version == version + 1
                assert undone.sha256 in {entry.sha256 for entry in before}
            assert refused in (None, ErrorCode.VERSION_EXPIRED, ErrorCode.NOTHING_TO_UNDO)
            written = await ws.write(path, "gone on with")
            assert await ws.read_text(path) == "gone on with"
            await ws.rename(path, path + ".moved")
            assert len(await ws.history(path + ".moved")) >= len(before)
            assert written.version > version
        await ws.gc(dry_run=False)


async def test_undo_brings_back_the_golden_text(golden_folder: Path, tmp_path: Path) -> None:
    async with reopened(load(golden_folder, "files"), in_memory, tmp_path) as ws:
        undone = await ws.undo("/workspace/a.md")
        assert undone.version == 6
        assert await ws.read_text("/workspace/a.md") == "three\nmore"
        assert await ws.at(2).read_text("/workspace/a.md") == "two\n"


async def test_a_remembered_result_is_returned(golden_folder: Path, tmp_path: Path) -> None:
    golden = load(golden_folder, "idempotency")
    golden["commits"] = [c for c in golden["commits"] if not c["step"].startswith("gc")]
    async with reopened(golden, in_memory, tmp_path) as ws:
        first = await ws.write("/workspace/a.md", "a", idempotency_key="key-1")
        assert (first.version, first.sequence) == (1, 1)
        artifact = await ws.finalize("/workspace/a.md", idempotency_key="key-2")
        assert (artifact.status, artifact.version) == ("final", 1)
        with pytest.raises(WorkspaceError):
            await ws.write("/workspace/a.md", "other", idempotency_key="key-1")


async def test_an_unfinished_purge_is_finished(golden_folder: Path, tmp_path: Path) -> None:
    golden = load(golden_folder, "purging")
    golden["commits"] = golden["commits"][:21]
    records = at_the_end(golden)
    assert any(key.startswith("job") for key in records)
    async with reopened(golden, in_memory, tmp_path) as ws:
        await ws.gc(dry_run=False)
        names = [change.path for entry in await ws.log(limit=100) for change in entry.changes]
        assert names.count("/workspace/e/99.md") == 1
        assert "/workspace/e/03.md" not in names
        with pytest.raises(NotFoundError) as refused:
            await ws.at(19).read_text("/workspace/e/03.md")
        assert refused.value.code == ErrorCode.VERSION_EXPIRED
