"""What is stored as JSON comes back equal; what would not is refused with its place, never its value."""

from __future__ import annotations

import datetime
import json
import math
from collections import OrderedDict
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crux_workspace.errors import InvalidInputError
from crux_workspace.model import jsontext

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("aé\n\x00"), inner),
    max_leaves=12,
)


class Colour(IntEnum):
    RED = 1


@dataclass
class Point:
    x: int = 1


@given(VALUES)
def test_round_trip(value: Any) -> None:
    data = jsontext.dump_compact(value)
    assert jsontext.load(data) == value
    text = jsontext.pretty(data)
    assert json.loads(text) == value
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_forms() -> None:
    value = {"b": [1, "é\u2028😀", {}], "a": None}
    assert jsontext.dump_compact(value) == '{"b":[1,"é\u2028😀",{}],"a":null}'.encode()
    assert (
        jsontext.pretty(jsontext.dump_compact(value))
        == '{\n  "b": [\n    1,\n    "é\u2028😀",\n    {}\n  ],\n  "a": null\n}\n'
    )
    assert jsontext.pretty(b'"text"') == '"text"\n'


@pytest.mark.parametrize(
    "value", [OrderedDict(a=1), Colour.RED, True, type("Name", (str,), {})("x")]
)
def test_subclasses_of_json_types_count(value: Any) -> None:
    assert jsontext.load(jsontext.dump_compact(value)) == value


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [(1, 2)]}, "$.a[0]"),
        (math.nan, "$"),
        ([1, math.inf], "$[1]"),
        ([-math.inf], "$[0]"),
        ({"when": datetime.date(2024, 1, 2)}, "$.when"),
        ({"secret point": Point()}, '$["secret point"]'),
        ({"p": Path("/a")}, "$.p"),
        ([{1, 2}], "$[0]"),
        ([[b"bytes"]], "$[0][0]"),
        ({"a": {1: "x"}}, "$.a"),
        ({None: "x"}, "$"),
        ({"a": {"\ud800": 1}}, "$.a"),
        ({"a": [1, {"b": "x\udfff"}]}, "$.a[1].b"),
        (object(), "$"),
        (1j, "$"),
        ([10**4200], "$[0]"),
        ([-(10**9999)], "$[0]"),
        ([1, {"a": [], "b": [frozenset()]}], "$[1].b[0]"),
    ],
)
def test_refused(value: object, place: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        jsontext.dump_compact(value)
    error = caught.value
    assert error.code == "INVALID_CONTENT"
    assert error.details == {"place": place}
    assert f" {place} " in error.message
    assert "Point(" not in error.message


def test_cycles_are_refused() -> None:
    inner: list[object] = []
    inner.append({"again": inner})
    with pytest.raises(InvalidInputError, match="holds itself"):
        jsontext.check_json({"a": inner})


def test_the_same_object_twice_is_no_cycle() -> None:
    shared = [1]
    jsontext.check_json({"a": shared, "b": [shared, shared]})


def test_depth() -> None:
    value: object = 1
    for _ in range(jsontext.MAX_DEPTH):
        value = [value]
    data = jsontext.dump_compact(value)
    assert jsontext.load(data) == value
    assert jsontext.pretty(data)
    with pytest.raises(InvalidInputError, match="deeper than 500"):
        jsontext.check_json([value])


def test_long_places_are_cut() -> None:
    value: object = object()
    for _ in range(400):
        value = {"k" * 100: value}
    with pytest.raises(InvalidInputError) as caught:
        jsontext.check_json(value)
    assert len(caught.value.message) < 1200
