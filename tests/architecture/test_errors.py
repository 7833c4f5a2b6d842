"""The error surface is kept like API: codes only grow, every class can travel between processes."""

from __future__ import annotations

import inspect
import json
import pickle
from pathlib import Path

import pytest

from crux_workspace import errors
from crux_workspace.errors import ErrorCode, WorkspaceError

CODES = Path(__file__).with_name("error_codes.txt")
CLASSES = [
    value
    for name in errors.__all__
    if inspect.isclass(value := getattr(errors, name)) and issubclass(value, WorkspaceError)
]


def test_codes_are_the_recorded_ones() -> None:
    """A new code is added at the end of the file; none is ever removed or renamed."""
    recorded = CODES.read_text(encoding="utf-8").split()
    assert len(set(recorded)) == len(recorded)
    assert set(recorded) == {code.value for code in ErrorCode}
    assert all(code.name == code.value for code in ErrorCode)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_survives_pickling(kind: type[WorkspaceError]) -> None:
    error = kind(
        "What failed.", details={"path": "/workspace/a.md"}, hint="Do this.", retryable=True
    )

    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes

    assert type(back) is kind
    assert back.to_dict() == error.to_dict()
    assert str(back) == "What failed."
    assert json.loads(json.dumps(error.to_dict()))["code"] == error.code.value


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_is_known_by_its_public_place(kind: type[WorkspaceError]) -> None:
    assert kind.__module__ == "crux_workspace.errors"
    assert kind.__name__ in errors.__all__
    parameters = list(inspect.signature(kind.__init__).parameters.values())[2:]
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters)


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_code_can_be_carried(code: ErrorCode) -> None:
    assert WorkspaceError("x", code=code.value).code is code


def test_builtin_exceptions_catch_what_they_should() -> None:
    assert issubclass(errors.PathNotFoundError, FileNotFoundError)
    assert issubclass(errors.PathExistsError, FileExistsError)
    assert issubclass(errors.NotFoundError, LookupError)
    assert issubclass(errors.InvalidInputError, ValueError)
    assert issubclass(errors.AccessDeniedError, PermissionError)
    assert issubclass(errors.StateError, RuntimeError)


def test_every_code_belongs_to_a_class_that_says_how_to_react() -> None:
    """The classes below the root are the ten categories of the documentation; nothing stands outside them."""
    categories = {kind.__name__ for kind in WorkspaceError.__subclasses__()}
    assert categories == {
        "AccessDeniedError",
        "AlreadyExistsError",
        "ConflictError",
        "InternalError",
        "InvalidInputError",
        "LimitExceededError",
        "NotFoundError",
        "StateError",
        "StorageError",
        "UnsupportedError",
    }
