"""What the HTTP library may log of our requests: not their queries, which name paths and namespaces."""

from __future__ import annotations

import logging

__all__ = ["hide_queries"]


class _WithoutQueries(logging.Filter):
    """Cuts the query off each address of a service that it knows; passes every record on."""

    def __init__(self) -> None:
        super().__init__()
        self.bases: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record's arguments where they hold an address."""
        if isinstance(record.args, tuple):
            record.args = tuple(self._shown(argument) for argument in record.args)
        return True

    def _shown(self, argument: object) -> object:
        if not isinstance(argument, str) and type(argument).__name__ != "URL":
            return argument
        address, mark, _ = str(argument).partition("?")
        is_ours = mark and any(address.startswith(f"{base}/v1/") for base in self.bases)
        return address if is_ours else argument


_filter = _WithoutQueries()


def hide_queries(base: str) -> None:
    """Keep the queries of a service's addresses out of the HTTP library's log, from now on."""
    _filter.bases.add(base)
    logging.getLogger("httpx").addFilter(_filter)
