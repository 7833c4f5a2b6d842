"""What a ``postgresql://`` URL says: where the server is, and how this library is to use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from crux_workspace.errors import InvalidInputError

__all__ = ["Address", "Options", "parse"]

DEFAULT_SCHEMA = "crux_workspace"
SCHEMES = ("postgresql", "postgres")

_SERVER_OPTIONS = frozenset(
    {
        "application_name",
        "host",
        "passfile",
        "password",
        "port",
        "sslcert",
        "sslcrl",
        "sslkey",
        "sslmode",
        "sslnegotiation",
        "sslpassword",
        "sslrootcert",
        "ssl_max_protocol_version",
        "ssl_min_protocol_version",
        "target_session_attrs",
        "user",
    }
)
"""Options that go on to the driver; everything else must be one of ours."""

_NUMBERS = {
    "pool_size": (1, 1_000),
    "connect_timeout_ms": (1, 600_000),
    "lock_timeout_ms": (1, 600_000),
    "statement_timeout_ms": (1, 3_600_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How this library uses a server."""

    schema: str = DEFAULT_SCHEMA
    """Schema that holds the tables; one deployment each."""
    pool_size: int = 10
    """Most connections for reads and commits; listening takes one more."""
    connect_timeout_ms: int = 10_000
    """Longest wait for a connection: to be made, or to come free."""
    lock_timeout_ms: int = 10_000
    """Longest wait for somebody else's commit in the same namespace."""
    statement_timeout_ms: int = 30_000
    """Longest time the server works on one statement."""
    proxied: bool = False
    """Whether a transaction-pooling proxy stands between: nothing may be kept on a connection from one transaction to the next."""


@dataclass(frozen=True, slots=True)
class Address:
    """A server, as the driver is to be told, and how it is used."""

    dsn: str = field(repr=False)
    """For the driver alone; it may hold a password."""
    shown: str
    """For people: host and database, no credentials, no options."""
    options: Options
    listen_dsn: str | None = field(default=None, repr=False)
    """A direct way to the same database, where `dsn` leads to a transaction-pooling proxy."""

    @property
    def direct(self) -> Address:
        """The same deployment without a proxy between."""
        if self.listen_dsn is None:
            return self
        return Address(self.listen_dsn, self.shown, replace(self.options, proxied=False))


def parse(url: str) -> Address:
    """Read a URL; nothing of it reaches an error but the names of its options.

    Raises:
        InvalidInputError: It is no URL of a PostgreSQL server, or has an option nobody knows (``INVALID_ARGUMENT``).
    """
    dsn, shown, ours = _split(url)
    numbers: dict[str, Any] = {
        name: _number(name, value) for name, value in ours.items() if name in _NUMBERS
    }
    schema = ours.get("schema", DEFAULT_SCHEMA)
    if not schema or len(schema.encode()) > 63 or schema.startswith("pg_"):
        raise InvalidInputError(
            "The schema of a PostgreSQL URL is a name of at most 63 bytes that does not start with pg_.",
            details={"option": "schema"},
        )
    listen = ours.get("listen_url")
    listen_dsn = None
    if listen is not None:
        listen_dsn, _, theirs = _split(listen)
        if theirs:
            raise InvalidInputError(
                "listen_url takes no options of this library; give them in the URL itself.",
                details={"option": "listen_url"},
            )
    options = Options(schema=schema, proxied=listen is not None, **numbers)
    return Address(dsn, shown, options, listen_dsn)


def _split(url: str) -> tuple[str, str, dict[str, str]]:
    """Return the driver's URL, what may be shown of it, and the options that are ours."""
    scheme, separator, rest = url.partition("://")
    if scheme.lower() not in SCHEMES or not separator:
        raise InvalidInputError(
            "A PostgreSQL URL reads postgresql://user@host:5432/database, "
            "or postgresql:///database?host=/folder/of/the/socket.",
        )
    where, _, query = rest.partition("?")
    authority, slash, database = where.partition("/")
    user, _, hosts = authority.rpartition("@")
    _check_hosts(hosts, user)
    given = dict(parse_qsl(query, keep_blank_values=True))
    ours = {name: value for name, value in given.items() if name not in _SERVER_OPTIONS}
    unknown = ours.keys() - _NUMBERS.keys() - {"schema", "listen_url"}
    if unknown:
        known = ", ".join(sorted({*_NUMBERS, "schema", "listen_url", *_SERVER_OPTIONS}))
        raise InvalidInputError(
            f"The PostgreSQL URL has an option that is not known; known are {known}.",
        )
    theirs = {name: value for name, value in given.items() if name in _SERVER_OPTIONS}
    dsn = f"postgresql://{authority}{slash}{database}"
    if theirs:
        dsn += "?" + urlencode(theirs, quote_via=quote)
    shown = f"postgresql://{hosts or _host(theirs)}/{unquote(database)}"
    return dsn, shown, ours


def _host(theirs: Mapping[str, str]) -> str:
    """Return the host that the options name; a folder of sockets says nothing to anybody elsewhere."""
    host = theirs.get("host", "")
    return "" if host.startswith("/") else host


def _check_hosts(hosts: str, user: str) -> None:
    """Refuse a port that is no number here: the driver would show it, and it may be half of a password with an unescaped ``@``."""
    for host in hosts.split(","):
        bare = host.rpartition("]")[2] if host.startswith("[") else host
        _, colon, port = bare.partition(":")
        if "@" in user or (
            colon and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)
        ):
            raise InvalidInputError(
                "The port in a PostgreSQL URL is no number from 1 to 65535; "
                "write special characters of a password percent-encoded.",
            )


def _number(name: str, text: str) -> int:
    low, high = _NUMBERS[name]
    if text.isascii() and text.isdigit() and low <= int(text) <= high:
        return int(text)
    raise InvalidInputError(
        f"{name} in a PostgreSQL URL is a whole number from {low} to {high}.",
        details={"option": name},
    )
