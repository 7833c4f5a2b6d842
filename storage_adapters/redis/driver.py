"""The driver, which comes with the extra ``redis``; everything here that talks to a server imports it from this module."""

from __future__ import annotations

from crux_workspace.errors import UnsupportedError

try:
    import hiredis
    from redis import exceptions
    from redis.asyncio.connection import (
        AbstractConnection,
        Connection,
        SSLConnection,
        UnixDomainSocketConnection,
    )
except ImportError as error:
    raise UnsupportedError(
        "Redis needs the packages redis and hiredis; install them by: pip install 'crux-workspace[redis]'"
    ) from error

__all__ = [
    "AbstractConnection",
    "Connection",
    "SSLConnection",
    "UnixDomainSocketConnection",
    "exceptions",
    "hiredis",
]
