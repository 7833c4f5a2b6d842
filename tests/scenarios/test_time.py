"""log, at, undo_commit, acting_as."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from crux_workspace import ContentOptions, Retention, Versioning, Workspace
from crux_workspace.errors import ConflictError, ErrorCode
from crux_workspace.testing.workspace import refused

A, B = "/workspace/a", "/workspace/b"


def moment(ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ms / 1000, tz=dt.UTC)


async def test_the_log_has_every_commit_newest_first_without_gaps(
    ws: Workspace, clock: Any
) -> None:
    await ws.write(A, "one")
    clock.advance(7)
    await ws.rename(A, B)
    await ws.delete(B)
    entries = await ws.log()
    assert [(e.sequence, e.verb, e.at) for e in entries] == [
        (3, "delete", clock.now),
        (2, "rename", clock.now),
        (1, "write", clock.now - 7),
    ]
    assert len({entry.commit for entry in entries}) == 3
    assert all(entry.actor is None for entry in entries)
    assert entries[0].to_dict()["changes"][0]["type"] == "delete"


async def test_the_log_is_paged_and_filtered_by_path(ws: Workspace) -> None:
    for number in range(5):
        await ws.write(A, f"{number}")
        await ws.write("/workspace/d/x", f"{number}")
    assert [e.sequence for e in await ws.log(limit=3)] == [10, 9, 8]
    first = await ws.log(limit=4)
    second = await ws.log(limit=4, cursor=first[-1].cursor)
    assert [e.sequence for e in second] == [6, 5, 4, 3]
    assert [e.sequence for e in await ws.log(path=A)] == [9, 7, 5, 3, 1]
    with refused(ErrorCode.INVALID_CURSOR):
        await ws.log(cursor="rubbish")
    with refused(ErrorCode.INVALID_CURSOR):
        await ws.log(cursor=first[-1].cursor, namespace="other")


async def test_a_rename_is_found_in_the_log_by_both_ends(ws: Workspace) -> None:
    await ws.write(A, "")
    await ws.rename(A, B)
    assert [e.sequence for e in await ws.log(path=A)] == [2, 1]
    assert [e.sequence for e in await ws.log(path=B)] == [2]


async def test_commit_times_never_go_backwards(ws: Workspace, clock: Any) -> None:
    await ws.write(A, "one")
    clock.now -= 1_000
    await ws.write(A, "two")
    newest, oldest = await ws.log()
    assert newest.at == oldest.at


async def test_every_past_tree_is_seen_with_its_attributes(ws: Workspace) -> None:
    await ws.write(A, "one", metadata={"v": 1})
    await ws.set(A, metadata={"v": 2}, kind="k")
    await ws.rename(A, B)
    await ws.write(A, "new")
    await ws.rename(A, B, overwrite=True)
    await ws.delete(B)
    views = [ws.at(number) for number in range(7)]
    trees = [[entry.path for entry in await view.list(recursive=True)] for view in views]
    assert trees == [[], [A], [A], [B], [A, B], [B], []]
    metadata = [(await views[n].stat(path)).metadata for n, path in ((1, A), (2, A), (3, B))]  # type: ignore[union-attr]
    assert metadata == [{"v": 1}, {"v": 2}, {"v": 2}]
    assert [await views[n].read_text(B) for n in (3, 4, 5)] == ["one", "one", "new"]
    assert await views[4].read_text(A) == "new"
    assert not await views[5].exists(A)
    assert await views[3].exists("/workspace/b")


async def test_views_offer_the_reading_verbs(ws: Any) -> None:
    await ws.write("/workspace/d/a", "one x", kind="k")
    await ws.write("/workspace/d/j", {"k": 1})
    await ws.write("/workspace/d/b", b"\x00")
    await ws.delete("/workspace", recursive=True)
    view = ws.at(3)
    assert await view.read_text("/workspace/d/a") == "one x"
    assert await view.read_json("/workspace/d/j") == {"k": 1}
    assert await view.read_bytes("/workspace/d/b") == b"\x00"
    assert (await view.read("/workspace/d/a", start_line=1)).content == "one x"
    many = await view.read_many(["/workspace/d/a", "/workspace/none"])
    assert [content is None for content in many.values()] == [False, True]
    assert await view.exists("/workspace/d")
    assert await view.is_dir("/workspace/d")
    assert (await view.stat("/workspace/d/a")).version == 1
    assert [e.path async for e in view.walk("/workspace")] == [
        "/workspace/d/a",
        "/workspace/d/b",
        "/workspace/d/j",
    ]
    assert [match.column for match in (await view.grep("x")).matches] == [5]
    assert [artifact.path for artifact in await view.artifacts()] == ["/workspace/d/a"]
    assert [e.path for e in await view.list("/workspace")] == ["/workspace/d"]
    assert [e.path for e in await view.list("/**/[aj]")] == ["/workspace/d/a", "/workspace/d/j"]
    with refused(ErrorCode.FILE_NOT_FOUND):
        await view.read("/workspace/none")


async def test_views_do_not_write(ws: Workspace) -> None:
    view = ws.at(0)
    for verb in ("write", "edit", "append", "set", "delete", "rename", "undo", "finalize"):
        assert not hasattr(view, verb)


async def test_a_datetime_means_the_last_commit_at_or_before_it(ws: Workspace, clock: Any) -> None:
    start = clock.now
    for number in range(3):
        await ws.write(A, f"{number}")
        clock.advance(1_000)
    texts = [
        await ws.at(moment(start + ms)).read_text(A) for ms in (0, 1, 999, 1_000, 1_500, 9_000)
    ]
    assert texts == ["0", "0", "0", "1", "1", "2"]
    assert list(await ws.at(moment(start - 1)).list(recursive=True)) == []


@pytest.mark.parametrize("when", [dt.datetime(2020, 1, 1), 99, -1, "1", True])  # noqa: DTZ001
async def test_moments_that_mean_nothing_are_refused(ws: Workspace, when: Any) -> None:
    await ws.write(A, "")
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.at(when).list()


async def test_a_view_stays_fixed_after_its_first_call(ws: Workspace, clock: Any) -> None:
    await ws.write(A, "one")
    view = ws.at(moment(clock.now))
    assert await view.read_text(A) == "one"
    await ws.write(A, "two")
    assert await view.read_text(A) == "one"


async def test_collected_content_is_expired_in_views_and_counted(make_ws: Any) -> None:
    ws = make_ws(versioning=Versioning(max_versions=1))
    await ws.write(A, "one x", kind="k")
    await ws.write(B, "b x", kind="k")
    await ws.write(A, "two")
    view = ws.at(2)
    with refused(ErrorCode.VERSION_EXPIRED):
        await view.read(A)
    with refused(ErrorCode.VERSION_EXPIRED):
        await view.stat(A)
    page = await view.list(recursive=True)
    assert ([entry.path for entry in page], page.expired) == ([B], 1)
    matches = await view.grep("x")
    assert ([match.path for match in matches.matches], matches.expired) == ([B], 1)
    assert [artifact.path for artifact in await view.artifacts()] == [B]


async def test_a_view_before_the_retained_log_is_not_found(make_ws: Any, clock: Any) -> None:
    ws = make_ws(retention=Retention(log_ms=1_000))
    await ws.write(A, "one")
    clock.advance(5_000)
    await ws.write(A, "two")
    report = await ws.gc(dry_run=False)
    assert report.log_entries == 1
    assert [entry.sequence for entry in await ws.log()][-1] == 2
    with refused(ErrorCode.COMMIT_NOT_FOUND):
        await ws.at(moment(clock.now - 5_000)).list()


async def test_the_actor_of_commits(ws: Workspace) -> None:
    acting = ws.acting_as("agent:writer")
    await acting.write(A, "one")
    await ws.write(A, "two")
    assert [entry.actor for entry in await ws.log()] == [None, "agent:writer"]
    await acting.write(A, "three")
    with refused(ErrorCode.VERSION_CONFLICT) as caught:
        await ws.write(A, "late", if_version=1)
    assert caught.value.details["last_actor"] == "agent:writer"


@pytest.mark.parametrize("actor", ["", " "])
async def test_a_blank_actor_is_refused(ws: Workspace, actor: str) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        ws.acting_as(actor)


async def undo_last(ws: Workspace) -> Any:
    return await ws.undo_commit((await ws.log(limit=1))[0])


async def test_undoing_a_create_deletes(ws: Workspace) -> None:
    await ws.write(A, "one")
    entry = await undo_last(ws)
    assert (entry.sequence, [change.type for change in entry.changes]) == (2, ["delete"])
    assert not await ws.exists(A)
    assert (await ws.undo(A)).version == 3


async def test_undoing_an_update_restores_content_and_attributes(ws: Workspace) -> None:
    await ws.write(A, "one", metadata={"v": 1}, kind="k", status="final")
    await ws.write(A, {"two": 2}, kind="other")
    await undo_last(ws)
    file = await ws.stat(A)
    assert file is not None
    assert (file.version, file.metadata, file.artifact_kind) == (3, {"v": 1}, "k")
    assert (file.status, file.pinned_version) == ("final", 1)
    assert await ws.read_text(A) == "one"
    assert (await ws.history(A))[0].operation == "undo"


async def test_undoing_attributes_adds_no_version(ws: Workspace) -> None:
    await ws.write(A, "one", metadata={"v": 1})
    await ws.set(A, metadata={"v": 2})
    await undo_last(ws)
    assert (await ws.stat(A)).metadata == {"v": 1}  # type: ignore[union-attr]
    await ws.finalize(A)
    await undo_last(ws)
    file = await ws.stat(A)
    assert file is not None
    assert (file.status, file.pinned_version, file.version) == (None, None, 1)
    await ws.finalize(A)
    await ws.withdraw(A)
    await undo_last(ws)
    assert (await ws.stat(A)).pinned_version == 1  # type: ignore[union-attr]


async def test_undoing_a_delete_brings_all_back_with_pins(ws: Workspace) -> None:
    one = await ws.write("/workspace/d/1", "1", status="final")
    await ws.write("/workspace/d/1", "draft")
    two = await ws.write("/workspace/d/2", b"\x00" * 10)
    await ws.delete("/workspace/d", recursive=True)
    entry = await undo_last(ws)
    assert [change.type for change in entry.changes] == ["create", "create"]
    files = [await ws.stat(f"/workspace/d/{n}") for n in (1, 2)]
    assert [file.id for file in files if file] == [one.id, two.id]
    assert files[0] is not None
    assert (files[0].status, files[0].pinned_version) == ("final", 1)
    assert await ws.read_text("/workspace/d/1") == "draft"


async def test_undoing_a_directory_move_moves_back(ws: Workspace) -> None:
    files = [await ws.write(f"/workspace/d/{n}", f"{n}") for n in range(3)]
    await ws.rename("/workspace/d", "/outputs/e")
    entry = await undo_last(ws)
    assert [change.type for change in entry.changes] == ["rename"] * 3
    back = [await ws.stat(file.path) for file in files]
    assert [(b.id, b.version) for b in back if b] == [(file.id, 1) for file in files]
    assert not await ws.exists("/outputs/e")


async def test_undo_commit_takes_the_string_and_can_be_undone_itself(ws: Workspace) -> None:
    await ws.write(A, "one")
    await ws.write(A, "two")
    undone = await ws.undo_commit((await ws.log())[0].commit)
    assert await ws.read_text(A) == "one"
    await ws.undo_commit(undone)
    assert await ws.read_text(A) == "two"


async def test_an_older_commit_can_be_undone_when_nothing_later_touched_its_paths(
    ws: Workspace,
) -> None:
    await ws.write(A, "a")
    await ws.write(A, "aa")
    target = (await ws.log(limit=1))[0]
    await ws.write(B, "b")
    await ws.undo_commit(target)
    assert await ws.read_text(A) == "a"


async def test_a_later_change_is_named_in_the_conflict(ws: Workspace) -> None:
    await ws.write(A, "a")
    target = (await ws.log(limit=1))[0]
    await ws.rename(A, B)
    later = (await ws.log(limit=1))[0]
    await ws.write(A, "other file, same path")
    with refused(ErrorCode.VERSION_CONFLICT, ConflictError) as caught:
        await ws.undo_commit(target)
    assert caught.value.details["sequence"] in (later.sequence, later.sequence + 1)
    assert "commit" in caught.value.details
    assert len(await ws.log()) == 3


async def test_an_attribute_change_is_a_later_change_too(ws: Workspace) -> None:
    await ws.write(A, "a")
    await ws.write(A, "aa")
    target = (await ws.log(limit=1))[0]
    await ws.set(A, metadata={"m": 1})
    with refused(ErrorCode.VERSION_CONFLICT):
        await ws.undo_commit(target)


async def test_collected_content_cannot_be_brought_back(make_ws: Any) -> None:
    ws = make_ws(versioning=Versioning(max_versions=1))
    await ws.write(A, "one")
    await ws.write(A, "two")
    with refused(ErrorCode.VERSION_EXPIRED):
        await undo_last(ws)
    assert await ws.read_text(A) == "two"


async def test_a_commit_of_a_file_that_was_purged_since_is_expired(ws: Workspace) -> None:
    await ws.write("/workspace/d/1", "1")
    await ws.write("/workspace/d/2", "2")
    await ws.delete("/workspace/d", recursive=True)
    targets = await ws.log()
    await ws.delete("/workspace/d/1", purge=True)
    for target in (targets[0], targets[2]):
        with refused(ErrorCode.VERSION_EXPIRED):
            await ws.undo_commit(target)
    assert not await ws.exists("/workspace/d")


@pytest.mark.parametrize("verb", ["delete", "rename"])
@pytest.mark.parametrize(
    ("path", "in_the_way"), [("/workspace/d/e", "/workspace/d"), ("/workspace/d", "/workspace/d/e")]
)
async def test_undo_commit_is_refused_where_a_file_or_directory_is_in_the_way(
    ws: Workspace, verb: str, path: str, in_the_way: str
) -> None:
    await ws.write(path, "old")
    await (ws.delete(path) if verb == "delete" else ws.rename(path, "/outputs/x"))
    await ws.write(in_the_way, "new")
    with refused(ErrorCode.PATH_TYPE_CONFLICT):
        await ws.undo_commit((await ws.log())[1])
    assert not await ws.exists(path) or await ws.is_dir(path)
    assert await ws.read_text(in_the_way) == "new"


@pytest.mark.parametrize("commit", ["rubbish", "", "99-" + "0" * 32, "1-" + "0" * 32])
async def test_an_unknown_commit_is_not_found(ws: Workspace, commit: str) -> None:
    await ws.write(A, "")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the code is judged below
        await ws.undo_commit(commit)
    error: Any = caught.value
    assert error.code in {ErrorCode.COMMIT_NOT_FOUND, ErrorCode.INVALID_ARGUMENT}


async def test_large_content_of_the_past_reads_whole(make_ws: Any) -> None:
    ws = make_ws(content=ContentOptions(inline_text_below_bytes=20))
    texts: list[Any] = ["x" * 5_000, "x" * 4_999 + "y", "short", b"\x00" * 99]
    for text in texts:
        await ws.write(A, text)
    for number, text in enumerate(texts, 1):
        data = text if isinstance(text, bytes) else text.encode()
        assert await ws.at(number).read_bytes(A) == data
