"""What a ``redis://`` URL means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from crux_workspace.errors import InvalidInputError

__all__ = ["Target", "parse_target"]

_SCHEMES = ("redis", "rediss", "redis+unix")
_DEFAULT_PORT = 6379
_DEFAULT_TIMEOUT_MS = 5_000
_LARGEST_DATABASE = 1_000_000
_SSL_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_KNOWN = "db, prefix, timeout_ms, and for rediss:// ssl_ca_certs, ssl_certfile, ssl_keyfile"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which server, which database of it, and under which prefix; its `repr` and `place` show no credentials."""

    kind: Literal["tcp", "tls", "unix"]
    host: str = ""
    """Host of the server; of a Unix socket, its path."""
    port: int = 0
    database: int = 0
    prefix: str = "crux"
    timeout_ms: int = _DEFAULT_TIMEOUT_MS
    """How long a call may stay without an answer, and how long it waits for a server that is away."""
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    ssl: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def place(self) -> str:
        """The server's address as it may be shown."""
        if self.kind == "unix":
            return f"redis+unix://{quote(self.host)}?db={self.database}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"redis{'s' * (self.kind == 'tls')}://{host}:{self.port}/{self.database}"

    @property
    def timeout_s(self) -> float:
        """`timeout_ms` in seconds."""
        return self.timeout_ms / 1000

    def at(self, host: str, port: int) -> Target:
        """Return the same target on another node of a cluster."""
        return replace(self, host=host, port=port)

    def options(self) -> dict[str, Any]:
        """Return what the driver's connection takes."""
        shared: dict[str, Any] = {
            "db": self.database,
            "username": self.username,
            "password": self.password,
            "socket_connect_timeout": self.timeout_s,
            "socket_timeout": None,
            "protocol": 2,
        }
        if self.kind == "unix":
            return {"path": self.host, **shared}
        return {
            "host": self.host,
            "port": self.port,
            "socket_keepalive": True,
            **shared,
            **self.ssl,
        }


def parse_target(url: str) -> Target:
    """Read a URL.

    Raises:
        InvalidInputError: It is not one of ours; the message shows nothing of it.
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        raise InvalidInputError("The port of a Redis URL is a number below 65536.") from None
    if parts.scheme not in _SCHEMES:
        raise InvalidInputError(
            "A Redis URL starts with redis://, rediss:// or redis+unix://.",
            details={"option": "url"},
        )
    options = _options(parts.query, tls=parts.scheme == "rediss")
    shared: dict[str, Any] = {
        "prefix": options.get("prefix", "crux"),
        "timeout_ms": options.get("timeout_ms", _DEFAULT_TIMEOUT_MS),
        "username": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
    }
    if parts.scheme == "redis+unix":
        if parts.hostname or not parts.path.strip("/"):
            raise InvalidInputError(
                "A Unix socket is named by its path: redis+unix:///run/redis.sock?db=0."
            )
        return Target(
            kind="unix", host=unquote(parts.path), database=options.get("db", 0), **shared
        )
    if not parts.hostname:
        raise InvalidInputError("A Redis URL names a host: redis://localhost:6379/0.")
    return Target(
        kind="tls" if parts.scheme == "rediss" else "tcp",
        host=unquote(parts.hostname),
        port=port or _DEFAULT_PORT,
        database=_database(parts.path, options),
        ssl={name: options[name] for name in _SSL_FILES if name in options},
        **shared,
    )


def _database(path: str, options: dict[str, Any]) -> int:
    named = path.strip("/")
    if not named:
        found: int = options.get("db", 0)
        return found
    if "db" in options:
        raise InvalidInputError("A Redis URL names its database once: redis://host/0 or ?db=0.")
    return _number("database", named, 0, _LARGEST_DATABASE)


def _options(query: str, *, tls: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in found:
            raise InvalidInputError("A Redis URL gives each option once.")
        if name == "db":
            found[name] = _number("database", value, 0, _LARGEST_DATABASE)
        elif name == "timeout_ms":
            found[name] = _number("timeout_ms", value, 1, 3_600_000)
        elif name == "prefix":
            found[name] = _prefix(value)
        elif name in _SSL_FILES and tls:
            found[name] = value
        else:
            raise InvalidInputError(f"A Redis URL knows these options: {_KNOWN}.")
    return found


def _number(what: str, text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and low <= int(text) <= high):
        raise InvalidInputError(f"The {what} of a Redis URL is a number from {low} to {high}.")
    return int(text)


def _prefix(text: str) -> str:
    if (
        not text
        or len(text) > 64
        or not all(c.isascii() and (c.isalnum() or c in "-_.:") for c in text)
    ):
        raise InvalidInputError(
            "The prefix of a Redis URL is 1 to 64 letters, digits and the characters - _ . and :"
        )
    return text
