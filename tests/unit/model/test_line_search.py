"""Searching a text in pieces finds what searching it whole finds."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from crux_workspace.model import line_search, matching
from crux_workspace.model.line_search import LineSearch
from crux_workspace.model.matching import GrepMatch, compile_query

QUERIES = [
    ("a", False),
    ("ab", False),
    ("é\r", False),
    ("^a", True),
    ("b$", True),
    (r"\ba+\b", True),
    ("aa|b.{0,5}", True),
    (r"\Ax", True),
    (r" \z", True),
    ("a{1,9}b?", True),
]
LETTERS = ["a", "b", "é", "\n", "\r\n", "\r", "x ", " ", " ", "字"]


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks, long lines, what overlaps and what is shown so small that short texts meet their ends."""
    monkeypatch.setattr(line_search, "_BLOCK", 64)
    monkeypatch.setattr(line_search, "_LONG_LINE", 200)
    monkeypatch.setattr(line_search, "_OVERLAP", 40)
    monkeypatch.setattr(line_search, "MAX_LINE_CHARACTERS", 100)
    monkeypatch.setattr(matching, "MAX_LINE_CHARACTERS", 100)


def _text(chance: random.Random, length: int) -> str:
    return "".join(chance.choice(LETTERS) for _ in range(chance.randint(0, length)))


def _pieces(chance: random.Random, text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        step = chance.randint(1, 120)
        yield text[at : at + step]
        at += step


def _place(match: GrepMatch) -> tuple[object, ...]:
    return match.line, match.column, match.before, match.after


@pytest.mark.parametrize("seed", range(20))
def test_pieces_are_searched_like_the_whole(seed: int, little_room: None) -> None:
    del little_room
    chance = random.Random(seed)
    for _ in range(100):
        text = _text(chance, 400)
        if chance.random() < 0.3:
            text = text.replace("\n", "a") + "\n" + _text(chance, 100)
        expression, regex = chance.choice(QUERIES)
        query = compile_query(expression, regex=regex, ignore_case=chance.random() < 0.3)
        limit, context = chance.choice([1, 2, 5, 1000]), chance.choice([0, 0, 1, 2, 5])
        search = LineSearch(query, path="/p", limit=limit, context_lines=context)
        for piece in _pieces(chance, text):
            if search.is_done:
                break
            search.feed(piece)
        else:
            search.end()
        whole = query.search(text, path="/p", limit=limit, context_lines=context)
        assert list(map(_place, search.matches)) == list(map(_place, whole))


def test_a_match_across_the_pieces_of_a_long_line_is_found_once() -> None:
    needle = "needle " * 3
    line = ("x" * ((1 << 20) - 10) + needle) * 3
    search = LineSearch(compile_query(needle), path="/p", limit=10)
    for start in range(0, len(line), 1 << 18):
        search.feed(line[start : start + (1 << 18)])
    search.feed("\nneedle needle needle ")
    search.end()
    length = (1 << 20) - 10 + len(needle)
    assert [(m.line, m.column) for m in search.matches] == [
        *((1, n * length + (1 << 20) - 9) for n in range(3)),
        (2, 1),
    ]
    assert all(needle in match.text and len(match.text) <= 2_000 for match in search.matches)


def test_an_expression_does_not_take_the_end_of_a_piece_for_the_end_of_a_line() -> None:
    search = LineSearch(compile_query("^x|x$|\\bx\\b", regex=True), path="/p", limit=10)
    search.feed("x" * (3 << 20))
    search.end()
    assert [match.column for match in search.matches] == [1, 3 << 20]


def test_no_more_is_wanted_once_enough_was_found_with_what_follows_it() -> None:
    search = LineSearch(compile_query("x"), path="/p", limit=1, context_lines=2)
    search.feed("x\n" + "1" * line_search._BLOCK + "\n")
    done = [search.is_done]
    search.feed("2" * line_search._BLOCK + "\n")
    done.append(search.is_done)
    assert done == [False, True]
    [match] = search.matches
    assert [line[0] for line in match.after] == ["1", "2"]


def test_nothing_is_wanted_of_no_matches() -> None:
    search = LineSearch(compile_query("x"), path="/p", limit=0, context_lines=1)
    assert search.is_done
    search.end()
    assert search.matches == []


def test_within_a_long_line_enough_is_enough() -> None:
    search = LineSearch(compile_query("x"), path="/p", limit=2)
    search.feed("x" * (2 << 20))
    assert search.is_done
    assert len(search.matches) == 2


def test_it_stops_when_it_is_told_to() -> None:
    stop = threading.Event()
    search = LineSearch(compile_query("x"), path="/p", limit=10**6, stop=stop)
    stop.set()
    search.feed("x" * (4 << 20))
    assert search.is_done
    assert search.matches == []
