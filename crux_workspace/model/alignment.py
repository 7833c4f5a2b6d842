"""Which lines of two texts stand for each other, in bounded time.

Lines that occur once on both sides anchor the alignment, so that moved braces and blank lines do not; between two anchors a longest
common subsequence is found with whole integers as bit rows. A piece too large for that, with no anchor in it, counts as replaced:
coarse, but correct.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise

__all__ = ["changed_regions"]

Region = tuple[int, int, int, int]
Pair = tuple[int, int]

# 65,536 lines against as many: about a second.
_MOST_CELLS = 2**32
_DEEPEST_ANCHORS = 8
_WINDOW_LINES = 20
_SHIFT = 3
_WINDOW_BITS = (1 << _SHIFT * _WINDOW_LINES) - 1
_SPREAD = 0x9E3779B97F4A7C15
_SPREAD_BITS = 0xFFFF


def changed_regions(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Region]:
    """Return what differs between two sequences, in order.

    Args:
        old: Items before.
        new: Items after.

    Returns:
        Regions ``(old_start, old_end, new_start, new_end)``, half open and not adjacent; what lies between two of them is equal
        on both sides. None for equal sequences.

    Cost:
        At most about ``len(old) * len(new) / 64`` machine steps, and never more than a fixed number for one unanchored piece.
    """
    symbols: dict[Hashable, int] = {}
    before = [symbols.setdefault(item, len(symbols)) for item in old]
    after = [symbols.setdefault(item, len(symbols)) for item in new]
    pairs = [(-1, -1), *sorted(_equal_pairs(before, after)), (len(before), len(after))]
    return [
        (i + 1, next_i, j + 1, next_j)
        for (i, j), (next_i, next_j) in pairwise(pairs)
        if next_i > i + 1 or next_j > j + 1
    ]


def _equal_pairs(old: list[int], new: list[int]) -> Iterator[Pair]:
    pieces = [(0, len(old), 0, len(new), 0)]
    while pieces:
        i, end_i, j, end_j, depth = pieces.pop()
        while i < end_i and j < end_j and old[i] == new[j]:
            yield i, j
            i += 1
            j += 1
        while i < end_i and j < end_j and old[end_i - 1] == new[end_j - 1]:
            end_i -= 1
            end_j -= 1
            yield end_i, end_j
        if i == end_i or j == end_j:
            continue
        rows, columns = _shared(old, new, (i, end_i, j, end_j))
        is_small = len(rows) * len(columns) <= _MOST_CELLS
        anchors = []
        if depth < _DEEPEST_ANCHORS:
            anchors = _anchors(old, new, (i, end_i, j, end_j), 1)
            if not anchors and not is_small:
                anchors = _anchors(old, new, (i, end_i, j, end_j), _WINDOW_LINES)
        if anchors:
            yield from anchors
            fences = [(i - 1, j - 1), *anchors, (end_i, end_j)]
            pieces += [
                (a + 1, next_a, b + 1, next_b, depth + 1)
                for (a, b), (next_a, next_b) in pairwise(fences)
                if next_a > a + 1 and next_b > b + 1
            ]
        elif is_small and rows:
            matched = _common_subsequence([old[at] for at in rows], [new[at] for at in columns])
            yield from ((rows[a], columns[b]) for a, b in matched)


def _shared(old: list[int], new: list[int], piece: Region) -> tuple[list[int], list[int]]:
    """Return where in both halves of a piece the items stand that occur in both."""
    i, end_i, j, end_j = piece
    common = set(old[i:end_i]).intersection(new[j:end_j])
    rows = [at for at in range(i, end_i) if old[at] in common]
    columns = [at for at in range(j, end_j) if new[at] in common]
    return rows, columns


def _anchors(old: list[int], new: list[int], piece: Region, width: int) -> list[Pair]:
    """Return the longest increasing run of pairs of items (with the ones before) that occur once on each side."""
    i, end_i, j, end_j = piece
    before = _windows(old[i:end_i], width)
    after = _windows(new[j:end_j], width)
    once_before = Counter(before)
    once_after = Counter(after)
    place_after = {item: at for at, item in enumerate(after) if once_after[item] == 1}
    pairs = [
        (at, place_after[item])
        for at, item in enumerate(before)
        if once_before[item] == 1
        and item in place_after
        and old[i + at] == new[j + place_after[item]]
    ]
    return [(i + a, j + b) for a, b in _longest_increasing(pairs)]


def _windows(items: list[int], width: int) -> list[int]:
    """Return a number for each item that tells it and the ones before it; different windows may share one."""
    if width == 1:
        return items
    window = 0
    windows = []
    for item in items:
        window = (window << _SHIFT ^ item * _SPREAD & _SPREAD_BITS) & _WINDOW_BITS
        windows.append(window)
    return windows


def _longest_increasing(pairs: list[Pair]) -> list[Pair]:
    """Return the longest run of pairs, given by their first numbers, whose second numbers increase too."""
    tails: list[int] = []
    tail_pairs: list[int] = []
    previous = [-1] * len(pairs)
    for index, (_, number) in enumerate(pairs):
        length = bisect_left(tails, number)
        if length == len(tails):
            tails.append(number)
            tail_pairs.append(index)
        else:
            tails[length] = number
            tail_pairs[length] = index
        if length:
            previous[index] = tail_pairs[length - 1]
    run = []
    index = tail_pairs[-1] if tail_pairs else -1
    while index >= 0:
        run.append(pairs[index])
        index = previous[index]
    return run[::-1]


def _common_subsequence(old: list[int], new: list[int]) -> list[Pair]:
    """Return a longest common subsequence as pairs of positions, last first.

    Bit ``i`` of row ``j`` is 0 where one more item of ``old`` lengthens what it has in common with the first ``j`` of ``new``
    (Crochemore, Iliopoulos, Pinzon and Reid 2001; Hyyrö 2004). Only every so many rows are kept, the others are computed again.
    """
    masks: dict[int, int] = {}
    for at, positions in _positions(old).items():
        masks[at] = _bits(positions, len(old))
    every = max(int(len(new) ** 0.5), 1)
    full = (1 << len(old)) - 1
    kept = [full]
    row = full
    for at, item in enumerate(new):
        row = _next_row(row, masks.get(item, 0), full)
        if (at + 1) % every == 0:
            kept.append(row)
    pairs: list[Pair] = []
    i, j = len(old), len(new)
    while i and j:
        first = (j - 1) // every * every
        rows = [kept[first // every]]
        for item in new[first:j]:
            rows.append(_next_row(rows[-1], masks.get(item, 0), full))
        while i and j > first:
            if rows[j - first] >> (i - 1) & 1:
                i -= 1
                continue
            j -= 1
            if rows[j - first] >> (i - 1) & 1:
                i -= 1
                pairs.append((i, j))
    return pairs


def _next_row(row: int, mask: int, full: int) -> int:
    lengthened = row & mask
    return ((row + lengthened) | (row - lengthened)) & full


def _positions(items: list[int]) -> dict[int, list[int]]:
    positions: dict[int, list[int]] = {}
    for at, item in enumerate(items):
        positions.setdefault(item, []).append(at)
    return positions


def _bits(positions: list[int], size: int) -> int:
    data = bytearray(size // 8 + 1)
    for at in positions:
        data[at >> 3] |= 1 << (at & 7)
    return int.from_bytes(data, "little")
