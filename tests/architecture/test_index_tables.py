"""The index knows the verbs by name; what it believes of their parameters is held against the real methods."""

from __future__ import annotations

import inspect

import pytest

from crux_workspace import Workspace
from crux_workspace.index.methods import PATHS, REPLANNED, Paths
from crux_workspace.model.verbs import VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_the_index_finds_the_paths_of_each_verb_where_the_method_takes_them(verb: str) -> None:
    given = PATHS.get(verb, Paths())
    taken = list(inspect.signature(getattr(Workspace, verb)).parameters.values())[1:]
    names = [each.name for each in taken]
    positional = [each.name for each in taken if each.kind is not each.KEYWORD_ONLY]
    if given.name is None:
        assert not {"path", "paths", "src"} & set(names)
        return
    assert given.name in names
    if given.position is not None:
        assert positional[given.position] == given.name
    else:
        assert given.name not in positional
    if given.to is not None:
        assert positional[1] == given.to


def test_tables_name_verbs_only() -> None:
    assert set(PATHS) <= VERBS.keys()
    assert set(REPLANNED) <= {name for name, verb in VERBS.items() if verb.mutates}
