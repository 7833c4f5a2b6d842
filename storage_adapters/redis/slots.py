"""Which node of a Cluster holds which bucket."""

from __future__ import annotations

from typing import Any

from storage_adapters.redis.keyspace import BUCKETS, slot_of_bucket

__all__ = ["SlotMap"]

Place = tuple[str, int]


class SlotMap:
    """The place of each bucket, as last heard from a node; a redirection corrects it."""

    def __init__(self) -> None:
        self._places: list[Place | None] = [None] * BUCKETS

    def place(self, bucket: int) -> Place | None:
        """Return (host, port) of the node that holds a bucket, None when nobody does."""
        return self._places[bucket]

    def move(self, bucket: int, place: Place) -> None:
        """Take a redirection."""
        self._places[bucket] = place

    def learn(self, answer: list[Any], asked: str) -> bool:
        """Take the answer of CLUSTER SLOTS, and tell whether it moves a bucket from one node to another.

        A node that does not know its own host has the one that was `asked`.
        """
        before = self._places.copy()
        ranges = [
            (first, last, (host.decode() if host else asked, port))
            for first, last, (host, port, *_), *_ in answer
        ]
        for bucket in range(BUCKETS):
            slot = slot_of_bucket(bucket)
            self._places[bucket] = next(
                (place for first, last, place in ranges if first <= slot <= last), None
            )
        return self._places != before
