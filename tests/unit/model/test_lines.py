"""Lines end at LF and CRLF only, and windows lose and split nothing."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crux_workspace.errors import InvalidInputError
from crux_workspace.model import lines

TEXTS = st.text("ab\n\r\x0c\x0b\x1c\x85\u2028é€😀", max_size=30)


def expected_lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text)


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n", 1), ("\n\n", 2), ("a\rb\x0cc\u2028d", 1)],
)
def test_count(text: str, count: int) -> None:
    assert lines.count_lines(text) == count


@given(TEXTS)
def test_lines_join_to_the_text(text: str) -> None:
    assert lines.split_lines(text) == expected_lines(text)
    assert "".join(lines.split_lines(text)) == text
    assert lines.count_lines(text) == len(lines.split_lines(text))


@given(TEXTS, st.integers(1, 8), st.integers(0, 8))
def test_window_is_the_lines_between(text: str, start: int, more: int) -> None:
    parts = expected_lines(text)
    if start > max(len(parts), 1):
        with pytest.raises(InvalidInputError, match=f"has {len(parts)} line"):
            lines.window(text, start, start + more)
        return
    wanted = "".join(parts[start - 1 : start + more])
    assert lines.window(text, start, start + more) == (wanted, len(parts))
    assert lines.window(text, start, None) == ("".join(parts[start - 1 :]), len(parts))
    assert lines.window(text, None, start + more)[0] == "".join(parts[: start + more])


@pytest.mark.parametrize(("start", "end"), [(0, None), (-1, 2), (3, 2), (None, 0), (4, None)])
def test_refused_windows(start: int | None, end: int | None) -> None:
    with pytest.raises(InvalidInputError) as caught:
        lines.window("a\nb\r\nc", start, end)
    assert caught.value.code == "INVALID_ARGUMENT"
    assert caught.value.details == {"total_lines": 3}
    assert "3 lines" in caught.value.message


def test_each_line_keeps_its_ending() -> None:
    text = "one\r\ntwo\nthree\rstill three\r\nfour"
    assert lines.window(text, 2, 3) == ("two\nthree\rstill three\r\n", 4)
    assert lines.window(text, 4, 99) == ("four", 4)


@given(TEXTS, st.integers(0, 40), st.none() | st.integers(0, 40))
def test_byte_window_never_splits(text: str, offset: int, limit: int | None) -> None:
    data = text.encode()
    piece, start, truncated = lines.byte_window(data, offset, limit)
    encoded = piece.encode()
    assert data[start : start + len(encoded)] == encoded
    assert start <= offset
    assert min(offset, len(data)) - start < 4
    assert truncated == (encoded != data)
    assert limit is None or len(encoded) <= limit
    assert limit is None or len(encoded) > limit - 4 or start + len(encoded) == len(data)


@given(TEXTS, st.integers(4, 9))
def test_pieces_join_to_the_whole(text: str, limit: int) -> None:
    data = text.encode()
    pieces, at = [], 0
    while at < len(data):
        piece, start, _ = lines.byte_window(data, at, limit)
        assert start == at
        pieces.append(piece)
        at += len(piece.encode())
    assert "".join(pieces) == text


def test_byte_window_edges() -> None:
    data = "aé😀".encode()
    assert lines.byte_window(data, 0, None) == ("aé😀", 0, False)
    assert lines.byte_window(data, 2, 2) == ("é", 1, True)
    assert lines.byte_window(data, 6, None) == ("😀", 3, True)
    assert lines.byte_window(data, 99, 5) == ("", 7, True)
    assert lines.byte_window(b"", 3, 5) == ("", 0, False)
    for offset, limit in ((-1, None), (0, -1)):
        with pytest.raises(InvalidInputError, match="below 0"):
            lines.byte_window(data, offset, limit)


def test_large_texts_are_cut_quickly() -> None:
    text = "0123456789\n" * 1_000_000
    started = time.process_time()
    assert lines.window(text, 999_000, 999_001) == ("0123456789\n" * 2, 1_000_000)
    assert time.process_time() - started < 1.5
