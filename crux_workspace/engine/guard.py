"""A reader whose failures are the errors that users know."""

from __future__ import annotations

from collections.abc import Sequence

from crux_workspace.errors import WorkspaceError
from crux_workspace.storage.failures import unavailable
from crux_workspace.storage.records import Contains, Page, Reader, Record, StoreError

__all__ = ["GuardedReader"]


class GuardedReader:
    """A `Reader` whose failures are `StorageError`s."""

    __slots__ = ("_reader", "calls")

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.calls = 0

    async def get_many(self, keys: Sequence[str], *, bodies: bool = True) -> list[Record | None]:
        """See `RecordStore.get_many`."""
        self.calls += 1
        try:
            return await self._reader.get_many(keys, bodies=bodies)
        except (StoreError, WorkspaceError):
            raise
        except Exception as error:
            raise unavailable("record store", error) from error

    async def scan(
        self,
        prefix: str,
        *,
        after: str | None = None,
        before: str | None = None,
        reverse: bool = False,
        limit: int,
        bodies: bool = False,
        delimiter: str | None = None,
        filter: Contains | None = None,
    ) -> Page:
        """See `RecordStore.scan`."""
        self.calls += 1
        try:
            return await self._reader.scan(
                prefix,
                after=after,
                before=before,
                reverse=reverse,
                limit=limit,
                bodies=bodies,
                delimiter=delimiter,
                filter=filter,
            )
        except (StoreError, WorkspaceError):
            raise
        except Exception as error:
            raise unavailable("record store", error) from error
