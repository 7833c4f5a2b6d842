"""Record stores that read wrongly; part of `crux_workspace.testing.gallery`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from crux_workspace.storage.memory import MemoryRecordStore
from crux_workspace.storage.records import Contains, Page, PartitionPage, Record

__all__ = [
    "BodiesInGet",
    "BodiesInScan",
    "ComparesByUtf16",
    "FilterHidesBodiless",
    "FirstBoundIncluded",
    "MatchesLikePatterns",
    "MatchesPartitionPatterns",
    "MissesLastPage",
    "RepeatsPrefixes",
    "SequencesOnce",
    "SharesMutableValues",
    "SkipsAbsentKeys",
    "StopsAtShortPages",
]


def _like(prefix: str) -> re.Pattern[str]:
    signs = {"%": ".*", "_": "."}
    return re.compile("".join(signs.get(c, re.escape(c)) for c in prefix), re.DOTALL)


class _AltersPages(MemoryRecordStore):
    """Hands each page of a scan on to `altered`."""

    async def altered(
        self, page: Page, partition: str, prefix: str, after: str | None, limit: int
    ) -> Page:
        return page

    async def scan(
        self,
        partition: str,
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
        page = await super().scan(
            partition,
            prefix,
            after=after,
            before=before,
            reverse=reverse,
            limit=limit,
            bodies=bodies,
            delimiter=delimiter,
            filter=filter,
        )
        return await self.altered(page, partition, prefix, after, limit)


class MissesLastPage(_AltersPages):
    """Says that a page is the last when only a short one follows."""

    async def altered(
        self, page: Page, partition: str, prefix: str, after: str | None, limit: int
    ) -> Page:
        """Drop `next` before a short page."""
        if page.next is None:
            return page
        rest = await MemoryRecordStore.scan(
            self, partition, prefix, after=page.next, limit=limit + 1
        )
        return replace(page, next=None) if len(rest.records) < limit else page


class MatchesLikePatterns(_AltersPages):
    """Finds a prefix with ``LIKE``."""

    async def altered(
        self, page: Page, partition: str, prefix: str, after: str | None, limit: int
    ) -> Page:
        """Match percent signs and underscores as patterns."""
        if not {"%", "_"} & set(prefix):
            return page
        every = await MemoryRecordStore.scan(self, partition, "", limit=10_000)
        return Page([r for r in every.records if _like(prefix).match(r.key)][:limit])


class ComparesByUtf16(_AltersPages):
    """Orders keys by UTF-16 unit, as some languages and databases do."""

    async def altered(
        self, page: Page, partition: str, prefix: str, after: str | None, limit: int
    ) -> Page:
        """Sort the page by UTF-16 unit."""
        return replace(page, records=sorted(page.records, key=lambda r: r.key.encode("utf-16-be")))


class FirstBoundIncluded(_AltersPages):
    """Returns the record at `after` again."""

    async def altered(
        self, page: Page, partition: str, prefix: str, after: str | None, limit: int
    ) -> Page:
        """Put the record at `after` in front."""
        (first,) = await self.get_many(partition, [after or ""], bodies=False)
        if first is None or not first.key.startswith(prefix):
            return page
        return replace(page, records=[first, *page.records][:limit])


class BodiesInScan(_AltersPages):
    """Returns bodies that a scan did not ask for."""

    async def altered(
        self, page: Page, partition: str, prefix: str, after: str | None, limit: int
    ) -> Page:
        """Add the bodies."""
        found = await self.get_many(partition, [r.key for r in page.records])
        return replace(page, records=[r for r in found if r is not None])


class FilterHidesBodiless(_AltersPages):
    """Takes a record without body for one that does not contain the needle."""

    async def altered(
        self, page: Page, partition: str, prefix: str, after: str | None, limit: int
    ) -> Page:
        """Leave out what has no body."""
        found = await self.get_many(partition, [r.key for r in page.records])
        with_body = {r.key for r in found if r is not None and r.body is not None}
        return replace(page, records=[r for r in page.records if r.key in with_body])


class RepeatsPrefixes(MemoryRecordStore):
    """Goes on behind a common prefix as behind a key, so the next page folds it again."""

    async def scan(
        self,
        partition: str,
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
        """Step a little into a common prefix instead of over it."""
        if after is not None and delimiter is not None and after.endswith(delimiter):
            after += "\x01"
        return await super().scan(
            partition,
            prefix,
            after=after,
            before=before,
            reverse=reverse,
            limit=limit,
            bodies=bodies,
            delimiter=delimiter,
            filter=filter,
        )


class StopsAtShortPages(MemoryRecordStore):
    """Filters a page after cutting it, and takes a page that got short for the last one."""

    async def scan(
        self,
        partition: str,
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
        """Limit first, filter then."""
        page = await super().scan(
            partition,
            prefix,
            after=after,
            before=before,
            reverse=reverse,
            limit=limit,
            bodies=True,
            delimiter=delimiter,
        )
        if filter is None:
            return page
        passing = [r for r in page.records if r.body is None or filter.needle in r.body]
        return replace(page, records=passing, next=page.next if len(passing) == limit else None)


class _AltersAnswers(MemoryRecordStore):
    """Hands each answer of `get_many` on to `altered`."""

    def altered(self, found: list[Record | None]) -> list[Record | None]:
        return found

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        return self.altered(await super().get_many(partition, keys, bodies=bodies))


class SharesMutableValues(_AltersAnswers):
    """Returns its buffers instead of bytes."""

    def altered(self, found: list[Record | None]) -> list[Record | None]:
        """Replace values with buffers."""
        return [r and replace(r, value=bytearray(r.value)) for r in found]


class SkipsAbsentKeys(_AltersAnswers):
    """Answers only for the records that are there."""

    def altered(self, found: list[Record | None]) -> list[Record | None]:
        """Leave absent ones out."""
        return [r for r in found if r is not None]


class BodiesInGet(MemoryRecordStore):
    """Returns bodies that `get_many` was not asked for."""

    async def get_many(
        self, partition: str, keys: Sequence[str], *, bodies: bool = True
    ) -> list[Record | None]:
        """Read with bodies always."""
        return await super().get_many(partition, keys)


class SequencesOnce(MemoryRecordStore):
    """Answers once for a partition that was asked for twice."""

    async def sequences(self, partitions: Sequence[str]) -> list[int]:
        """Drop repeated names."""
        return await super().sequences(list(dict.fromkeys(partitions)))


class MatchesPartitionPatterns(MemoryRecordStore):
    """Finds partitions with ``LIKE``."""

    async def partitions(
        self, prefix: str, *, after: str | None = None, limit: int
    ) -> PartitionPage:
        """Match percent signs and underscores as patterns."""
        page = await super().partitions("", after=after, limit=limit)
        return replace(page, names=[n for n in page.names if _like(prefix).match(n)])
