"""Transactions over the seeded tree of `verb_cases`: several files, inline and asset-backed, new, changed, moved, gone."""

from __future__ import annotations

from typing import Any

from crux_workspace import Workspace
from tests.support.verb_cases import Case

__all__ = ["TRANSACTIONS"]

LARGE = b"\x00large" * 60


async def _files(ws: Workspace, namespace: str) -> str:
    async with ws.transaction(namespace=namespace) as tx:
        await tx.edit("/workspace/a.md", "one", "uno")
        await tx.write("/workspace/n.bin", LARGE)
        await tx.write("/workspace/b.bin", LARGE * 2)
        await tx.append("/workspace/new.txt", "new")
    return "done"


async def _tree(ws: Workspace, namespace: str) -> str:
    async with ws.transaction(namespace=namespace) as tx:
        await tx.list("/workspace/d")
        await tx.rename("/workspace/d", "/outputs/d")
        await tx.copy("/workspace/b.bin", "/outputs/b.bin")
        await tx.write("/workspace/gone.bin", LARGE)
        await tx.delete("/workspace/large.txt")
        await tx.rename("/workspace/u.md", "/workspace/a.md", overwrite=True)
    return "done"


async def _artifacts(ws: Workspace, namespace: str) -> list[int]:
    versions = []
    async with ws.transaction(namespace=namespace) as tx:
        await tx.write("/outputs/pub.bin", LARGE)
        versions.append((await tx.finalize("/outputs/pub.bin")).version)
        await tx.write("/outputs/pub.bin", LARGE * 2)
        versions.append((await tx.finalize("/outputs/pub.bin")).version)
        await tx.write("/outputs/pub.bin", LARGE * 3)
        await tx.write("/workspace/dropped.bin", LARGE)
        await tx.delete("/workspace/dropped.bin")
        await tx.append("/workspace/large.txt", "the end\n")
    return versions


async def _callback(ws: Workspace, namespace: str) -> Any:
    async def steps(tx: Any) -> str:
        await tx.set("/workspace/a.md", metadata={"n": 3})
        await tx.write("/workspace/c.bin", LARGE)
        return "done"

    return await ws.transaction(steps, max_attempts=3, namespace=namespace)


TRANSACTIONS = [
    Case("a transaction over files", _files),
    Case("a transaction over a tree", _tree),
    Case("a transaction that publishes", _artifacts),
    Case("a transaction of a callback", _callback),
]
