"""What somebody else may do between two store calls of a verb."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from crux_workspace import Workspace

__all__ = ["INTERFERERS"]

Interfere = Callable[[Workspace], Awaitable[Any]]

A, B, PUB = "/workspace/a.md", "/workspace/b.bin", "/outputs/pub.bin"


async def _away_and_back(ws: Workspace) -> None:
    await ws.rename(A, "/workspace/away.md")
    await ws.rename("/workspace/away.md", A)


async def _again_at_the_same_number(ws: Workspace) -> None:
    await ws.delete(A, purge=True)
    await ws.write(A, "one\nother\n")
    await ws.write(A, "one\nanother\n")


async def _deleted_and_written(ws: Workspace) -> None:
    await ws.delete(A)
    await ws.write(A, "one\nagain\n")


async def _swapped(ws: Workspace) -> None:
    await ws.rename(A, "/workspace/t")
    await ws.rename(B, A)
    await ws.rename("/workspace/t", B)


async def _collected(ws: Workspace) -> None:
    for n in range(2):
        await ws.write(B, bytes([n]))
    await ws.delete(B, purge=True)


INTERFERERS: dict[str, Interfere] = {
    "writes": lambda ws: ws.write(A, "one\nby another\n"),
    "writes the asset": lambda ws: ws.write(B, b"another's"),
    "writes the large text": lambda ws: ws.append("/workspace/large.txt", "another's a\n"),
    "sets": lambda ws: ws.set(A, metadata={"other": True}),
    "finalizes": lambda ws: ws.finalize(A, kind="other"),
    "finalizes what is published": lambda ws: ws.finalize(PUB),
    "withdraws": lambda ws: ws.withdraw(PUB),
    "deletes": lambda ws: ws.delete(A),
    "deletes the asset": lambda ws: ws.delete(B),
    "deletes the directory": lambda ws: ws.delete("/workspace/d", recursive=True),
    "deletes and writes": _deleted_and_written,
    "purges and writes to the same number": _again_at_the_same_number,
    "purges the asset": _collected,
    "renames away": lambda ws: ws.rename(A, "/workspace/away.md"),
    "renames away and back": _away_and_back,
    "renames the directory away": lambda ws: ws.rename("/workspace/d", "/workspace/away"),
    "renames over": lambda ws: ws.rename(B, A, overwrite=True),
    "swaps": _swapped,
    "creates in the directory": lambda ws: ws.write("/workspace/d/new.txt", "new"),
    "creates the file": lambda ws: ws.write("/workspace/n.md", "first"),
    "creates below the file": lambda ws: ws.write("/workspace/n.md/below.txt", "below"),
    "creates where the directory goes": lambda ws: ws.write("/outputs/d", "a file"),
    "creates in where the directory goes": lambda ws: ws.write("/outputs/d/x.txt", "a file"),
    "creates the destination": lambda ws: ws.write("/outputs/a.md", "there"),
    "restores": lambda ws: ws.undo("/workspace/gone.txt"),
    "restores the asset": lambda ws: ws.undo("/workspace/gone.bin"),
    "undoes": lambda ws: ws.undo("/workspace/u.md"),
}
