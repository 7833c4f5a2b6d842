"""What `maker` makes is what the class makes, and nothing more open."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from crux_workspace.model.changes import Change
from crux_workspace.model.files import ListResult, WorkspaceFile
from crux_workspace.model.values import Value, maker

KINDS: list[tuple[type[Value], dict[str, object]]] = [
    (WorkspaceFile, {"path": "/workspace/a.md", "id": "f" * 32, "metadata": {"a": 1}}),
    (Change, {"type": "create", "path": "/workspace/a.md", "version": 1}),
    (ListResult, {"entries": []}),
]


@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_it_makes_what_the_class_makes(kind: type[Value], given: dict[str, object]) -> None:
    made, expected = maker(kind)(**given), kind(**given)
    assert type(made) is kind
    assert made == expected
    assert repr(made) == repr(expected)
    assert made.to_dict() == expected.to_dict()
    assert copy.deepcopy(made) == copy.copy(made) == expected
    assert replace(made) == expected  # type: ignore[type-var]


@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_it_makes_frozen_values(kind: type[Value], given: dict[str, object]) -> None:
    made = maker(kind)(**given)
    for each in fields(kind):  # type: ignore[arg-type]
        with pytest.raises(FrozenInstanceError):
            setattr(made, each.name, None)
        with pytest.raises(FrozenInstanceError):
            delattr(made, each.name)
    assert not hasattr(made, "__dict__")


def test_it_takes_what_the_class_takes() -> None:
    make = maker(WorkspaceFile)
    assert make("/a", "x", size=3) == WorkspaceFile("/a", "x", size=3)
    with pytest.raises(TypeError):
        make()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        make("/a", unknown=1)  # type: ignore[call-arg]


def test_two_values_share_no_default() -> None:
    make = maker(ListResult)
    one, two = make([]), make([])
    one.failed["/a"] = "X"
    assert two.failed == {}
