"""What a transaction looked at as a whole depends on what it showed, and on nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import Transaction, Workspace
from tests.support.transactions import conflict, tip

D = "/workspace/d"
OUT = "/outputs/out"
Steps = Callable[[Transaction], Awaitable[Any]]
Act = Callable[[Workspace], Awaitable[Any]]


async def seed(ws: Workspace) -> None:
    for path in (D + "/x", D + "/deep/y", D + "/deep/z", D + "/one/only", "/workspace/e/v"):
        await ws.write(path, f"text of {path}")


def kept(look: Steps) -> Steps:
    """Look, and write down what was found."""

    async def run(tx: Transaction) -> None:
        await look(tx)
        await tx.write(OUT, "what it found")

    return run


def steps(*calls: Steps) -> Steps:
    async def run(tx: Transaction) -> None:
        for call in calls:
            await call(tx)

    return run


def act(*calls: Act) -> Act:
    async def run(ws: Workspace) -> None:
        for call in calls:
            await call(ws)

    return run


def walk(path: str) -> Steps:
    async def look(tx: Transaction) -> None:
        assert [entry async for entry in tx.walk(path)]

    return look


LIST: Steps = lambda tx: tx.list(D)  # noqa: E731
HAS: Steps = lambda tx: tx.is_dir(D + "/one")  # noqa: E731
PURGE_ELSEWHERE = act(
    lambda ws: ws.rename(D + "/x", "/workspace/e/x"),
    lambda ws: ws.delete("/workspace/e/x", purge=True),
)

SHOWN: dict[str, tuple[Steps, Act]] = {
    "a file makes a directory": (LIST, lambda ws: ws.write(D + "/new/deep/file", "x")),
    "a directory loses its last file": (LIST, lambda ws: ws.delete(D + "/one/only")),
    "a directory's last file is moved away": (
        LIST,
        lambda ws: ws.rename(D + "/one/only", "/workspace/e/only"),
    ),
    "a directory's last file is purged": (LIST, lambda ws: ws.delete(D + "/one/only", purge=True)),
    "a directory is moved in": (LIST, lambda ws: ws.rename("/workspace/e", D + "/e")),
    "a directory is renamed within": (LIST, lambda ws: ws.rename(D + "/one", D + "/two")),
    "a directory becomes a file": (
        LIST,
        act(
            lambda ws: ws.delete(D + "/one/only"),
            lambda ws: ws.write(D + "/one", "x"),
            lambda ws: ws.delete(D + "/one"),
            lambda ws: ws.write(D + "/one/only", "x"),
            lambda ws: ws.rename(D + "/x", D + "/one/x"),
        ),
    ),
    "a file is moved out and purged": (LIST, PURGE_ELSEWHERE),
    "a walked file is moved out and purged": (walk(D), PURGE_ELSEWHERE),
    "a file of a glob is moved out and purged": (
        lambda tx: tx.grep("text", path=D + "/*"),
        PURGE_ELSEWHERE,
    ),
    "a directory's last file is moved out and purged": (
        lambda tx: tx.exists(D + "/one"),
        act(
            lambda ws: ws.rename(D + "/one/only", "/workspace/e/x"),
            lambda ws: ws.delete("/workspace/e/x", purge=True),
        ),
    ),
    "a file is overwritten, and what overwrote it is moved out and purged": (
        LIST,
        act(
            lambda ws: ws.rename("/workspace/e/v", D + "/x", overwrite=True),
            lambda ws: ws.rename(D + "/x", "/workspace/e/v"),
            lambda ws: ws.delete("/workspace/e/v", purge=True),
        ),
    ),
    "a directory that was there has no file any more": (HAS, lambda ws: ws.delete(D + "/one/only")),
    "a directory that was not there is": (
        lambda tx: tx.exists(D + "/new"),
        lambda ws: ws.write(D + "/new/deep/file", "x"),
    ),
    "a directory that the transaction emptied is filled": (
        steps(lambda tx: tx.delete(D + "/one/only"), LIST),
        lambda ws: ws.write(D + "/one/other", "x"),
    ),
    "a directory that the transaction emptied before it looked is filled": (
        steps(lambda tx: tx.delete(D + "/one/only"), HAS),
        lambda ws: ws.write(D + "/one/other", "x"),
    ),
    "a directory that has only the transaction's deletions and another file loses it": (
        steps(lambda tx: tx.delete(D + "/deep/y"), lambda tx: tx.is_dir(D + "/deep")),
        lambda ws: ws.delete(D + "/deep/z"),
    ),
}

HIDDEN: dict[str, tuple[Steps, Act]] = {
    "a file comes into a directory of the listing": (
        LIST,
        lambda ws: ws.write(D + "/deep/new", "x"),
    ),
    "a file comes far below a directory of the listing": (
        LIST,
        lambda ws: ws.write(D + "/deep/er/new", "x"),
    ),
    "a directory of the listing loses one of its files": (
        LIST,
        lambda ws: ws.delete(D + "/deep/y"),
    ),
    "a file moves between directories of the listing": (
        LIST,
        lambda ws: ws.rename(D + "/deep/y", D + "/one/y"),
    ),
    "a directory of the listing is emptied and filled": (
        LIST,
        act(lambda ws: ws.delete(D + "/one/only"), lambda ws: ws.write(D + "/one/other", "x")),
    ),
    "a directory of the listing changes on the first page already": (
        lambda tx: tx.list(D, limit=1),
        lambda ws: ws.write(D + "/deep/new", "x"),
    ),
    "a file comes into a directory that exists": (
        lambda tx: tx.exists(D),
        lambda ws: ws.write(D + "/new", "x"),
    ),
    "a file leaves a directory that stays": (
        lambda tx: tx.is_dir(D + "/deep"),
        lambda ws: ws.delete(D + "/deep/y"),
    ),
    "a file comes into a directory that the transaction made": (
        steps(lambda tx: tx.write(D + "/new/mine", "x"), LIST),
        lambda ws: ws.write(D + "/new/theirs", "x"),
    ),
    "a file comes into a directory that the transaction wrote in": (
        steps(lambda tx: tx.write(D + "/deep/mine", "x"), LIST),
        lambda ws: ws.write(D + "/deep/theirs", "x"),
    ),
    "a file that was elsewhere is purged elsewhere": (
        LIST,
        act(
            lambda ws: ws.rename("/workspace/e/v", "/workspace/e/w"),
            lambda ws: ws.delete("/workspace/e/w", purge=True),
        ),
    ),
    "a new file comes, goes and is purged": (
        LIST,
        act(
            lambda ws: ws.write(D + "/deep/new", "x"),
            lambda ws: ws.rename(D + "/deep/new", "/workspace/e/new"),
            lambda ws: ws.delete("/workspace/e/new", purge=True),
        ),
    ),
}


@pytest.mark.parametrize("case", SHOWN)
async def test_what_shows_in_a_look_is_a_conflict(ws: Workspace, interfere: Any, case: str) -> None:
    await seed(ws)
    looked, others = SHOWN[case]
    with conflict() as told:
        await interfere(kept(looked), others)
    assert told
    assert all(one["path"].startswith("/workspace") for one in told)
    assert not await ws.exists(OUT)


@pytest.mark.parametrize("case", HIDDEN)
async def test_what_does_not_show_in_a_look_is_none(
    ws: Workspace, interfere: Any, case: str
) -> None:
    await seed(ws)
    looked, others = HIDDEN[case]
    tx = await interfere(kept(looked), others)
    assert tx.committed is not None
    assert tx.committed.sequence == await tip(ws)
