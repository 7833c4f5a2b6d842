"""The names of Redis keys: which of them hold a partition, and in which slot.

Partitions are spread over 256 buckets, and a bucket is one hash slot: its number is the hash tag. So all keys of a partition, and the
sorted set that lists the bucket's partitions, lie together and change in one script.
"""

from __future__ import annotations

from binascii import crc_hqx
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote
from zlib import crc32

__all__ = ["BUCKETS", "Keyspace", "PartitionKeys", "slot_of_bucket"]

BUCKETS = 256
_SLOTS = 16384


def slot_of_bucket(bucket: int) -> int:
    """Return the Cluster slot of a bucket: CRC16 of its hash tag."""
    return crc_hqx(_tag(bucket).encode(), 0) % _SLOTS


def _tag(bucket: int) -> str:
    return f"{bucket:02x}"


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """The Redis keys of one partition."""

    bucket: int
    name: bytes
    values: bytes
    """Hash: record key → stamp and value."""
    bodies: bytes
    """Hash: record key → body, for records that have one."""
    index: bytes
    """Sorted set of record keys, all with score 0."""
    partitions: bytes
    """Sorted set of the names of the bucket's partitions, all with score 0."""


class Keyspace:
    """All names under one prefix of one database."""

    __slots__ = ("_prefix", "channel", "partition")

    def __init__(self, prefix: str, database: int) -> None:
        self._prefix = prefix
        self.channel = f"{prefix}:{database}:commits".encode()
        """Channel of the hints; channels know no databases, so the number is in its name."""
        self.partition = lru_cache(maxsize=4096)(self._partition)
        """Return the keys of a partition, given its name."""

    def __repr__(self) -> str:
        return f"Keyspace({self._prefix!r})"

    def _partition(self, name: str) -> PartitionKeys:
        raw = name.encode()
        bucket = crc32(raw) % BUCKETS
        stem = f"{self._prefix}:{{{_tag(bucket)}}}:partition:{quote(name, safe='')}"
        return PartitionKeys(
            bucket,
            raw,
            f"{stem}:values".encode(),
            f"{stem}:bodies".encode(),
            f"{stem}:index".encode(),
            self.partitions(bucket),
        )

    def partitions(self, bucket: int) -> bytes:
        """Return the key that lists the partitions of a bucket."""
        return f"{self._prefix}:{{{_tag(bucket)}}}:partitions".encode()

    def asset_bucket(self, ref: str) -> int:
        """Return the bucket of an asset: that of its folder, so that a namespace's assets are listed from one place."""
        return crc32(ref.rpartition("/")[0].encode()) % BUCKETS

    def assets(self, bucket: int) -> tuple[bytes, bytes]:
        """Return the keys of a bucket's assets: the sorted set of refs, and the hash ref → description."""
        stem = f"{self._prefix}:{{{_tag(bucket)}}}:assets"
        return f"{stem}:index".encode(), f"{stem}:about".encode()

    def uploads(self, bucket: int) -> bytes:
        """Return the key of a bucket's notes of uploads that are not finished: when the last piece came, and the upload's key."""
        return f"{self._prefix}:{{{_tag(bucket)}}}:uploads".encode()

    def asset(self, ref: str, *, upload: str | None = None) -> bytes:
        """Return the key of an asset's bytes, or of an upload that is not finished."""
        stem = f"{self._prefix}:{{{_tag(self.asset_bucket(ref))}}}"
        middle = "asset" if upload is None else f"upload:{upload}"
        return f"{stem}:{middle}:{quote(ref, safe='')}".encode()
