"""Store calls of every verb where there is much, beside those where there is little: they are the same."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.slices import fill
from benchmarks.verbs import ON_A_FILE, ON_HOT_FILES
from crux_workspace import Workspace, workspace
from crux_workspace.storage import Storage, memory_storage
from crux_workspace.testing import CountingRecordStore

FILE = "/workspace/hot/f0.md"


class Place:
    """A workspace whose store counts."""

    def __init__(self, storage: Storage) -> None:
        self.records = CountingRecordStore(storage.records)
        self.ws: Workspace = workspace(
            id="w", namespace="n", records=self.records, assets=storage.assets
        )

    async def calls(self, act: object) -> Counter[str]:
        """Return the store calls of the second time: what only the first call of a workspace asks is left out."""
        for _ in range(2):
            self.records.reset()
            await act(self.ws, FILE)  # type: ignore[operator]
        return self.records.counts


@pytest.fixture
async def little() -> Place:
    place = Place(memory_storage())
    for number in range(5):
        await place.ws.write(FILE, f"{number}")
    return place


async def test_no_verb_asks_more_of_a_long_history(storage: Storage, little: Place) -> None:
    much = Place(storage)
    for number in range(1_000):
        await much.ws.write(FILE, f"{number}")
    for name, act in ON_A_FILE.items():
        assert await much.calls(act) == await little.calls(act), name


async def test_no_verb_asks_more_among_many_files(storage: Storage, little: Place) -> None:
    much = Place(storage)
    for number in range(5):
        await much.ws.write(FILE, f"{number}")
    await fill(much.ws, [f"/workspace/d{n % 30}/f{n}.md" for n in range(3_000)], "x")
    for name, act in ON_HOT_FILES.items():
        assert await much.calls(act) == await little.calls(act), name


async def test_no_verb_asks_more_among_many_namespaces(storage: Storage, little: Place) -> None:
    much = Place(storage)
    for number in range(500):
        await much.ws.for_namespace(f"other{number}").write(FILE, "x")
    for number in range(5):
        await much.ws.write(FILE, f"{number}")
    for name, act in ON_HOT_FILES.items():
        assert await much.calls(act) == await little.calls(act), name
    much.records.reset()
    assert len((await much.ws.namespaces(limit=20)).names) == 20
    assert dict(much.records.counts) == {"partitions": 1}


async def test_a_directory_is_listed_at_one_cost_whatever_is_beside_and_below_it(
    storage: Storage,
) -> None:
    place = Place(storage)
    flat = [f"/workspace/flat/f{n}.md" for n in range(100)]
    await fill(place.ws, [*flat, *(f"/workspace/thin/d{n}/f.md" for n in range(100))], "x")
    costs = []
    for _ in range(2):
        for path in ("/workspace/flat", "/workspace/thin"):
            place.records.reset()
            assert len((await place.ws.list(path)).entries) == 100
            costs.append(place.records.counts)
        more = (f"/workspace/thin/d{n}/f{k}.md" for n in range(100) for k in range(30))
        await fill(place.ws, [*more, *(f"/workspace/beside/f{n}.md" for n in range(500))], "x")
    assert costs[:2] == costs[2:]
