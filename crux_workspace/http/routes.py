"""Where each verb goes on the wire, and how its arguments stand in a query string."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crux_workspace.http.problems import corrupt

__all__ = ["ROUTES", "Route", "query_of"]


@dataclass(frozen=True, slots=True)
class Route:
    """The request of one verb."""

    method: str
    path: str
    field: str | None = None
    """The answer is an object that holds the result under this name."""
    keyed: bool = False
    """It takes an idempotency key, so that it may be sent again."""

    def unwrapped(self, answer: Any) -> Any:  # noqa: ANN401 - JSON
        """Return the result that an answer holds.

        Raises:
            StorageError: It holds none (``RECORD_CORRUPT``).
        """
        if self.field is None:
            return answer
        if not isinstance(answer, dict) or self.field not in answer:
            raise corrupt(f"it has no {self.field!r}")
        return answer[self.field]


_NAMED = {"exists": "exists", "is_dir": "is_dir", "cursor": "cursor", "read_many": "contents"}
_READS = "list read_many stat exists is_dir grep history diff artifacts log cursor usage namespaces"
_KEYED = (
    "write edit append update set rename move copy delete undo redo finalize withdraw undo_commit"
)

ROUTES: dict[str, Route] = {
    **{
        verb: Route("POST" if verb == "read_many" else "GET", f"/v1/{verb}", _NAMED.get(verb))
        for verb in _READS.split()
    },
    "read": Route("GET", "/v1/content"),
    **{verb: Route("POST", f"/v1/{verb}", keyed=True) for verb in _KEYED.split()},
    "gc": Route("POST", "/v1/gc"),
    "drop_namespace": Route("POST", "/v1/drop_namespace"),
}
"""The route of each verb whose answer is JSON."""


def query_of(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return arguments as a query string has them; what is None is left out."""
    return {name: _text(value) for name, value in arguments.items() if value is not None}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
