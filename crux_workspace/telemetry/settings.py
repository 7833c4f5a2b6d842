"""`Telemetry`: who listens to a workspace, and the key of its path hashes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crux_workspace.errors import InvalidInputError

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

__all__ = ["Telemetry"]


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Where spans and metrics go; by default to the global providers, also when they are set later.

    Raises:
        InvalidInputError: The key is empty, or neither bytes nor text (``INVALID_ARGUMENT``).
    """

    tracer_provider: TracerProvider | None = None
    """Receives the spans; None means the global provider. The no-op provider turns spans off."""
    meter_provider: MeterProvider | None = None
    """Receives the metrics; None means the global provider. The no-op provider turns metrics off."""
    path_hash_key: bytes | str | None = field(default=None, repr=False)
    """Key of the path hashes; None means the deployment's own key, kept in the store."""

    def __post_init__(self) -> None:
        key: object = self.path_hash_key
        if key is not None and (not isinstance(key, bytes | str) or not key):
            message = "Telemetry was refused because path_hash_key must be non-empty bytes or text."
            raise InvalidInputError(
                message, hint="Give a secret of at least 16 bytes, or leave it out."
            )
