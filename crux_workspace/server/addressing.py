"""Whether the path of a request came as an address is written: an encoded, or a walked, spelling of one is none."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from starlette.types import Scope

__all__ = ["is_a_thread", "is_plain"]

_SLASHES = set(b"/\\")


def is_a_thread(scope: Scope) -> bool:
    """Tell whether a path is one of a thread: its parts are names, and no way to another address."""
    if not scope["path"].startswith("/threads/"):
        return False
    raw = scope.get("raw_path") or scope["path"].encode()
    parts = [unquote_to_bytes(part) for part in raw.split(b"/")[1:]]
    return not any(part in (b"", b".", b"..") or _SLASHES & set(part) for part in parts)


def is_plain(scope: Scope) -> bool:
    """Tell whether the path came as it is: an encoded spelling of a route is none."""
    raw = scope.get("raw_path")
    return raw is None or b"%" not in raw
