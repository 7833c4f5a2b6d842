"""The example of a third-party store: installed as a package, found by its entry point, certified by the kits, killed and raced."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from crux_workspace.storage import MinimalStore, RecordStore
from crux_workspace.testing import MinimalStoreContract, RecordStoreContract
from storage_adapters.journaled import JournaledRecordStore, journaled
from tests.support.crew import Crew, in_ci

EXAMPLE = Path(__file__).parents[2] / "examples" / "folder_store"
ROUNDS = 12 if in_ci() else 5


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The example, installed into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--no-build-isolation",
            ),
            *("--disable-pip-version-check", "--target", str(target), str(EXAMPLE)),
        ],
        check=True,
        cwd=target,
    )
    sys.path.insert(0, str(target))
    yield target
    sys.path.remove(str(target))
    for name in [name for name in sys.modules if name.split(".")[0] == "folder_store"]:
        del sys.modules[name]


@pytest.fixture
def crew() -> Iterator[Crew]:
    with Crew().at_work() as crew:
        yield crew


class TestFolderStore(MinimalStoreContract):
    @pytest.fixture
    async def store(self, installed: Path, tmp_path: Path) -> MinimalStore:
        from folder_store import FolderStore  # type: ignore[import-not-found]

        store: MinimalStore = FolderStore(tmp_path)
        return store

    async def another(self, store: MinimalStore) -> MinimalStore:
        return store


class TestJournaledFolderStore(RecordStoreContract):
    @pytest.fixture
    async def store(self, installed: Path, tmp_path: Path) -> AsyncIterator[JournaledRecordStore]:
        from folder_store import FolderStore

        self.below = FolderStore(tmp_path)
        async with journaled(self.below, durable=True) as store:
            yield store

    async def another(self, store: RecordStore) -> RecordStore:
        return journaled(self.below, durable=True)


WRITER = """
import asyncio, json, sys
from crux_workspace import open_workspace
url, who = sys.argv[1], sys.argv[2]
async def main():
    async with open_workspace(url) as ws:
        while True:
            async def step(tx):
                seen = await tx.read_json("/workspace/count") if await tx.exists("/workspace/count") else {}
                seen[who] = seen.get(who, 0) + 1
                await tx.write("/workspace/count", seen)
                await tx.write(f"/workspace/{who}/{seen[who] % 3}", str(seen[who]))
                await tx.write("/workspace/large", str(seen[who]) * 20_000)
                return seen[who]
            try:
                done = await ws.transaction(step, max_attempts=50)
            except Exception as error:
                if getattr(error, "code", "") != "TRANSACTION_CONFLICT":
                    raise
                continue
            print(json.dumps(done), flush=True)
asyncio.run(main())
"""

READER = """
import asyncio, json, sys
from crux_workspace import open_workspace
async def main():
    async with open_workspace(sys.argv[1]) as ws:
        found = {"count": await ws.read_json("/workspace/count"), "log": len([e async for e in pages(ws)])}
        for who in ("a", "b"):
            n = found["count"].get(who, 0)
            if n:
                assert await ws.read_text(f"/workspace/{who}/{n % 3}") == str(n), "torn"
        large = await ws.read_text("/workspace/large")
        assert large[: len(large) // 20_000] * 20_000 == large
        print(json.dumps(found))
async def pages(ws):
    cursor = None
    while True:
        page = await ws.log(limit=100, cursor=cursor)
        for entry in page:
            yield entry
        if len(page) < 100:
            return
        cursor = page[-1].cursor
asyncio.run(main())
"""


@pytest.mark.timeout(60 + 15 * ROUNDS)
async def test_two_processes_race_and_are_killed(
    installed: Path, tmp_path: Path, crew: Crew
) -> None:
    url = f"folder://{tmp_path}/store"
    chance = random.Random(7)
    told = {"a": 0, "b": 0}
    before = 0
    for _ in range(ROUNDS):
        workers = {who: crew.start(WRITER, url, who) for who in told}
        for who, worker in workers.items():
            told[who] = max(told[who], worker.first())
        await asyncio.sleep(chance.uniform(0, 0.3))
        for who, worker in workers.items():
            told[who] = max([told[who], *worker.kill()])
        (found,) = crew.start(READER, url).finish()
        for who, last in told.items():
            assert last <= found["count"][who] <= last + 1, "acknowledged, and at most one more"
            told[who] = found["count"][who]
        assert found["log"] == sum(found["count"].values()) > before, "each once, none torn"
        before = found["log"]


def test_the_url_is_found_by_the_entry_point(installed: Path, tmp_path: Path, crew: Crew) -> None:
    code = """
import asyncio, json, sys
from crux_workspace import open_workspace
async def main():
    async with open_workspace(sys.argv[1]) as ws:
        await ws.write("/workspace/a.md", "one")
        await ws.write("/workspace/a.bin", b"\\x00" * 100_000)
        async with ws.watch(start="oldest") as events:
            event = await anext(events)
        print(json.dumps([event.path, [e.verb for e in await ws.log()]]))
asyncio.run(main())
"""
    (printed,) = crew.start(code, f"folder://{tmp_path}/new/store").finish()
    assert printed == ["/workspace/a.md", ["write", "write"]]
    assert (tmp_path / "new" / "store.assets").is_dir()


def test_what_its_page_tells_to_run_works(installed: Path) -> None:
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{installed}:{root}", "PATH": ""},
        timeout=50,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("verdict: conforms") == 2, ran.stdout
    assert "minimal: FolderStore" in ran.stdout
