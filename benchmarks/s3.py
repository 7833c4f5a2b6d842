"""S3: 100 MiB up and down, beside boto3's own transfer in the same process, and the memory that streaming takes.

Run: python -m benchmarks.s3 [--quick] [--save]. It starts the test suite's S3 server.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.saving import keep
from benchmarks.slices import paired
from crux_workspace.storage import PutOptions
from storage_adapters.s3 import S3AssetStore, S3Settings
from tests.support.s3_server import S3Server, s3_server

__all__ = ["AT_MOST", "MOST_EXTRA_MIB", "measure", "show"]

AT_MOST = 1 / 0.7
"""At most so many times as long as boto3's own transfer."""
MOST_EXTRA_MIB = 64
_PIECE = os.urandom(1 << 20)


async def pieces(mib: int) -> AsyncIterator[bytes]:
    """Stream so many MiB."""
    for _ in range(mib):
        yield _PIECE


class Sink(io.BytesIO):
    """Takes bytes and forgets them."""

    def write(self, data: object, /) -> int:
        """Forget."""
        return len(data)  # type: ignore[arg-type]


async def up(store: S3AssetStore, mib: int) -> float:
    """Put a stream."""
    began = time.perf_counter()
    key = f"bench/{secrets.token_hex(16)}"
    asset = await store.put(pieces(mib), PutOptions(key=key, mime_type="x/y"))
    took = time.perf_counter() - began
    await store.delete(asset.ref)
    return took


async def up_raw(server: S3Server, mib: int) -> float:
    """Upload a file object by boto3's own transfer."""
    client, source = server.client(), io.BytesIO(_PIECE * mib)
    began = time.perf_counter()
    await asyncio.to_thread(client.upload_fileobj, source, server.bucket, "bench/raw-up")
    return time.perf_counter() - began


async def down(store: S3AssetStore, ref: str) -> float:
    """Stream an asset."""
    began = time.perf_counter()
    async for _ in store.stream(ref):
        pass
    return time.perf_counter() - began


async def down_raw(server: S3Server, key: str) -> float:
    """Download an object by boto3's own transfer."""
    client = server.client()
    began = time.perf_counter()
    await asyncio.to_thread(client.download_fileobj, server.bucket, key, Sink())
    return time.perf_counter() - began


_MEMORY = """
import asyncio, sys
from benchmarks.s3 import memory
print(asyncio.run(memory(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
"""


async def memory(endpoint: str, access_key: str, secret_key: str, mib: int) -> float:
    """Return by how many MiB this process grows while it streams so many up and down."""
    os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"] = access_key, secret_key
    settings = S3Settings(endpoint_url=endpoint, region="us-east-1", addressing="path")
    async with await S3AssetStore.open("bucket", "bench", settings=settings) as store:
        await up(store, 1)
        before = _peak_mib()
        key = f"bench/{secrets.token_hex(16)}"
        asset = await store.put(pieces(mib), PutOptions(key=key, mime_type="x/y"))
        await down(store, asset.ref)
        grown = _peak_mib() - before
        await store.delete(asset.ref)
    return grown


def _peak_mib() -> float:
    """Return the most memory this program held; getrusage would count the process that started it too."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("this system does not tell the peak of a process")


async def measure(pairs: int, mib: int, streamed_mib: int = 100) -> list[dict[str, object]]:
    """Measure every row."""
    server = await asyncio.to_thread(s3_server)
    found: list[dict[str, object]] = []
    async with S3AssetStore(server.client(), server.bucket, "bench") as store:
        key = f"bench/{secrets.token_hex(16)}"
        asset = await store.put(pieces(mib), PutOptions(key=key, mime_type="x/y"))
        rows = {
            f"S3 {mib} MiB up": (partial(up_raw, server, mib), partial(up, store, mib)),
            f"S3 {mib} MiB down": (
                partial(down_raw, server, f"bench/{asset.ref}"),
                partial(down, store, asset.ref),
            ),
        }
        for name, (raw, ours) in rows.items():
            await raw()
            await ours()
            found.append({"row": name, "at_most": AT_MOST, **await paired(raw, ours, pairs)})
        await store.delete(asset.ref)
    arguments = [
        server.endpoint,
        server.member.access_key,
        server.member.secret_key,
        str(streamed_mib),
    ]
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", _MEMORY, *arguments],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    row = f"S3 {streamed_mib} MiB up and down, extra memory"
    found.append({"row": row, "at_most_mib": MOST_EXTRA_MIB, "mib": float(ran.stdout)})
    return found


def show(rows: list[dict[str, object]]) -> None:
    """Print the table; a row over its limit is marked."""
    table = Table(title="boto3's own transfer and ours, alternating, median of the pairs")
    for column in ("row", "boto3 ms", "ours ms", "ratio [quartiles]", "at most"):
        table.add_column(column, justify="left" if column == "row" else "right")
    for row in rows:
        if "mib" in row:
            over = row["mib"] > row["at_most_mib"]  # type: ignore[operator]
            cells = [str(row["row"]), "", f"{row['mib']:.0f} MiB", "", f"{row['at_most_mib']} MiB"]
        else:
            over = row["ratio"] > row["at_most"]  # type: ignore[operator]
            ratio = f"{row['ratio']:.2f} [{row['low']:.2f}-{row['high']:.2f}]"
            times = [f"{row[side] / 1000:.0f}" for side in ("base_us", "ours_us")]  # type: ignore[operator]
            cells = [str(row["row"]), *times, ratio, f"{row['at_most']:.2f}"]
        table.add_row(*cells, style="red" if over else "")
    Console().print(table)


def main() -> None:
    """Measure, print, and with --save keep the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two pairs of 20 MiB")
    parser.add_argument(
        "--save", action="store_true", help="write benchmarks/results/<time>-s3.json"
    )
    given = parser.parse_args()
    rows = asyncio.run(measure(2 if given.quick else 9, 20 if given.quick else 100))
    show(rows)
    keep(rows, [], save=given.save, name="-s3")


if __name__ == "__main__":
    main()
