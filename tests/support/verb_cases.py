"""One case for each way a verb changes a namespace, over a tree that has something of everything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from crux_workspace import (
    ContentOptions,
    Limits,
    Retention,
    Versioning,
    Workspace,
    workspace,
)
from crux_workspace.engine import measuring
from crux_workspace.engine.parts import MAX_PARTS
from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.records import RecordStore
from crux_workspace.testing import FixedClock
from tests.support.long_texts import long_text

__all__ = ["CASES", "OTHER", "Case", "make", "seed"]

OTHER = "other of "
"""What is before the name of a namespace in the name of the one that is copied from."""

LARGE = "a line that makes the text too large to stay in the record\n" * 8
BINARY = bytes(range(256))

_SEED_COMMITS = 18

Call = Callable[[Workspace, str], Awaitable[Any]]


_CALLING_ASSETS = {
    "write a new asset",
    "write a stream",
    "write large text",
    "overwrite an asset",
    "overwrite inline by an asset",
    "edit large text",
    "append until large",
    "append to large text",
    "append to text that another process wrote",
    "append to parts",
    "append to so many parts that they are joined",
    "edit parts",
    "copy parts from another namespace",
    "write text as a stream",
    "update an asset",
    "copy from another namespace",
    "copy a directory from another namespace",
    "write what collects",
    "write what collects bytes",
    "collect by gc",
    "collect around a pinned difference by gc",
    "make a history smaller by gc",
    "sweep what is due",
}


@dataclass(frozen=True)
class Case:
    """A call, and what it is made on."""

    name: str
    call: Call
    options: dict[str, Any] = field(default_factory=dict)
    """Settings of the workspace that makes the call."""
    before: Call | None = None
    """Made after the seed, without faults."""
    wait_ms: int = 0
    """Time that passes between the seed and the call."""
    steps: bool = False
    """The call is several commits: a fault may leave it between two of them, and gc finishes it."""

    def __repr__(self) -> str:
        return self.name

    @property
    def assets(self) -> bool:
        """Whether the call, without faults, calls the asset store."""
        return self.name in _CALLING_ASSETS


def make(records: RecordStore, assets: AssetStore, clock: FixedClock, **options: Any) -> Workspace:
    """Make a workspace that keeps little text inline."""
    settings: dict[str, Any] = {
        "content": ContentOptions(inline_text_below_bytes=200),
        "retention": Retention(asset_grace_ms=0),
        "clock": clock,
        **options,
    }
    return workspace(id="w", namespace=None, records=records, assets=assets, **settings)


async def seed(ws: Workspace, namespace: str) -> None:
    """Write files of every sort: inline and asset-backed, deleted, published, undone, nested."""
    to = ws.for_namespace(namespace)
    await to.write("/workspace/a.md", "one\ntwo\n", metadata={"n": 1})
    await to.write("/workspace/a.md", "one\nthree\n", metadata={"n": 2})
    await to.write("/workspace/b.bin", BINARY)
    await to.write("/workspace/b.bin", BINARY * 2)
    await to.write("/workspace/large.txt", LARGE)
    await to.write("/workspace/d/x.txt", "x")
    await to.write("/workspace/d/y.bin", BINARY[:100])
    await to.write("/workspace/d/e/z.json", {"z": [1, 2]})
    await to.write("/workspace/gone.txt", "was here")
    await to.delete("/workspace/gone.txt")
    await to.write("/workspace/gone.bin", BINARY[:50])
    await to.delete("/workspace/gone.bin")
    await to.write("/outputs/pub.bin", BINARY[:20], kind="report")
    await to.finalize("/outputs/pub.bin")
    await to.write("/outputs/pub.bin", BINARY[:30])
    await to.write("/workspace/u.md", "first")
    await to.write("/workspace/u.md", "second")
    await to.undo("/workspace/u.md")
    assert len(await to.log()) == _SEED_COMMITS
    other = ws.for_namespace(OTHER + namespace)
    await other.write("/workspace/o.bin", BINARY[:70], metadata={"from": "afar"})
    await other.write("/workspace/p.md", "pp")
    await other.write("/workspace/q.txt", LARGE)


async def _chunks() -> AsyncIterator[bytes]:
    for _ in range(3):
        yield BINARY


async def _lines() -> AsyncIterator[bytes]:
    for _ in range(3):
        yield LARGE.encode()


def _purge(path: str, *, recursive: bool = False) -> Call:
    return lambda ws, ns: ws.delete(path, recursive=recursive, purge=True, namespace=ns)


async def _undo_last_of_all(ws: Workspace, namespace: str) -> Any:
    """Reverse the commit that came right after the seed, whatever came later."""
    log = await ws.log(limit=10_000, namespace=namespace)
    return await ws.undo_commit(log[-_SEED_COMMITS - 1], namespace=namespace)


async def _rename_over(ws: Workspace, namespace: str) -> None:
    await ws.rename("/workspace/a.md", "/workspace/b.bin", overwrite=True, namespace=namespace)


async def _delete_tree(ws: Workspace, namespace: str) -> None:
    await ws.delete("/workspace/d", recursive=True, namespace=namespace)


async def _write_many(ws: Workspace, namespace: str) -> None:
    for n in range(4):
        await ws.write("/workspace/many.bin", BINARY[: n + 1], namespace=namespace)


async def _add_parts(ws: Workspace, namespace: str) -> None:
    for n in range(3):
        await ws.append("/workspace/large.txt", f"part {n}\n", namespace=namespace)
    await ws.append("/workspace/q.txt", "another part", namespace=OTHER + namespace)


async def _add_most_parts(ws: Workspace, namespace: str) -> None:
    async with ws.transaction(namespace=namespace) as tx:
        for n in range(MAX_PARTS - 1):
            await tx.append("/workspace/large.txt", f"{n}\n")


async def _append_unknown(ws: Workspace, namespace: str) -> Any:
    """Append to a text whose hash state is not remembered: it is read first."""
    measuring._remembered._states.clear()
    return await ws.append("/workspace/large.txt", "z", namespace=namespace)


def _long_history(versions: int, pinned: int | None = None) -> Call:
    """Write versions of a text; with a pin, on one of them."""

    async def write(ws: Workspace, namespace: str) -> None:
        for number in range(1, versions + 1):
            await ws.write("/workspace/h.md", long_text(number), namespace=namespace)
        if pinned is not None:
            await ws.finalize("/workspace/h.md", version=pinned, namespace=namespace)

    return write


_INLINE = {"content": ContentOptions(inline_text_below_bytes=20_000)}

_TTL = {"retention": Retention(ttl_ms=1000, asset_grace_ms=0)}
_KEEP_TWO = {"versioning": Versioning(max_versions=2)}
_LITTLE_HISTORY = {"limits": Limits(max_history_bytes=600)}

CASES = [
    Case("write a new inline file", lambda ws, n: ws.write("/workspace/n.md", "n", namespace=n)),
    Case("write a new asset", lambda ws, n: ws.write("/workspace/n.bin", BINARY, namespace=n)),
    Case("write a stream", lambda ws, n: ws.write("/workspace/n.bin", _chunks(), namespace=n)),
    Case("write large text", lambda ws, n: ws.write("/workspace/n.md", LARGE, namespace=n)),
    Case("overwrite inline", lambda ws, n: ws.write("/workspace/a.md", "new", namespace=n)),
    Case("overwrite an asset", lambda ws, n: ws.write("/workspace/b.bin", BINARY, namespace=n)),
    Case(
        "overwrite inline by an asset",
        lambda ws, n: ws.write("/workspace/a.md", LARGE, namespace=n),
    ),
    Case(
        "overwrite an asset by inline", lambda ws, n: ws.write("/workspace/b.bin", "t", namespace=n)
    ),
    Case(
        "write at a gone path", lambda ws, n: ws.write("/workspace/gone.txt", "back", namespace=n)
    ),
    Case(
        "write and publish",
        lambda ws, n: ws.write("/outputs/f.md", "f", status="final", kind="k", namespace=n),
    ),
    Case("edit", lambda ws, n: ws.edit("/workspace/a.md", "one", "uno", namespace=n)),
    Case(
        "edit large text",
        lambda ws, n: ws.edit("/workspace/large.txt", "a", "A", occurrence=1, namespace=n),
    ),
    Case("append", lambda ws, n: ws.append("/workspace/a.md", "more\n", namespace=n)),
    Case("append to nothing", lambda ws, n: ws.append("/workspace/n.md", "more\n", namespace=n)),
    Case("append until large", lambda ws, n: ws.append("/workspace/a.md", LARGE, namespace=n)),
    Case("append to large text", lambda ws, n: ws.append("/workspace/large.txt", "z", namespace=n)),
    Case("append to text that another process wrote", _append_unknown, before=_add_parts),
    Case(
        "append to parts",
        lambda ws, n: ws.append("/workspace/large.txt", "z", namespace=n),
        before=_add_parts,
    ),
    Case(
        "append to so many parts that they are joined",
        lambda ws, n: ws.append("/workspace/large.txt", "z", namespace=n),
        before=_add_most_parts,
    ),
    Case(
        "edit parts",
        lambda ws, n: ws.edit("/workspace/large.txt", "part 1", "part one", namespace=n),
        before=_add_parts,
    ),
    Case(
        "undo parts",
        lambda ws, n: ws.undo("/workspace/large.txt", namespace=n),
        before=_add_parts,
    ),
    Case(
        "copy parts",
        lambda ws, n: ws.copy("/workspace/large.txt", "/outputs/l.txt", namespace=n),
        before=_add_parts,
    ),
    Case(
        "copy parts from another namespace",
        lambda ws, n: ws.copy(
            "/workspace/q.txt", "/workspace/n", to_namespace=n, namespace=OTHER + n
        ),
        before=_add_parts,
    ),
    Case("purge parts", _purge("/workspace/large.txt"), before=_add_parts, steps=True),
    Case(
        "write text as a stream",
        lambda ws, n: ws.write("/workspace/n.txt", _lines(), encoding="utf-8", namespace=n),
    ),
    Case(
        "update",
        lambda ws, n: ws.update("/workspace/a.md", lambda value: value.upper(), namespace=n),
    ),
    Case(
        "update an asset",
        lambda ws, n: ws.update("/workspace/b.bin", lambda value: value.upper(), namespace=n),
    ),
    Case("set", lambda ws, n: ws.set("/workspace/a.md", metadata={"s": 1}, namespace=n)),
    Case("set final", lambda ws, n: ws.set("/workspace/b.bin", status="final", namespace=n)),
    Case("rename a file", lambda ws, n: ws.rename("/workspace/a.md", "/outputs/a.md", namespace=n)),
    Case("rename a directory", lambda ws, n: ws.rename("/workspace/d", "/outputs/d", namespace=n)),
    Case(
        "rename over a file",
        lambda ws, n: ws.rename(
            "/workspace/b.bin", "/outputs/pub.bin", overwrite=True, namespace=n
        ),
    ),
    Case(
        "move a published file",
        lambda ws, n: ws.move("/outputs/pub.bin", "/outputs/q", namespace=n),
    ),
    Case("copy inline", lambda ws, n: ws.copy("/workspace/a.md", "/outputs/a.md", namespace=n)),
    Case("copy an asset", lambda ws, n: ws.copy("/workspace/b.bin", "/outputs/b.bin", namespace=n)),
    Case(
        "copy over a file",
        lambda ws, n: ws.copy("/workspace/b.bin", "/workspace/a.md", overwrite=True, namespace=n),
    ),
    Case("copy a directory", lambda ws, n: ws.copy("/workspace/d", "/outputs/d", namespace=n)),
    Case(
        "copy from another namespace",
        lambda ws, n: ws.copy(
            "/workspace/o.bin", "/workspace/n", to_namespace=n, namespace=OTHER + n
        ),
    ),
    Case(
        "copy a directory from another namespace",
        lambda ws, n: ws.copy("/workspace", "/workspace/n", to_namespace=n, namespace=OTHER + n),
    ),
    Case("delete", lambda ws, n: ws.delete("/workspace/a.md", namespace=n)),
    Case("delete an asset", lambda ws, n: ws.delete("/workspace/b.bin", namespace=n)),
    Case("delete a published file", lambda ws, n: ws.delete("/outputs/pub.bin", namespace=n)),
    Case("delete a directory", _delete_tree),
    Case("purge", _purge("/workspace/b.bin"), steps=True),
    Case("purge a deleted file", _purge("/workspace/gone.bin"), steps=True),
    Case("purge a directory", _purge("/workspace/d", recursive=True), steps=True),
    Case("undo", lambda ws, n: ws.undo("/workspace/a.md", namespace=n)),
    Case("undo an asset", lambda ws, n: ws.undo("/workspace/b.bin", namespace=n)),
    Case("undo to a version", lambda ws, n: ws.undo("/workspace/a.md", to_version=1, namespace=n)),
    Case("undo a deletion", lambda ws, n: ws.undo("/workspace/gone.txt", namespace=n)),
    Case("undo an asset's deletion", lambda ws, n: ws.undo("/workspace/gone.bin", namespace=n)),
    Case("redo", lambda ws, n: ws.redo("/workspace/u.md", namespace=n)),
    Case("finalize", lambda ws, n: ws.finalize("/outputs/pub.bin", namespace=n)),
    Case(
        "finalize a version", lambda ws, n: ws.finalize("/workspace/a.md", version=1, namespace=n)
    ),
    Case("withdraw", lambda ws, n: ws.withdraw("/outputs/pub.bin", namespace=n)),
    Case("undo a commit that overwrote", _undo_last_of_all, before=_rename_over),
    Case("undo a commit that deleted a tree", _undo_last_of_all, before=_delete_tree),
    Case(
        "write what collects",
        lambda ws, n: ws.write("/workspace/b.bin", b"3", namespace=n),
        _KEEP_TWO,
    ),
    Case(
        "write what collects bytes",
        lambda ws, n: ws.write("/workspace/b.bin", b"3", namespace=n),
        _LITTLE_HISTORY,
    ),
    Case(
        "collect by gc",
        lambda ws, n: ws.gc(dry_run=False, namespace=n),
        _KEEP_TWO,
        before=_write_many,
        steps=True,
    ),
    Case(
        "sweep what is due",
        lambda ws, n: ws.gc(dry_run=False, namespace=n),
        _TTL,
        wait_ms=2000,
        steps=True,
    ),
    Case(
        "write over what is due",
        lambda ws, n: ws.write("/workspace/a.md", "again", namespace=n),
        _TTL,
        wait_ms=2000,
    ),
    Case(
        "rename over what is due",
        lambda ws, n: ws.undo("/workspace/b.bin", namespace=n),
        _TTL,
        wait_ms=2000,
    ),
    Case(
        "write what makes a history smaller",
        lambda ws, n: ws.write("/workspace/h.md", long_text(9), namespace=n),
        _INLINE,
        before=_long_history(8),
    ),
    Case(
        "delete what makes a history smaller",
        lambda ws, n: ws.delete("/workspace/h.md", namespace=n),
        _INLINE,
        before=_long_history(8),
    ),
    Case(
        "undo to a difference",
        lambda ws, n: ws.undo("/workspace/h.md", to_version=2, namespace=n),
        _INLINE,
        before=_long_history(9),
    ),
    Case(
        "finalize a difference",
        lambda ws, n: ws.finalize("/workspace/h.md", version=2, namespace=n),
        _INLINE,
        before=_long_history(9),
    ),
    Case(
        "write what collects around a pinned difference",
        lambda ws, n: ws.write("/workspace/h.md", long_text(10), namespace=n),
        {**_INLINE, **_KEEP_TWO},
        before=_long_history(9, pinned=3),
    ),
    Case(
        "collect around a pinned difference by gc",
        lambda ws, n: ws.gc(dry_run=False, namespace=n),
        {**_INLINE, **_KEEP_TWO},
        before=_long_history(9, pinned=3),
        steps=True,
    ),
    Case(
        "make a history smaller by gc",
        lambda ws, n: ws.gc(dry_run=False, namespace=n),
        _INLINE,
        before=_long_history(6),
        steps=True,
    ),
    Case("purge a long history", _purge("/workspace/h.md"), _INLINE, _long_history(9), steps=True),
]
