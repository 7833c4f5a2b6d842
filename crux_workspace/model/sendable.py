"""What every transport can send: JSON data without lone surrogates, which UTF-8 cannot write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["writable"]


def writable(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Replace lone surrogates in JSON data; what is no JSON is returned as it is."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {writable(key): writable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [writable(item) for item in value]
    return value
