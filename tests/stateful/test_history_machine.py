"""Random work on one long history, judged after each step: every version that is shown reads as it was written."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crux_workspace import ContentOptions, Versioning, Workspace, workspace
from crux_workspace.errors import NotFoundError, StateError
from crux_workspace.storage import Storage, memory_storage
from crux_workspace.storage.layout import partition_name
from storage_adapters import open_storage
from tests.support.long_texts import long_text
from tests.support.soundness import check_sound

pytestmark = pytest.mark.timeout(600)

PATHS = ("/workspace/a.md", "/workspace/b.md")
PICK = st.integers(0, 1_000)


class HistoryMachine(RuleBasedStateMachine):
    """One file, its texts by version, and whatever may be done to them."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.storage: Storage = self.run(self.open_storage())
        self.path = PATHS[0]
        self.texts: dict[int, str] = {}
        self.version = 0
        self.written = 0
        self.live = False

    async def open_storage(self) -> Storage:
        return memory_storage()

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def make(self, most: int | None = None) -> Workspace:
        return workspace(
            id="w",
            namespace="n",
            storage=self.storage,
            content=ContentOptions(inline_text_below_bytes=100_000),
            versioning=Versioning(max_versions=most),
        )

    def teardown(self) -> None:
        self.run(self.storage.aclose())
        self.loop.close()

    def note(self, file: Any, text: str) -> None:
        self.version, self.live = file.version, True
        self.texts[file.version] = text

    @initialize(count=st.integers(1, 20))
    def begin(self, count: int) -> None:
        self.write(count, None)

    @rule(count=st.sampled_from([1, 3, 8, 9, 33]), most=st.sampled_from([None, None, 2, 5, 40]))
    def write(self, count: int, most: int | None) -> None:
        ws = self.make(most)
        for _ in range(count):
            self.written += 1
            text = long_text(self.written) if self.written % 13 else "short"
            self.note(self.run(ws.write(self.path, text)), text)

    @rule(metadata=st.integers())
    @precondition(lambda self: self.live)
    def set(self, metadata: int) -> None:
        self.run(self.make().set(self.path, metadata={"n": metadata}))

    @rule()
    @precondition(lambda self: self.live)
    def rename(self) -> None:
        other = PATHS[self.path == PATHS[0]]
        self.run(self.make().rename(self.path, other))
        self.path = other

    @rule(pick=PICK)
    @precondition(lambda self: self.live)
    def finalize(self, pick: int) -> None:
        version = 1 + pick % self.version
        try:
            self.run(self.make().finalize(self.path, version=version))
        except NotFoundError:
            assert version not in self.shown(), "what is shown can be published"

    @rule()
    @precondition(lambda self: self.live)
    def withdraw(self) -> None:
        self.run(self.make().withdraw(self.path))

    @rule()
    @precondition(lambda self: self.live)
    def delete(self) -> None:
        self.run(self.make().delete(self.path))
        self.version += 1
        self.live = False

    @rule(pick=PICK)
    def restore(self, pick: int) -> None:
        version = 1 + pick % self.version
        try:
            file = self.run(self.make().undo(self.path, to_version=version))
        except (NotFoundError, StateError):
            assert version not in self.shown() or version == self.version
        else:
            self.note(file, self.texts[version])

    @rule(verb=st.sampled_from(["undo", "redo"]))
    @precondition(lambda self: self.live)
    def walk(self, verb: str) -> None:
        ws = self.make()
        try:
            file = self.run(getattr(ws, verb)(self.path))
        except (NotFoundError, StateError):
            return
        text = self.run(ws.read_text(self.path))
        assert text == self.texts[self.stands_for(file.version)]
        self.note(file, text)

    def stands_for(self, version: int) -> int:
        [entry] = self.run(self.make().history(self.path, limit=1))
        assert entry.version == version
        restored: int = entry.restored_from
        return restored

    @rule()
    def take_back(self) -> None:
        ws = self.make()
        [commit] = self.run(ws.log(limit=1))
        if commit.verb not in ("write", "delete", "undo", "redo"):
            return
        try:
            self.run(ws.undo_commit(commit))
        except (NotFoundError, StateError):
            return
        file = self.run(ws.stat(self.path))
        self.live = file is not None
        newest = self.run(ws.history(self.path, limit=1))[0].version
        if file is not None and newest > self.version:
            text = self.run(ws.read_text(self.path))
            assert text in self.texts.values()
            self.note(file, text)
        self.version = newest

    @rule(most=st.sampled_from([None, None, 1, 3, 20]))
    def gc(self, most: int | None) -> None:
        self.run(self.make(most).gc(dry_run=False))

    @rule()
    @precondition(lambda self: self.version > 60)
    def purge(self) -> None:
        self.run(self.make().delete(self.path, purge=True))
        assert self.shown() == {}
        self.texts, self.version, self.live = {}, 0, False
        self.write(1, None)

    def shown(self) -> dict[int, str]:
        """Return the text of every version that history shows."""
        ws = self.make()
        return {
            entry.version: self.run(ws.read_text(self.path, version=entry.version))
            for entry in self.run(ws.history(self.path))
            if entry.operation != "delete"
        }

    @invariant()
    def every_version_reads_as_it_was_written(self) -> None:
        shown = self.shown()
        assert shown == {version: self.texts[version] for version in shown}
        assert not self.live or self.version in shown
        self.run(check_sound(self.storage.records, partition_name("w", "n")))


class OnSqlite(HistoryMachine):
    async def open_storage(self) -> Storage:
        self.folder = tempfile.mkdtemp()
        return await open_storage(f"sqlite:///{self.folder}/work.db?durability=normal")

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(Path(self.folder))


TestMemory = HistoryMachine.TestCase
TestSqlite = OnSqlite.TestCase
