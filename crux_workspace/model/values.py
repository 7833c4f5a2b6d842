"""The shape every result shares: frozen, comparable, and able to become plain JSON data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeAlias

__all__ = ["JsonValue", "Value"]

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"


class Value:
    """Mixin of result dataclasses."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain JSON data, nested values included."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:  # noqa: ANN401 - any field of a result
    if isinstance(value, Value):
        return value.to_dict()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value
