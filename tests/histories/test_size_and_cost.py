"""What long histories take, and what reading and writing them costs."""

from __future__ import annotations

import time

from crux_workspace.engine.compression import GROUP
from crux_workspace.engine.entry import PastState
from crux_workspace.engine.shrinking import SHRINK_EVERY
from crux_workspace.storage.layout import META_KEY, decode_meta
from tests.histories.conftest import FILE, House
from tests.support.long_texts import GrowingText, long_text

VERSIONS, SIZE = 1_000, 100_000


async def test_a_thousand_versions_of_a_large_text_take_a_few_percent(house: House) -> None:
    ws, text = house.make(), GrowingText(SIZE)
    texts = [text.next() for _ in range(VERSIONS)]
    for one in texts:
        await ws.write(FILE, one)
    states = await house.states()
    kept = sum(len(state.body or b"") for state in states.values())
    assert len(states) == VERSIONS - 1
    assert kept <= 0.035 * sum(len(one) for one in texts), "aim 3 %, asked 10 %"

    for version in range(1, VERSIONS + 1, 7):
        house.records.reset()
        assert await ws.read_text(FILE, version=version) == texts[version - 1]
        assert house.records.reads <= 3, "identity, version, chain"

    chains = [_links(states, version) for version in states]
    assert max(chains) < GROUP
    await house.check()


def _links(states: dict[int, PastState], version: int) -> int:
    links = 0
    while (base := states[version].state.base) is not None:
        version, links = base[0], links + 1
    return links


async def test_the_longest_chain_is_decoded_in_a_fraction_of_what_a_read_may_take(
    house: House,
) -> None:
    ws, text = house.make(), GrowingText(SIZE)
    texts = [text.next() for _ in range(GROUP + SHRINK_EVERY + 2)]
    for one in texts:
        await ws.write(FILE, one)
    states = await house.states()
    assert _links(states, 1) == GROUP - 1
    best = 1.0
    for _ in range(15):
        began = time.perf_counter()
        assert await ws.read_text(FILE, version=1) == texts[0]
        best = min(best, time.perf_counter() - began)
    assert best <= 0.010


async def test_a_small_overwrite_costs_what_it_did(house: House) -> None:
    ws = house.make()
    for number in range(3 * SHRINK_EVERY):
        house.records.reset()
        await ws.write(FILE, f"{number}" * 100)
        assert (house.records.counts["plan"], house.records.reads) == (1, 1)
    assert set((await house.encodings()).values()) == {None}


async def test_a_turn_costs_one_plan_and_two_reads_more(house: House) -> None:
    ws, costs = house.make(), []
    for number in range(3 * SHRINK_EVERY + 2):
        house.records.reset()
        file = await ws.write(FILE, long_text(number))
        assert file.sequence == number + 1, "one commit"
        costs.append((house.records.counts["plan"], house.records.reads))
    turns = [number for number, cost in enumerate(costs, 1) if cost != (1, 1)]
    assert turns == [SHRINK_EVERY + 1, 2 * SHRINK_EVERY + 1, 3 * SHRINK_EVERY + 1]
    # PostgreSQL and Redis guess first, with what they know (`storage.guessing`): that plan asks no server, and finds the turn in vain.
    in_vain = 1 if house.records.capabilities.notify else 0
    assert {costs[turn - 1] for turn in turns} == {(2 + in_vain, 3 + in_vain)}


async def test_versions_stay_raw_until_a_turn_and_the_newest_ended_one_after_it(
    house: House,
) -> None:
    ws = house.make()
    for number in range(1, SHRINK_EVERY + 1):
        await ws.write(FILE, long_text(number))
    assert set((await house.encodings()).values()) == {None}
    await ws.write(FILE, long_text(9))
    found = await house.encodings()
    assert [found[version] for version in range(1, 9)] == ["d"] * 6 + [None] * 2


async def test_the_last_version_of_a_group_is_compressed_by_itself(house: House) -> None:
    ws = house.make()
    for number in range(1, 2 * GROUP + SHRINK_EVERY + 2):
        await ws.write(FILE, long_text(number))
    found = await house.encodings()
    assert [version for version, encoding in found.items() if encoding == "z"] == [GROUP, 2 * GROUP]


async def test_a_page_of_history_costs_two_reads_however_long_it_is(house: House) -> None:
    ws = house.make()
    for number in range(300):
        await ws.write(FILE, f"{number}")
    for before in (None, 300, 150, 51):
        house.records.reset()
        entries = await ws.history(FILE, limit=50, before=before)
        assert len(entries) == 50
        assert house.records.reads == 2


async def test_quota_counts_sizes_not_what_they_take(house: House) -> None:
    ws = house.make()
    sizes = []
    for number in range(20):
        text = long_text(number)
        sizes.append(len(text.encode()))
        await ws.write(FILE, text)
    before = await ws.usage()
    assert before.history_bytes == sum(sizes[:-1])
    await ws.gc(dry_run=False)
    assert await ws.usage() == before
    [meta] = await house.storage.records.get_many(house.partition, [META_KEY])
    assert meta is not None
    assert decode_meta(meta.value).counters["history_bytes"] == sum(sizes[:-1])
