"""Servers for the kits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.redis_servers import RedisServer, serving


@pytest.fixture(scope="module")
def durable_server() -> Iterator[RedisServer]:
    """A Redis server that writes each commit to its file before it answers."""
    with serving(appendonly="yes", appendfsync="always") as server:
        yield server
