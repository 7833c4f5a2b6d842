"""Docstrings keep their promises: errors exist, codes exist, each verb tells its cost."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import crux_workspace
from crux_workspace import Workspace, errors
from crux_workspace import storage as storage_room
from crux_workspace.errors import ErrorCode
from crux_workspace.model.verbs import VERBS
from tests.architecture.docstrings import codes, raised, sections
from tests.architecture.public_surface import exports, members

NO_VERBS = {
    "aclose": "the end of the object",
    "acting_as": "a view; no store is asked",
    "as_context": "its text asks the store, when it is made",
    "as_sync": "a view; no store is asked",
    "as_tools": "their calls ask the store, each as its verb does",
    "at": "a view; it resolves at its first call",
    "describe": "no store is asked",
    "for_namespace": "a view; no store is asked",
    "inject": "resolves a namespace; no store is asked",
}
"""Methods of a workspace that are not in the verb table, and why."""


def documented() -> Iterator[tuple[str, Any]]:
    """Yield every public function and method with its name."""
    for module, name, value in exports():
        if inspect.isfunction(value):
            yield f"{module}.{name}", value
        elif inspect.isclass(value):
            for member, attribute in members(value):
                if inspect.isfunction(attribute):
                    yield f"{module}.{name}.{member}", attribute


DOCUMENTED = dict(documented())


@pytest.mark.parametrize("name", DOCUMENTED)
def test_errors_that_docstrings_name_exist(name: str) -> None:
    of_stores = () if name.startswith("crux_workspace.Work") else storage_room.__all__
    for error in raised(DOCUMENTED[name]):
        assert error in errors.__all__ or error in of_stores, f"{name} raises {error}"
    for code in codes(DOCUMENTED[name]):
        assert code in ErrorCode.__members__, f"{name} names {code}"


def workspace_methods() -> dict[str, Callable[..., Any]]:
    return {name: value for name, value in members(Workspace) if inspect.isfunction(value)}


def test_the_verb_table_has_every_method() -> None:
    assert set(workspace_methods()) == set(VERBS) | set(NO_VERBS)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_documented_in_full(name: str) -> None:
    found = sections(workspace_methods()[name])
    needed = {"", "Args", "Raises", "Cost", "Example"}
    assert needed <= set(found), f"{name} lacks {needed - set(found)}"
    returns = inspect.signature(workspace_methods()[name]).return_annotation
    assert returns == "None" or {"Returns", "Yields"} & set(found)


@pytest.mark.parametrize("name", VERBS)
def test_every_parameter_is_documented(name: str) -> None:
    method = workspace_methods()[name]
    described = sections(method)["Args"]
    for parameter in list(inspect.signature(method).parameters)[1:]:
        assert f"\n{parameter}:" in f"\n{described}", f"{name} says nothing of {parameter}"


@pytest.mark.parametrize("name", VERBS)
def test_the_cost_is_the_one_of_the_verb_table(name: str) -> None:
    told = sections(workspace_methods()[name])["Cost"]
    assert told.startswith(VERBS[name].cost), f"{name}: {told!r}, the table: {VERBS[name].cost!r}"


@pytest.mark.parametrize("name", crux_workspace.__all__)
def test_functions_of_the_root_tell_their_cost(name: str) -> None:
    value = getattr(crux_workspace, name)
    if inspect.isfunction(value):
        assert {"Args", "Returns", "Raises", "Cost", "Example"} <= set(sections(value))
