"""The oracle itself: a few stories whose ends are known."""

from __future__ import annotations

import pytest

from crux_workspace.errors import NothingToUndoError, VersionNotFoundError, WorkspaceError
from crux_workspace.model.settings import Limits
from crux_workspace.testing import FixedClock
from crux_workspace.testing.model import ModelEdit, ModelWorkspace

A, B = "/workspace/a", "/workspace/b"


@pytest.fixture
def model(clock: FixedClock) -> ModelWorkspace:
    return ModelWorkspace(clock=clock)


def content(model: ModelWorkspace, path: str = A) -> object:
    return model.read(path).content


def test_the_walk_of_undo(model: ModelWorkspace) -> None:
    for text in ("a", "b", "c"):
        model.write(A, text)
    model.undo(A)
    model.undo(A)
    model.write(A, "x")
    model.undo(A)
    assert content(model) == "a"
    with pytest.raises(NothingToUndoError):
        model.undo(A)
    model.redo(A)
    assert content(model) == "x"


def test_a_refused_verb_leaves_everything_as_it_was(clock: FixedClock) -> None:
    model = ModelWorkspace(clock=clock, limits=Limits(max_files=1))
    model.write(A, "a")
    before = (model.usage(), model.sequence, dict(model.live))
    with pytest.raises(WorkspaceError):
        model.write(B, "b")
    assert (model.usage(), model.sequence, dict(model.live)) == before


def test_every_past_tree_is_kept(model: ModelWorkspace) -> None:
    model.write(A, "one")
    model.rename(A, B)
    model.write(A, "two")
    model.rename(A, B, overwrite=True)
    model.undo_commit(4)
    trees = [model.at(number).paths() for number in range(6)]
    assert trees == [[], [A], [B], [A, B], [B], [A, B]]
    assert model.at(3).read(B).content == model.at(5).read(B).content == "one"
    assert model.at(4).read(B).content == "two"


def test_old_versions_are_collected(clock: FixedClock) -> None:
    model = ModelWorkspace(clock=clock, max_versions=2)
    for text in ("1", "2", "3"):
        model.write(A, text)
    with pytest.raises(VersionNotFoundError):
        model.read(A, 1)
    assert [version.number for version in model.history(A)] == [3, 2]


def test_files_expire(clock: FixedClock) -> None:
    model = ModelWorkspace(clock=clock, ttl_ms=10)
    model.write(A, "1")
    clock.advance(10)
    assert not model.tree.exists(A)
    assert model.undo(A).version == 3


def test_edits(model: ModelWorkspace) -> None:
    model.write(A, "aaaa")
    model.edit(A, [ModelEdit("aa", "X", 2), ModelEdit("a", "b", replace_all=True)])
    assert content(model) == "bXb"
