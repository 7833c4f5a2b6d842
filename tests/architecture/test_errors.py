"""The error surface is kept like API: codes only grow, every class can travel between processes."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import crux_workspace
import storage_adapters
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


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_code_says_what_to_do(code: ErrorCode) -> None:
    """One sentence, no two codes the same; an error that brings no hint of its own has it."""
    assert re.fullmatch(r"[A-Z].{12,99}\.", code.hint)
    assert [other for other in ErrorCode if other.hint == code.hint] == [code]
    for own in (None, ""):
        error = WorkspaceError("What failed.", code=code, hint=own)
        assert error.hint == code.hint
        assert error.to_dict()["hint"] == code.hint
    assert WorkspaceError("What failed.", code=code, hint="Do this.").hint == "Do this."


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("hint", [None, "Do this."])
def test_an_error_keeps_its_hint_on_every_way(kind: type[WorkspaceError], hint: str | None) -> None:
    error = kind("What failed.", hint=hint)
    wanted = hint or kind.default_code.hint

    for back in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301
        assert (type(back), back.hint, back.to_dict()) == (kind, wanted, error.to_dict())
        assert str(back) == "What failed."
        assert repr(back) == repr(error) == f"{kind.__name__}('What failed.')"


def _made() -> Iterator[tuple[str, str, str]]:
    """Go through the places that make an error: (where, words of its message, its hint as far as the source tells it)."""
    for package in (crux_workspace, storage_adapters):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                kind = _kind(node)
                if not isinstance(node, ast.Call) or kind is None or not node.args:
                    continue
                given = {keyword.arg: keyword.value for keyword in node.keywords}
                code = re.search(r"ErrorCode\.(\w+)", ast.unparse(given.get("code", node.args[0])))
                known = ErrorCode(code[1]) if code else kind.default_code
                hint = _words(given["hint"]) if "hint" in given else known.hint
                yield f"{path.relative_to(root.parent)}:{node.lineno}", _words(node.args[0]), hint


def _kind(node: ast.AST) -> type[WorkspaceError] | None:
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return next((kind for kind in CLASSES if kind.__name__ == name), None)


def _words(node: ast.AST) -> str:
    texts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return " ... ".join(text for text in texts if isinstance(text, str))


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[\w']+", text.lower())
    return {tuple(words[start : start + 4]) for start in range(len(words) - 3)}


def test_no_hint_repeats_what_the_message_says() -> None:
    """Who reads both reads nothing twice: no four words in a row are in both."""
    made = list(_made())
    assert len(made) > 300
    said = {where: _runs(message) & _runs(hint) for where, message, hint in made}
    assert {where: twice for where, twice in said.items() if twice} == {}


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
