"""The kit of permission stores on every store, what each promises beyond it, and broken ones that the kit must reject."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crux_workspace.agent import (
    Answer,
    CommandRequest,
    Grant,
    PermissionGate,
    PermissionStore,
    StoredPermissions,
    file_permission_store,
    memory_permission_store,
    record_permission_store,
)
from crux_workspace.agent.permissions.stores import MemoryPermissionStore
from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.storage import MemoryRecordStore
from crux_workspace.testing import PermissionStoreContract
from crux_workspace.testing.checks import Fresh
from crux_workspace.testing.permission_stores import PERMISSION_STORE_CHECKS
from storage_adapters import open_storage

ROOT = Path(__file__).parents[3]


class TestMemory(PermissionStoreContract):
    @pytest.fixture
    async def store(self) -> PermissionStore:
        return memory_permission_store()


class TestFile(PermissionStoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> PermissionStore:
        return file_permission_store(tmp_path / ".crux" / "permissions.json")


class TestRecordsInMemory(PermissionStoreContract):
    @pytest.fixture
    async def store(self) -> PermissionStore:
        return record_permission_store(MemoryRecordStore())


class TestRecordsInSqlite(PermissionStoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[PermissionStore]:
        storage = await open_storage(f"sqlite:///{tmp_path}/work.db?durability=normal")
        yield record_permission_store(storage.records)
        await storage.aclose()


class Forgets(MemoryPermissionStore):
    async def add(
        self, key: str, pattern: str, *, thread_id: str | None = None, confirm: str | None = None
    ) -> Grant:
        grant = await super().add(key, pattern, thread_id=thread_id, confirm=confirm)
        self._held = StoredPermissions((grant,), self._held.denied)
        return grant


class KeepsRevoked(MemoryPermissionStore):
    async def remove(self, grant_id: str) -> bool:
        return any(grant.grant_id == grant_id for grant in self._held.grants)


class MixesThreads(MemoryPermissionStore):
    async def forget(self, thread_id: str) -> int:
        return self._keep(lambda _: False)


class TakesAnything(MemoryPermissionStore):
    async def add(
        self, key: str, pattern: str, *, thread_id: str | None = None, confirm: str | None = None
    ) -> Grant:
        grant = Grant(f"{key}{pattern}{thread_id}", key, pattern, thread_id, 0)
        self._held = StoredPermissions((*self._held.grants, grant), self._held.denied)
        return grant


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (Forgets, "P-014"),
        (KeepsRevoked, "P-012"),
        (MixesThreads, "P-013"),
        (TakesAnything, "P-011"),
        (TakesAnything, "P-020"),
        (TakesAnything, "P-021"),
    ],
)
async def test_the_kit_rejects_a_broken_store(
    kind: type[MemoryPermissionStore], check: str
) -> None:
    with pytest.raises(AssertionError):
        await PERMISSION_STORE_CHECKS[check].run(kind(), Fresh())


# -- the file


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


async def test_the_file_has_the_documented_form_and_no_configured_entries(tmp_path: Path) -> None:
    path = tmp_path / "permissions.json"
    store = file_permission_store(path, clock=lambda: 7)
    await store.add("bash", "npm install")
    assert json.loads(path.read_text()) == {
        "version": 1,
        "grants": [{"key": "bash", "pattern": "npm install", "threadId": None, "createdAt": 7}],
        "deny": {},
    }


async def test_a_folder_that_is_made_for_the_file_stays_out_of_version_control(
    tmp_path: Path,
) -> None:
    made = tmp_path / "app" / ".crux" / "permissions.json"
    store = file_permission_store(made)
    await store.add("bash", "npm install")
    await store.add("bash", "npm test")
    assert (made.parent / ".gitignore").read_text() == "*\n"
    await file_permission_store(tmp_path / "p.json").add("bash", "npm install")
    assert not (tmp_path / ".gitignore").exists(), "a folder that was there is its owner's"


async def test_lists_written_by_hand_count_and_survive_a_change(tmp_path: Path) -> None:
    path = written(
        tmp_path / "p.json", {"version": 1, "allow": {"bash": ["ls"]}, "deny": {"bash": ["curl"]}}
    )
    store = file_permission_store(path)
    assert (await store.load()).denied["bash"] == ("curl",)
    await store.add("tool", "deploy")
    again = await file_permission_store(path).load()
    assert {grant.pattern for grant in again.grants} == {"ls", "deploy"}
    assert again.denied["bash"] == ("curl",)


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "null", "[]", '"x"', '{"version": 2}', '{"version": "1"}', "{}",
        '{"version": 1, "allow": {"bash": "ls"}}', '{"version": 1, "allow": []}', '{"version": 1, "deny": {"bash": [1]}}',
        '{"version": 1, "allow": {"nothing": ["x"]}}', '{"version": 1, "grants": [1]}', '{"version": 1, "more": 1}',
        '{"version": 1, "grants": [{"key": "bash", "pattern": "", "threadId": null, "createdAt": 1}]}',
        '{"version": 1, "grants": [{"key": "bash", "pattern": "ls", "threadId": 1, "createdAt": 1}]}',
        '{"version": 1, "grants": [{"key": "bash", "pattern": "ls", "threadId": null, "createdAt": true}]}',
        '{"version": 1, "grants": {"key": 1}}', "[" * 100_000, "\xff\xfe",
    ],
)  # fmt: skip
async def test_a_file_that_cannot_be_understood_is_refused_and_left_alone(
    content: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(content.encode("latin-1"))
    store = file_permission_store(path)
    for call in (store.load(), store.add("tool", "x"), store.remove("x"), store.forget("t")):
        with pytest.raises(StorageError) as caught:
            await call
        assert caught.value.code == ErrorCode.RECORD_CORRUPT
        assert str(path) in caught.value.message
    assert path.read_bytes() == content.encode("latin-1")


async def test_a_failed_write_grants_nothing_and_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    store = file_permission_store(path)
    await store.add("tool", "one")
    before = path.read_bytes()
    path.with_name("p.json.lock").unlink()
    path.with_name("p.json.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"symbolic|Too many"):
        await store.add("tool", "two")
    assert path.read_bytes() == before
    assert [grant.pattern for grant in (await store.load()).grants] == ["one"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p.json", "p.json.lock"]


_ADD = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from crux_workspace.agent import file_permission_store
async def main():
    store = file_permission_store(sys.argv[2])
    for n in range(15):
        await store.add("tool", f"{sys.argv[3]}-{n}")
asyncio.run(main())
"""


async def test_several_processes_lose_no_grant_and_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    store = file_permission_store(path)
    await store.add("tool", "mine")
    command = [sys.executable, "-c", _ADD, str(ROOT), str(path)]
    running = [subprocess.Popen([*command, str(number)]) for number in range(3)]
    for process in running:
        assert await asyncio.to_thread(process.wait, 50) == 0
    found = {grant.pattern for grant in (await store.load()).grants}
    assert found == {"mine", *(f"{number}-{n}" for number in range(3) for n in range(15))}


# -- records


async def test_another_instances_grant_is_seen_at_the_next_check() -> None:
    records = MemoryRecordStore()
    one, two = record_permission_store(records), record_permission_store(records)
    assert (await two.load()).grants == ()
    grant = await one.add("tool", "deploy")
    assert (await two.load()).grants == (grant,)
    await two.remove(grant.grant_id)
    assert (await one.load()).grants == ()


async def test_denials_in_the_store_are_kept_and_can_be_taken_back() -> None:
    records = MemoryRecordStore()
    store = record_permission_store(records)
    denial = await store.add_denial("bash", "curl")
    assert (await record_permission_store(records).load()).denied["bash"] == ("curl",)
    assert await store.remove(denial)
    assert (await store.load()).denied["bash"] == ()


async def test_what_is_unchanged_is_not_read_again(tmp_path: Path) -> None:
    for store in (
        file_permission_store(tmp_path / "p.json"),
        record_permission_store(MemoryRecordStore()),
    ):
        await store.add("tool", "deploy")
        assert await store.load() is await store.load()


class Fails(MemoryPermissionStore):
    """Fails as a store of one's own does, but for reading at first."""

    def __init__(self) -> None:
        super().__init__()
        self.loads = 2

    async def load(self) -> StoredPermissions:
        self.loads -= 1
        if self.loads < 0:
            raise OSError("disk")
        return await super().load()

    async def add(self, *_: object, **__: object) -> Grant:
        raise OSError("disk")

    async def remove(self, grant_id: str) -> bool:
        raise OSError("disk")

    async def forget(self, thread_id: str) -> int:
        raise OSError("disk")


async def test_a_store_of_ones_own_that_fails_is_a_typed_error_and_allows_nothing() -> None:
    gate = PermissionGate(store=Fails(), mode="interactive")
    command = CommandRequest("ls")
    waiting = (await gate.check(command, thread_id="t")).interrupt
    assert waiting is not None
    calls = (
        gate.resume("t", [Answer(waiting.interrupt_id, "always")]),
        gate.revoke("g"),
        gate.forget_thread("t"),
    )
    for call in calls:
        with pytest.raises(StorageError) as refused:
            await call
        assert refused.value.code == ErrorCode.STORE_UNAVAILABLE
        assert isinstance(refused.value.__cause__, OSError)
    assert (await gate.check(command, thread_id="t")).outcome == "interrupt"
    for reading in (gate.check(command), gate.grants()):
        with pytest.raises(StorageError):
            await reading


async def test_a_store_that_gives_something_else_is_a_typed_error() -> None:
    class Odd(MemoryPermissionStore):
        async def load(self) -> StoredPermissions:
            return None  # type: ignore[return-value]

    with pytest.raises(StorageError) as refused:
        await PermissionGate(store=Odd(), mode="interactive").check(CommandRequest("ls"))
    assert refused.value.code == ErrorCode.RECORD_CORRUPT
