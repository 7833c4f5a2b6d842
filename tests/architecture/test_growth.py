"""Store calls of every verb where there is much, beside those where there is little: they are the same."""

from __future__ import annotations

from collections import Counter

from benchmarks.slices import fill
from benchmarks.verbs import ON_A_FILE, ON_HOT_FILES, Act
from crux_workspace import Workspace, workspace
from crux_workspace.storage import Storage
from crux_workspace.testing import CountingRecordStore

FILE = "/workspace/hot/f0.md"


class Place:
    """A workspace whose store counts."""

    def __init__(self, storage: Storage, namespace: str = "n") -> None:
        self.records = CountingRecordStore(storage.records)
        self.ws: Workspace = workspace(
            id="w", namespace=namespace, records=self.records, assets=storage.assets
        )

    async def calls(self, act: Act) -> Counter[str]:
        """Return the store calls of the time that took the fewest.

        What only the first call of a workspace asks is left out, and plans that a store made by guessing in vain, which ask no server.
        """
        found: list[Counter[str]] = []
        for _ in range(3):
            self.records.reset()
            await act(self.ws, FILE)
            found.append(Counter(self.records.counts))
        return min(found, key=Counter.total)


async def little(storage: Storage, acts: dict[str, Act]) -> dict[str, Counter[str]]:
    """Return what verbs ask of a small namespace, before there is anything else."""
    place = Place(storage, "little")
    for number in range(5):
        await place.ws.write(FILE, f"{number}")
    return {name: await place.calls(act) for name, act in acts.items()}


async def test_no_verb_asks_more_of_a_long_history(storage: Storage) -> None:
    few, much = await little(storage, ON_A_FILE), Place(storage)
    for number in range(1_000):
        await much.ws.write(FILE, f"{number}")
    for name, act in ON_A_FILE.items():
        assert await much.calls(act) == few[name], name


async def test_no_verb_asks_more_among_many_files(storage: Storage) -> None:
    few, much = await little(storage, ON_HOT_FILES), Place(storage)
    for number in range(5):
        await much.ws.write(FILE, f"{number}")
    await fill(much.ws, [f"/workspace/d{n % 30}/f{n}.md" for n in range(3_000)], "x")
    for name, act in ON_HOT_FILES.items():
        assert await much.calls(act) == few[name], name


async def test_no_verb_asks_more_among_many_namespaces(storage: Storage) -> None:
    few, much = await little(storage, ON_HOT_FILES), Place(storage)
    for number in range(500):
        await much.ws.for_namespace(f"other{number}").write(FILE, "x")
    for number in range(5):
        await much.ws.write(FILE, f"{number}")
    for name, act in ON_HOT_FILES.items():
        assert await much.calls(act) == few[name], name
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
