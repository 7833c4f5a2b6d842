"""Bearer tokens: what each may see and do, how a file of them is read, and how one is recognised."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.bearers import check_secret
from crux_workspace.model.labels import check_label
from crux_workspace.model.options import refused_option
from crux_workspace.model.paths import check_namespace, normalise

__all__ = ["UNNAMED", "Token", "Tokens", "hash_token", "load_tokens", "new_token"]

UNNAMED = "token"
"""Name of a token that commits do not name."""
_SCHEME = "sha256:"
_FIELDS = {
    "name",
    "hash",
    "access",
    "namespaces",
    "namespace_prefixes",
    "all_namespaces",
    "mounts",
    "approvals",
    "actor",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One bearer token: only its hash is kept."""

    name: str
    """What logs and commits call it; commits pass over the name ``token``."""
    hash: str = field(repr=False)
    """``sha256:`` and 64 hex digits, as `hash_token` gives it."""
    access: Literal["read", "readwrite"] = "read"
    namespaces: tuple[str, ...] | None = None
    """Namespaces it may use, taken literally; None, without the two below, is the service's own one."""
    namespace_prefixes: tuple[str, ...] = ()
    """Every namespace that starts with one of these, too."""
    all_namespaces: bool = False
    """Every namespace there is."""
    mounts: tuple[str, ...] | None = None
    """Directories it may use, each a mount, above some, or inside a local one; None is all mounts."""
    approvals: bool = False
    """It may see and answer what waits for a person."""
    actor: str | None = None
    """Who its commits say made them; None lets the client say, and is the token's name otherwise."""

    def __post_init__(self) -> None:
        check_label("name", self.name)
        digits = self.hash.removeprefix(_SCHEME)
        if not self.hash.startswith(_SCHEME) or len(digits) != 64 or not _is_hex(digits):
            raise InvalidInputError(
                f"The hash of token {self.name!r} is not 'sha256:' and 64 hex digits.",
                details={"option": "hash"},
                hint="Make a token with crux-workspace token, which prints both.",
            )
        if self.access not in ("read", "readwrite"):
            raise InvalidInputError(
                f"The access of token {self.name!r} must be 'read' or 'readwrite'.",
                details={"option": "access"},
            )
        if self.actor is not None:
            check_label("actor", self.actor)
        for namespace in (*(self.namespaces or ()), *self.namespace_prefixes):
            check_namespace(namespace)
        if self.mounts is not None:
            if not self.mounts:
                raise InvalidInputError(f"Token {self.name!r} names no mount.")
            object.__setattr__(self, "mounts", tuple(normalise(path) for path in self.mounts))

    @property
    def writes(self) -> bool:
        """Whether it may change anything."""
        return self.access == "readwrite"


def _is_hex(digits: str) -> bool:
    return all(digit in "0123456789abcdef" for digit in digits)


def hash_token(secret: str) -> str:
    """Return what a token file keeps of a token.

    A token is long and random, so one round of SHA-256 is enough: there is nothing to guess.

    Raises:
        InvalidInputError: It is too short, or could not stand in a header (``INVALID_ARGUMENT``).
    """
    return _SCHEME + hashlib.sha256(check_secret(secret).encode()).hexdigest()


def new_token() -> str:
    """Return a fresh token: 256 random bits."""
    return f"cws_{secrets.token_urlsafe(32)}"


class Tokens:
    """The tokens of one service."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        given: object = tokens
        if not isinstance(given, Iterable):
            raise refused_option("tokens", "a list of Token", given)
        self._tokens = tuple(tokens)
        for token in self._tokens:
            if not isinstance(token, Token):
                raise refused_option("tokens", "a list of Token", token)
        for what in ("name", "hash"):
            values = [getattr(token, what) for token in self._tokens]
            if len(set(values)) != len(values):
                raise InvalidInputError(f"Two tokens have the same {what}.")

    def __len__(self) -> int:
        return len(self._tokens)

    def __iter__(self) -> Iterator[Token]:
        return iter(self._tokens)

    def find(self, secret: str) -> Token | None:
        """Return the token that this is, comparing with every one in constant time."""
        given = (_SCHEME + hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()).encode()
        found = None
        for token in self._tokens:
            if hmac.compare_digest(given, token.hash.encode()):
                found = token
        return found


def load_tokens(path: Path) -> list[Token]:
    """Read a token file: TOML with ``[[tokens]]`` tables, or the same as JSON.

    Raises:
        InvalidInputError: It cannot be read, or a token is malformed; nothing of it is used then (``INVALID_ARGUMENT``).
    """
    try:
        text = path.read_text("utf-8")
        data: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"The token file {path} cannot be read: {type(error).__name__}.",
            details={"option": "tokens"},
        ) from error
    listed = data.get("tokens") if isinstance(data, dict) else None
    if not isinstance(listed, list) or set(data) != {"tokens"}:
        raise InvalidInputError(
            f"The token file {path} must hold a list 'tokens' and nothing else.",
            details={"option": "tokens"},
        )
    if not listed:
        raise InvalidInputError(
            f"The token file {path} lists no token; a service without tokens is one without --tokens.",
            details={"option": "tokens"},
        )
    return [_token(entry, number) for number, entry in enumerate(listed, 1)]


def _token(entry: Any, number: int) -> Token:  # noqa: ANN401 - of a file
    if not isinstance(entry, dict) or not {"name", "hash"} <= set(entry) <= _FIELDS:
        raise InvalidInputError(
            f"Token {number} of the file needs 'name' and 'hash' and knows no other fields than {', '.join(sorted(_FIELDS))}.",
            details={"option": "tokens"},
        )
    for name in ("namespaces", "namespace_prefixes", "mounts"):
        if name in entry:
            entry[name] = _words(entry[name], number, name)
    for name in ("name", "hash", "access", "actor"):
        if not isinstance(entry.get(name, ""), str):
            raise InvalidInputError(f"Token {number} of the file: {name!r} must be a string.")
    for name in ("all_namespaces", "approvals"):
        if not isinstance(entry.get(name, False), bool):
            raise InvalidInputError(f"Token {number} of the file: {name!r} must be true or false.")
    return Token(**entry)


def _words(given: Any, number: int, name: str) -> tuple[str, ...]:  # noqa: ANN401 - of a file
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InvalidInputError(f"Token {number} of the file: {name!r} must be a list of strings.")
    if not all(isinstance(word, str) for word in given):
        raise InvalidInputError(f"Token {number} of the file: {name!r} must be a list of strings.")
    return tuple(given)
