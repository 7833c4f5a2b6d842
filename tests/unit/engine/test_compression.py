"""Bodies of older versions: written smaller, read back exactly, and refused when they are not what was written."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from crux_workspace.engine.compression import (
    DIFFERENCE,
    GROUP,
    WHOLE,
    compressed,
    difference,
    group_end,
    restored,
    smallest,
)
from tests.support.long_texts import GrowingText


@given(st.lists(st.binary(max_size=400), min_size=1, max_size=8), st.booleans())
def test_a_chain_is_read_back_whatever_its_texts_are(texts: list[bytes], is_raw: bool) -> None:
    texts = [text * 3 or b"x" for text in texts]
    whole = texts[0] if is_raw else compressed(texts[0])
    differences = [difference(text, newer) for newer, text in pairwise(texts)]
    for length in range(len(texts)):
        sizes = [len(text) for text in texts[: length + 1]]
        found = restored(whole, is_raw=is_raw, differences=differences[:length], sizes=sizes)
        assert found == texts[length]


@pytest.mark.parametrize("size", [4_096, 64_000, 300_000, 2_000_000])
def test_a_difference_costs_little_more_than_what_differs(size: int) -> None:
    text = GrowingText(size, share=0.002)
    newer, older = text.next().encode(), text.next().encode()
    chosen = smallest(older, newer)
    assert chosen is not None
    encoding, frame = chosen
    assert encoding == DIFFERENCE
    assert len(frame) < size * 0.03
    sizes = [len(newer), len(older)]
    assert restored(newer, is_raw=True, differences=[frame], sizes=sizes) == older


def test_a_text_that_shares_nothing_is_compressed_by_itself() -> None:
    older, newer = GrowingText(8_000).next().encode(), random.Random(1).randbytes(8_000)
    chosen = smallest(older, newer)
    assert chosen is not None
    encoding, frame = chosen
    assert encoding == WHOLE
    assert restored(frame, is_raw=False, differences=[], sizes=[len(older)]) == older


def test_what_cannot_be_made_smaller_is_left_alone() -> None:
    assert smallest(random.Random(1).randbytes(8_000), None) is None
    assert smallest(random.Random(1).randbytes(8_000), random.Random(2).randbytes(8_000)) is None


def test_groups_are_of_equal_size_and_leave_nothing_out() -> None:
    ends = [group_end(version) for version in range(1, 3 * GROUP + 1)]
    assert ends == [GROUP] * GROUP + [2 * GROUP] * GROUP + [3 * GROUP] * GROUP


def _chain() -> tuple[bytes, list[bytes], list[int]]:
    text = GrowingText(5_000)
    texts = [text.next().encode() for _ in range(3)]
    frames = [difference(texts[1], texts[0]), difference(texts[2], texts[1])]
    return compressed(texts[0]), frames, [len(text) for text in texts]


def test_a_frame_that_claims_another_size_is_refused_before_it_is_read() -> None:
    whole, frames, sizes = _chain()
    bomb = zstandard.ZstdCompressor().compress(b"\0" * 500_000_000)
    with pytest.raises(ValueError, match="size of its text"):
        restored(bomb, is_raw=False, differences=frames, sizes=sizes)
    with pytest.raises(ValueError, match="size of its text"):
        restored(whole, is_raw=False, differences=[bomb, frames[1]], sizes=sizes)


def test_a_frame_without_a_size_is_refused() -> None:
    _, frames, sizes = _chain()
    endless = zstandard.ZstdCompressor(write_content_size=False).compress(b"\0" * 5_000)
    with pytest.raises(ValueError, match="size of its text"):
        restored(endless, is_raw=False, differences=frames, sizes=sizes)


@pytest.mark.parametrize("broken", range(3))
def test_no_cut_or_garbage_is_taken_for_a_frame(broken: int) -> None:
    whole, frames, sizes = _chain()
    for damage in (b"", b"garbage", [whole, *frames][broken][:-5]):
        chain = [whole, *frames]
        chain[broken] = damage
        with pytest.raises(ValueError):  # noqa: PT011 - the message is the library's
            restored(chain[0], is_raw=False, differences=chain[1:], sizes=sizes)
