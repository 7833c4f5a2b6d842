"""Random work on a few paths, judged after each step by what `docs/format.md` says of the records, without the codec.

The walks mix everything that has met badly before: time to live, counts of versions, pins, directories, purges, transactions and
undone commits, each on files in every condition.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import ContentOptions, Limits, Retention, Versioning, Workspace, workspace
from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.storage import MemoryAssetStore, MemoryRecordStore, Record, storage
from crux_workspace.storage.layout import partition_name
from crux_workspace.testing.doubles import FixedClock, SequentialIds

PARTITION = partition_name("w", "n")
FILES = [f"/workspace/{name}" for name in ("a", "b", "c", "d/a", "d/b", "e/a", "d/e/a")]
FOLDERS = ["/workspace/d", "/workspace/e", "/outputs/x", "/workspace/d/e"]
BROKEN = {ErrorCode.INTERNAL, ErrorCode.RECORD_CORRUPT, ErrorCode.ASSET_MISSING}


# -- what must hold


class Layout:
    """The records of a partition, by kind and key fields."""

    def __init__(self, records: list[Record]) -> None:
        self.kinds: dict[str, dict[tuple[str, ...], dict[str, Any]]] = {}
        self.bodies: dict[tuple[str, ...], bytes | None] = {}
        for record in records:
            kind, *fields = record.key.split("\x01")[:-1]
            self.kinds.setdefault(kind, {})[tuple(fields)] = json.loads(record.value)
            self.bodies[(kind, *fields)] = record.body

    def of(self, kind: str) -> dict[tuple[str, ...], dict[str, Any]]:
        return self.kinds.get(kind, {})

    def judge(self) -> None:
        self.counters_and_assets()
        self.places()
        self.artifacts()
        self.expiry()
        self.states()
        assert not self.of("job"), "a purge that returned is done"

    def counters_and_assets(self) -> None:
        heads = list(self.of("head").values())
        whole = [state for state in self.of("state").values() if not state.get("np")]
        counted = self.of("meta")[()]["n"]
        assert {name: number for name, number in counted.items() if number} == {
            name: number
            for name, number in {
                "live_files": len(heads),
                "live_bytes": sum(head.get("s", 0) for head in heads),
                "versions": len(heads) + len(whole),
                "history_bytes": sum(state.get("s", 0) for state in whole),
            }.items()
            if number
        }
        held = Counter(
            ref
            for one in heads + whole
            for ref in ([one["a"]] if "a" in one else [part[0] for part in one.get("ps", [])])
        )
        assert {ref: asset["n"] for (ref,), asset in self.of("asset").items()} == held

    def places(self) -> None:
        files = self.of("file")
        for (path,), head in self.of("head").items():
            assert (path,) not in self.of("gone")
            assert (self.bodies["head", path] is None) == ("a" in head or "ps" in head)
            place = files.get((head["id"],), {"p": _path(path)})
            assert place == {"p": _path(path)}
        for (path,), gone in self.of("gone").items():
            assert files[gone["id"],] == {"p": _path(path), "x": True}
        for (_, end), was in self.of("was").items():
            assert was["b"] < int(end)
            assert (was["id"],) in files

    def artifacts(self) -> None:
        shown = {
            key: head for key, head in self.of("head").items() if head.keys() & {"t", "ak", "by"}
        }
        for field, head in self.of("head").items():
            assert (
                len([1 for other in self.of("head").values() if other["id"] == head["id"]]) == 1
            ), field
        assert self.of("art").keys() == shown.keys()
        for key, head in shown.items():
            art = self.of("art")[key]
            version = head.get("pin", head["v"])
            assert (head.get("t") == "final") == ("pin" in head)
            assert (art["id"], art["v"], art["hv"]) == (head["id"], version, head["v"])
            assert art["t"] == head.get("t", "draft")
            assert (art.get("ak"), art.get("d")) == (head.get("ak"), head.get("d"))
            values = head if version == head["v"] else self.last_state(head["id"], version)
            for name, absent in (("m", "text/plain"), ("s", 0), ("h", ""), *_NONE):
                assert art.get(name, absent) == values.get(name, absent)

    def last_state(self, file_id: str, version: int) -> dict[str, Any]:
        keys = [key for key in self.of("state") if key[:2] == (file_id, f"{version:016d}")]
        assert keys, "a pinned version is kept"
        return self.of("state")[max(keys)]

    def expiry(self) -> None:
        filed = {
            (f"{head.get('df', head['d']):016d}", head["id"])
            for head in self.of("head").values()
            if "d" in head
        }
        assert self.of("exp").keys() == filed
        assert all(head.get("df", 0) <= head.get("d", 0) for head in self.of("head").values())

    def states(self) -> None:
        current = {head["id"]: head["v"] for head in self.of("head").values()}
        last: dict[tuple[str, str], str] = {}
        for file_id, version, start in sorted(self.of("state")):
            last[file_id, version] = start
        for (file_id, version, start), state in self.of("state").items():
            if file_id not in current:
                place = self.of("file")[file_id,]
                assert place.get("x")
                assert "pu" not in place
            is_last = last[file_id, version] == start and current.get(file_id) != int(version)
            assert state.get("np", False) != is_last, "only the last state of a version is whole"
            inline = (
                is_last and state.get("op") != "delete" and "a" not in state and "ps" not in state
            )
            assert (self.bodies["state", file_id, version, start] is not None) == inline


_NONE = tuple((name, None) for name in ("a", "u", "p", "md"))


def _path(field: str) -> str:
    return "/" + field.replace("\x02", "/")


# -- the walk


class Walk:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.records = MemoryRecordStore()
        self.clock = FixedClock()
        self.assets = MemoryAssetStore(clock=self.clock)
        self.ids = SequentialIds()
        self.ws = self.opened()

    def opened(self) -> Workspace:
        choose = self.random.choice
        return workspace(
            id="w",
            namespace="n",
            storage=storage(records=self.records, assets=self.assets),
            clock=self.clock,
            ids=self.ids,
            content=ContentOptions(inline_text_below_bytes=12),
            versioning=Versioning(max_versions=choose([None, None, 1, 2, 3])),
            limits=Limits(max_history_bytes=choose([None, None, 0, 30])),
            retention=Retention(ttl_ms=choose([None, 3000, 8000]), asset_grace_ms=2000),
        )

    async def step(self) -> None:
        kinds = {"reopen": 7, "wait": 5, "gc": 5, "purge": 6, "undo_commit": 7, "transaction": 15}
        [kind] = self.random.choices([*kinds, "verb"], [*kinds.values(), 55])
        refused: ErrorCode | None = None
        try:
            await (self.verb(self.ws) if kind == "verb" else getattr(self, kind)())
        except WorkspaceError as error:
            refused = error.code
        assert refused not in BROKEN

    async def reopen(self) -> None:
        self.ws = self.opened()

    async def wait(self) -> None:
        self.clock.advance(self.random.choice([500, 3000, 9000]))

    async def gc(self) -> None:
        await self.ws.gc(dry_run=False)

    async def purge(self) -> None:
        if self.random.random() < 0.8:
            await self.ws.delete(self.random.choice(FILES), purge=True)
        else:
            await self.ws.delete(self.random.choice(FOLDERS), purge=True, recursive=True)

    async def undo_commit(self) -> None:
        commits = await self.ws.log(limit=5)
        if commits:
            await self.ws.undo_commit(self.random.choice(commits))

    async def transaction(self) -> None:
        async with self.ws.transaction() as tx:
            for _ in range(self.random.randint(1, 5)):
                with contextlib.suppress(WorkspaceError):
                    await self.verb(tx)

    async def verb(self, ws: Any) -> None:
        choose = self.random.choice
        path, other = choose(FILES), choose(FILES)
        folder, target = choose(FOLDERS), choose(FOLDERS)
        content = choose(["x", "yy", b"bin", "long text over the limit", {"j": 1}, ""])
        status, kind = choose([None, None, "draft", "final"]), choose([None, None, "k"])
        changed: dict[str, Any] = choose(
            [{"metadata": {"a": choose(range(5))}}, {"status": "draft"}, {"status": "final"},
             {"status": None}, {"kind": None}, {"mime_type": "x/y"}]
        )  # fmt: skip
        work: Callable[[], Awaitable[Any]] = choose(
            [
                *[lambda: ws.write(path, content, status=status, kind=kind)] * 5,
                lambda: ws.append(path, "more"),
                lambda: ws.edit(path, "x", "z"),
                *[lambda: ws.set(path, **changed)] * 2,
                *[lambda: ws.rename(path, other)] * 2,
                lambda: ws.rename(path, other, overwrite=True),
                lambda: ws.copy(path, other),
                lambda: ws.copy(path, other, overwrite=True),
                *[lambda: ws.delete(path)] * 2,
                *[lambda: self.ws.undo(path) if ws is self.ws else ws.delete(path)] * 2,
                lambda: self.ws.redo(path) if ws is self.ws else ws.write(path, content),
                lambda: ws.finalize(path),
                lambda: ws.finalize(path, version=choose([1, 2, 3, 4])),
                lambda: ws.withdraw(path),
                lambda: ws.rename(folder, target),
                lambda: ws.copy(folder, target),
                lambda: ws.delete(folder, recursive=True),
            ]
        )
        await work()


@pytest.mark.parametrize("seed", range(60))
async def test_the_layout_stays_sound(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(60):
        await walk.step()
        found = (await walk.records.scan(PARTITION, "", limit=10_000, bodies=True)).records
        layout = Layout([record for record in found if not record.key.startswith("log\x01")])
        if layout.kinds:
            layout.judge()
