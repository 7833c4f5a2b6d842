"""How much the service takes on; bad values are refused when they are made."""

from __future__ import annotations

from dataclasses import dataclass, fields

from crux_workspace.model.options import MOST, needed_number, seconds

__all__ = ["ServiceLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """Ceilings of one service; what is above one is refused, and told why."""

    max_body_bytes: int = 5 << 30
    """Bytes of a body that is streamed into a file; the workspace's own `Limits.max_file_bytes` holds as well."""
    max_json_bytes: int = 16 << 20
    """Bytes of a JSON body, which is held in memory."""
    max_held_bytes: int = 256 << 20
    """Bytes of all such bodies, and of what reads gather, at once."""
    max_read_bytes: int = 64 << 20
    """Bytes of content that one request gathers in memory to answer; larger files are streamed."""
    max_trace_bytes: int = 4 << 20
    """Bytes of one OTLP export, unpacked."""
    max_query_bytes: int = 16 << 10
    """Bytes of a query string."""
    max_header_bytes: int = 32 << 10
    """Bytes of a request's line and headers."""
    max_operations: int = 1_000
    """Operations of one transaction request."""
    max_requests: int = 200
    """Requests that are worked on at once; more are told to come again."""
    max_connections: int = 4_000
    """Connections that are open at once."""
    max_streams: int = 1_000
    """Event streams that are open at once."""
    max_transactions: int = 64
    """Transactions that one token holds open over several requests."""
    max_transaction_bytes: int = 64 << 20
    """Memory that one of them takes: staged content in records, what was read of the files it looked at, about 1,000 for each path."""
    max_staged_bytes: int = 256 << 20
    """Memory that all of them take together."""
    max_uploaded_bytes: int = 10 << 30
    """Bytes that one of them has put into the asset store for what it staged."""
    request_seconds: float = 60.0
    """How long a request may take that streams nothing."""
    idle_seconds: float = 30.0
    """How long a client may take to send, or to take, the next piece."""
    slowest_bytes_per_second: int = 1_024
    """How fast a body has to come in, and an answer to be taken, on average after the first `idle_seconds`."""
    transaction_seconds: float = 60.0
    """How long an open transaction waits for its next request."""
    heartbeat_seconds: float = 15.0
    """How often an event stream that is silent sends a comment."""
    shutdown_seconds: float = 10.0
    """How long requests in flight may go on once the service is told to stop."""

    def __post_init__(self) -> None:
        for each in fields(self):
            name, value = f"ServiceLimits.{each.name}", getattr(self, each.name)
            if each.name.endswith("_seconds"):
                seconds(name, value)
            else:
                needed_number(name, value, most=MOST)

    def slowest_taken(self, seconds: float) -> float:
        """Return how many bytes the slowest client that is waited for has sent, or taken, by then."""
        return (seconds - self.idle_seconds) * self.slowest_bytes_per_second
