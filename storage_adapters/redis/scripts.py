"""The scripts that run on the server, by name."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

__all__ = [
    "ALL",
    "ASSET_ABORT",
    "ASSET_DELETE",
    "ASSET_LIST",
    "ASSET_PIECE",
    "ASSET_SEAL",
    "COMMIT",
    "DROP",
    "READ",
    "SCAN",
    "Script",
]

_FOLDER = Path(__file__).with_name("scripts")


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script and the digest that the server knows it by."""

    name: str
    source: bytes = field(repr=False)
    digest: str

    def call(self, keys: tuple[bytes, ...], *arguments: bytes | str | int) -> tuple[object, ...]:
        """Return the command that runs it on keys of one slot."""
        return (b"EVALSHA", self.digest, len(keys), *keys, *arguments)


def _load(name: str) -> Script:
    source = (_FOLDER / f"{name}.lua").read_bytes()
    return Script(name, source, hashlib.sha1(source, usedforsecurity=False).hexdigest())


COMMIT = _load("commit")
READ = _load("read")
SCAN = _load("scan")
DROP = _load("drop")
ASSET_PIECE = _load("asset_piece")
ASSET_SEAL = _load("asset_seal")
ASSET_ABORT = _load("asset_abort")
ASSET_DELETE = _load("asset_delete")
ASSET_LIST = _load("asset_list")
ALL = (COMMIT, READ, SCAN, DROP, ASSET_PIECE, ASSET_SEAL, ASSET_ABORT, ASSET_DELETE, ASSET_LIST)
