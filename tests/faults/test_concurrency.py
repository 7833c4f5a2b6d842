"""Many at once: nothing lost, nothing doubled, and afterwards every number and every view adds up."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from crux_workspace import Limits, Retention, Workspace, WorkspaceFile
from crux_workspace.errors import ErrorCode, WorkspaceError
from tests.support.stages import Stage, Trial

A = "/workspace/a"


async def outcomes(calls: Iterable[Awaitable[Any]]) -> tuple[list[Any], list[str]]:
    """Return what went through, and the codes of what was refused."""
    done = await asyncio.gather(*calls, return_exceptions=True)
    for result in done:
        if isinstance(result, BaseException) and not isinstance(result, WorkspaceError):
            raise result
    refused = [str(error.code) for error in done if isinstance(error, WorkspaceError)]
    return [result for result in done if not isinstance(result, WorkspaceError)], refused


def handles(trial: Trial, number: int, **options: Any) -> list[Workspace]:
    return [trial.workspace(**options).for_namespace(trial.namespace) for _ in range(number)]


@pytest.mark.parametrize("large", [False, True])
async def test_ten_first_writes_at_once_give_versions_one_to_ten(stage: Stage, large: bool) -> None:
    trial = stage.empty_trial()
    texts = [f"{n} " * (200 if large else 1) for n in range(10)]
    many = handles(trial, 10)
    files, refused = await outcomes(w.write(A, t) for w, t in zip(many, texts, strict=True))
    assert not refused
    assert sorted(file.version for file in files) == list(range(1, 11))
    assert len({file.id for file in files}) == 1
    kept = [await many[0].read_text(A, version=n) for n in range(1, 11)]
    assert sorted(kept) == sorted(texts)
    await trial.check()


@pytest.mark.parametrize("large", [False, True])
async def test_twenty_edits_and_appends_at_once_all_land(stage: Stage, large: bool) -> None:
    trial = stage.empty_trial()
    [ws, *others] = handles(trial, 4)
    filler = "-" * 500 if large else ""
    await ws.write(A, filler + "".join(f"<{n}>" for n in range(20)))
    calls = [others[n % 3].edit(A, f"<{n}>", f"[{n}]") for n in range(20)]
    calls += [others[n % 3].append(A, f"({n})") for n in range(20)]
    files, refused = await outcomes(calls)
    if stage.kind == "commit only":
        assert set(refused) <= {ErrorCode.VERSION_CONFLICT}
    else:
        assert not refused
    text = await ws.read_text(A)
    assert text.count("[") + text.count("(") == len(files)
    assert [entry.version for entry in await ws.history(A)] == list(range(len(files) + 1, 0, -1))
    await trial.check()


async def test_a_file_and_a_directory_at_one_path_at_once_leave_one_of_them(stage: Stage) -> None:
    for n in range(10):
        trial = stage.empty_trial()
        [one, two] = handles(trial, 2)
        calls = [one.write(A, "file"), two.write(f"{A}/b", "below"), one.write(f"{A}/c", "below")]
        _, refused = await outcomes(calls[n % 2 :] + calls[: n % 2])
        assert set(refused) == {ErrorCode.PATH_TYPE_CONFLICT}
        assert (await one.stat(A) is None) is await one.is_dir(A)
        await trial.check()


@pytest.mark.parametrize("limits", [Limits(max_namespace_bytes=100), Limits(max_files=1)], ids=str)
async def test_two_writers_at_the_edge_of_a_quota_leave_it_kept(
    stage: Stage, limits: Limits
) -> None:
    trial = stage.empty_trial()
    many = handles(trial, 8, limits=limits)
    done, refused = await outcomes(ws.write(f"{A}{n}", "x" * 60) for n, ws in enumerate(many))
    assert len(done) == 1
    assert set(refused) == {ErrorCode.QUOTA_EXCEEDED}
    await many[0].delete(done[0].path)
    assert (await many[1].write(A, "x" * 60)).version == 1
    await trial.check()


async def test_expired_files_make_room_once_for_writers_at_the_edge(stage: Stage) -> None:
    trial = stage.empty_trial()
    options = {"limits": Limits(max_files=3), "retention": Retention(ttl_ms=10)}
    many = handles(trial, 6, **options)
    for n in range(3):
        await many[0].write(f"{A}{n}", "old")
    trial.clock.advance(10)
    done, refused = await outcomes(ws.write(f"{A}new{n}", "new") for n, ws in enumerate(many))
    assert len(done) == 3
    assert refused == [ErrorCode.QUOTA_EXCEEDED] * 3
    await trial.check()


async def test_what_thirty_two_writers_leave_adds_up(stage: Stage) -> None:
    trial = await stage.trial()
    many = handles(trial, 4)
    rounds = 3 if stage.kind == "commit only" else 8
    done, refused = await outcomes(_mixed(many[n % 4], n, rounds) for n in range(32))
    assert not refused
    records = await trial.check()
    assert await trial.stored() >= records.referenced
    log = await many[0].log(limit=10_000)
    assert [entry.sequence for entry in log] == list(range(len(log), 0, -1))
    commits = {entry.commit for entry in log}
    assert {commit for made in done for commit in made} <= commits
    await _check_views(many[0], log)


async def _mixed(ws: Workspace, number: int, rounds: int) -> set[str]:
    """Do this and that to a few files; returns the commits that the results name."""
    chance = random.Random(number)
    paths = ["/workspace/a.md", "/workspace/b.bin", "/workspace/d/x.txt", "/workspace/m"]
    commits: set[str] = set()
    for _ in range(rounds):
        with contextlib.suppress(WorkspaceError):
            result = await _something(ws, chance, chance.choice(paths), chance.choice(paths))
            if isinstance(result, WorkspaceFile):
                commits.add(str(result.commit))
    return commits


async def _something(ws: Workspace, chance: random.Random, path: str, other: str) -> Any:
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: ws.write(path, "w" * chance.randrange(400)),
        lambda: ws.append(path, "a"),
        lambda: ws.rename(path, other, overwrite=True),
        lambda: ws.copy(path, other, overwrite=True),
        lambda: ws.undo(path),
        lambda: ws.finalize(path),
        lambda: ws.delete("/workspace/d", recursive=True),
        lambda: ws.write("/workspace/d/x.txt", b"binary"),
    ]
    return await chance.choice(calls)()


async def _check_views(ws: Workspace, log: list[Any]) -> None:
    """Each commit's changes lead from the view before it to the view after it."""
    tree: dict[str, tuple[str, int]] = {}
    for entry in reversed(log):
        for change in entry.changes:
            if change.type == "delete" or change.from_path is not None:
                gone = change.from_path or change.path
                if tree.get(gone, ("", 0))[0] == change.file_id:
                    del tree[gone]
        for change in entry.changes:
            if change.type != "delete":
                tree[change.path] = (change.file_id, change.version)
        files = [file async for file in ws.at(entry.sequence).walk("/")]
        assert {file.path: (file.id, file.version) for file in files} == tree, entry.sequence
