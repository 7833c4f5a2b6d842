"""The keyed path hash: the only form in which a path leaves the library."""

from __future__ import annotations

from hashlib import blake2b
from typing import NewType

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.options import refused_option

__all__ = ["PREFIX", "PathHash", "is_path_hash", "path_hash"]

PathHash = NewType("PathHash", str)
"""A path as telemetry may show it; a raw path is not one."""

PREFIX = "hash:"

_DIGEST_BYTES = 16
_LENGTH = len(PREFIX) + 2 * _DIGEST_BYTES


def _key_bytes(key: bytes | str) -> bytes:
    given: object = key
    if not isinstance(given, bytes | str):
        raise InvalidInputError(
            f"The path was not hashed because the key is {type(given).__name__}, not bytes or str.",
            details={"option": "key"},
        )
    raw = given.encode("utf-8", "surrogatepass") if isinstance(given, str) else given
    if not raw:
        message = "The path was not hashed because the key is empty, which would hide nothing."
        raise InvalidInputError(message, hint="Give a secret of at least 16 bytes.")
    return raw if len(raw) <= blake2b.MAX_KEY_SIZE else blake2b(raw).digest()


def path_hash(path: str, key: bytes | str) -> PathHash:
    """Hash a normalised absolute path with a key: keyed BLAKE2b, 16 bytes, written ``hash:<32 hex digits>``.

    Equal paths under equal keys have equal hashes in every process and on every machine. Without the key nobody can tell which path
    a hash stands for, nor test a guess.

    Args:
        path: The path, encoded as UTF-8.
        key: The secret; text is encoded as UTF-8. A key above 64 bytes is first hashed with BLAKE2b to 64 bytes.

    Raises:
        InvalidInputError: The key is empty, or neither bytes nor str, or the path is no str (``INVALID_ARGUMENT``).
    """
    if not isinstance(path, str):
        raise refused_option("path", "a str", path)
    raw = path.encode("utf-8", "surrogatepass")
    digest = blake2b(raw, digest_size=_DIGEST_BYTES, key=_key_bytes(key))
    return PathHash(PREFIX + digest.hexdigest())


def is_path_hash(value: object) -> bool:
    """Tell whether a value has the form of a path hash; no absolute path has."""
    return isinstance(value, str) and len(value) == _LENGTH and value.startswith(PREFIX)
