"""One form of a bearer token, wherever one is given."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace.errors import InvalidInputError
from crux_workspace.http import HttpWorkspace
from crux_workspace.mcp.serving import http_app
from crux_workspace.model.bearers import check_secret, is_bearer
from crux_workspace.server import hash_token

MALFORMED = [
    "",
    "with a space in it",
    "with\ttab-and-more",
    "gr\u00fc\u00dfe-an-alle-leser",
    "x" * 9_000,
]


@pytest.mark.parametrize("token", [*MALFORMED, None, 7, b"bytes-are-no-string"])
def test_what_no_header_can_hold_is_no_token(token: Any) -> None:
    assert not is_bearer(token)


@pytest.mark.parametrize("token", MALFORMED)
def test_it_is_refused_wherever_it_is_given(token: str) -> None:
    with pytest.raises(InvalidInputError):
        hash_token(token)
    with pytest.raises(InvalidInputError):
        HttpWorkspace("http://127.0.0.1:1", token=token)
    server: Any = None  # it is looked at after the token
    with pytest.raises(InvalidInputError):
        http_app(server, token=token)


def test_one_that_lets_somebody_in_is_long() -> None:
    assert is_bearer("short")
    with pytest.raises(InvalidInputError, match="16"):
        check_secret("x" * 15)
    assert check_secret("x" * 16) == "x" * 16
