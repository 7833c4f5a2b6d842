"""`PathHasher`: path hashes with a key that is loaded when first needed."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from crux_workspace.telemetry.guard import note_failure
from crux_workspace.telemetry.path_hash import PathHash, path_hash

__all__ = ["PathHasher"]

_RETRY_AFTER_S = 30.0
_MOST_KNOWN = 1_024


class PathHasher:
    """Hashes the paths of one workspace with its own key, or with one that is loaded when first needed.

    It never fails: when the key cannot be loaded there is no hash, and the next try comes half a minute later.
    """

    __slots__ = ("_key", "_known", "_load", "_retry_at")

    def __init__(
        self, key: bytes | str | None, load_key: Callable[[], Awaitable[bytes]] | None
    ) -> None:
        self._key = key
        self._load = load_key
        self._retry_at = 0.0
        self._known: dict[str, PathHash] = {}

    def known(self, path: object) -> PathHash | None:
        """Return the hash of a path that is in use, None for every other one and for what is no normalised path."""
        return self._known.get(path) if type(path) is str else None

    async def hash(self, path: str) -> PathHash | None:
        """Return the path's hash, or None when there is no key; the hashes of paths in use are kept at hand."""
        known = self._known.get(path)
        if known is not None:
            return known
        key = self._key if self._key is not None else await self._loaded()
        if key is None:
            return None
        try:
            made = path_hash(path, key)
        except Exception as error:
            note_failure("path hash", error)
            return None
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[path] = made
        return made

    async def _loaded(self) -> bytes | None:
        if self._load is None or time.monotonic() < self._retry_at:
            return None
        try:
            key = await self._load()
        except Exception as error:
            note_failure("path hash key", error)
            self._retry_at = time.monotonic() + _RETRY_AFTER_S
            return None
        self._key = key
        return key
