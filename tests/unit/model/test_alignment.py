"""An alignment is always correct, is minimal where that is affordable, and never takes for ever."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crux_workspace.model import alignment

SEQUENCES = st.lists(st.integers(0, 3), max_size=14)


def check_correct(old: list[int], new: list[int]) -> list[tuple[int, int, int, int]]:
    regions = alignment.changed_regions(old, new)
    i = j = 0
    for start, end, new_start, new_end in regions:
        assert old[i:start] == new[j:new_start]
        assert end > start or new_end > new_start
        assert not i or start > i
        i, j = end, new_end
    assert old[i:] == new[j:]
    return regions


def common_length(old: list[int], new: list[int]) -> int:
    row = [0] * (len(new) + 1)
    for item in old:
        above, row = row, [0] * (len(new) + 1)
        for j, other in enumerate(new):
            row[j + 1] = above[j] + 1 if item == other else max(above[j + 1], row[j])
    return row[-1]


@given(SEQUENCES, SEQUENCES)
def test_correct(old: list[int], new: list[int]) -> None:
    assert (check_correct(old, new) == []) == (old == new)


@given(SEQUENCES, SEQUENCES)
def test_minimal_without_anchors(old: list[int], new: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "_DEEPEST_ANCHORS", 0)
        regions = check_correct(old, new)
    kept = len(old) - sum(end - start for start, end, _, _ in regions)
    assert kept == common_length(old, new)


@given(SEQUENCES, SEQUENCES)
def test_correct_when_everything_is_too_large(old: list[int], new: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "_MOST_CELLS", 4)
        check_correct(old, new)


def test_windows_anchor_large_pieces_without_unique_items() -> None:
    rng = random.Random(3)
    old = [rng.randrange(3) for _ in range(70_000)]
    new = [*old[:100], 1, *old[100:35_000], *old[35_002:69_000], 2, *old[69_000:]]
    regions = check_correct(old, new)
    changed = sum(end - start + new_end - new_start for start, end, new_start, new_end in regions)
    assert changed <= 8


def _changed(items: list[int], rng: random.Random) -> list[int]:
    new = list(items)
    for _ in range(len(items) // 20):
        at = rng.randrange(len(new))
        new[at : at + rng.randrange(2)] = [rng.randrange(1000)] * rng.randrange(2)
    return new


SIZE = 20_000
SHAPES: dict[str, Callable[[random.Random], tuple[list[int], list[int]]]] = {
    "all equal, other item": lambda _: ([1] * SIZE, [2] * SIZE),
    "all equal, other length": lambda _: ([1] * SIZE, [1] * (SIZE // 2)),
    "nothing in common": lambda _: (list(range(SIZE)), list(range(SIZE, 2 * SIZE))),
    "reversed": lambda _: (list(range(SIZE)), list(range(SIZE))[::-1]),
    "shuffled": lambda rng: (list(range(SIZE)), rng.sample(range(SIZE), SIZE)),
    "periods": lambda _: ([1, 2] * (SIZE // 2), [2, 1, 1] * (SIZE // 3)),
    "coins": lambda rng: (rng.choices([0, 1], k=SIZE), rng.choices([0, 1], k=SIZE)),
    "few items, 5 % changed": lambda rng: (
        items := [rng.randrange(20) for _ in range(SIZE)],
        _changed(items, rng),
    ),
    "unique items, 5 % changed": lambda rng: (
        items := list(range(SIZE)),
        _changed(items, rng),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_twenty_thousand_items_take_little_time(shape: str) -> None:
    rng = random.Random(7)
    old, new = SHAPES[shape](rng)
    started = time.process_time()
    alignment.changed_regions(old, new)
    assert time.process_time() - started < 2
    check_correct(old, new)
