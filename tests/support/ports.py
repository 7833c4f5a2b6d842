"""TCP ports that nobody uses."""

from __future__ import annotations

import contextlib
import socket

__all__ = ["free_port", "free_ports"]


def free_ports(count: int) -> list[int]:
    """Return different ports of this machine that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    return free_ports(1)[0]
