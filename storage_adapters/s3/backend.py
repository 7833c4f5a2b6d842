"""What an ``s3://`` URL means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from crux_workspace.errors import InvalidInputError
from crux_workspace.storage.assets import AssetStore
from storage_adapters.s3.settings import S3Settings
from storage_adapters.s3.store import S3AssetStore

__all__ = ["s3_backend"]


def _one_of(*allowed: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value not in allowed:
            raise ValueError(value)
        return value

    return check


def _endpoint(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError(value)
    return value


_OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "endpoint_url": ("endpoint_url", _endpoint),
    "region": ("region", str),
    "profile": ("profile", str),
    "addressing": ("addressing", _one_of("auto", "path", "virtual")),
    "checksums": ("checksums", _one_of("when_supported", "when_required")),
    "connect_timeout_s": ("connect_timeout_s", float),
    "read_timeout_s": ("read_timeout_s", float),
    "max_attempts": ("max_attempts", int),
    "part_mib": ("part_bytes", lambda value: int(value) << 20),
    "parallel_parts": ("parallel_parts", int),
}


async def s3_backend(url: str) -> AssetStore:
    """Open the assets of ``s3://bucket/prefix?endpoint_url=…``; asks the server nothing yet.

    Raises:
        InvalidInputError: It is no such URL, or holds credentials.
        UnsupportedError: boto3 is not installed (``CAPABILITY_MISSING``).
    """
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise InvalidInputError(
            "An S3 URL holds no credentials; give them to the SDK, by AWS_ACCESS_KEY_ID and"
            " AWS_SECRET_ACCESS_KEY, a profile or a role."
        )
    if not parts.netloc or ":" in parts.netloc:
        raise InvalidInputError("An S3 URL names a bucket: s3://bucket/prefix.")
    return await S3AssetStore.open(
        parts.netloc, unquote(parts.path).strip("/"), settings=_settings(parts.query)
    )


def _settings(query: str) -> S3Settings:
    chosen: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in _OPTIONS:
            raise InvalidInputError(f"An S3 URL knows the options {', '.join(_OPTIONS)}.")
        field, read = _OPTIONS[name]
        try:
            chosen[field] = read(value)
        except ValueError:
            raise InvalidInputError(f"The option {name} of the S3 URL has a wrong value.") from None
    return S3Settings(**chosen)
