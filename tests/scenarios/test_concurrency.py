"""Many writers at once: nothing lost, nothing doubled, one winner where there can be one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any

import pytest

from crux_workspace import ContentOptions, Limits, Versioning, Workspace
from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.storage import storage as bundle
from crux_workspace.testing import CommitOnlyRecordStore

A = "/workspace/a"


@pytest.fixture(params=["as it is", "without planning under a lock"])
def make_any(make_ws: Any, storage: Any, request: pytest.FixtureRequest) -> Any:
    """Workspaces over the store, and over one that can only commit."""
    if request.param == "as it is":
        return make_ws
    weak = bundle(records=CommitOnlyRecordStore(storage.records), assets=storage.assets)
    return lambda **options: make_ws(**{"storage": weak, **options})


async def outcomes(calls: Iterable[Awaitable[Any]]) -> tuple[list[Any], list[str]]:
    """Return what went through, and the codes of what was refused."""
    done = await asyncio.gather(*calls, return_exceptions=True)
    for result in done:
        if isinstance(result, BaseException) and not isinstance(result, WorkspaceError):
            raise result
    refusals = [str(error.code) for error in done if isinstance(error, WorkspaceError)]
    return [result for result in done if not isinstance(result, WorkspaceError)], refusals


async def test_ten_parallel_first_writes_give_versions_one_to_ten(make_any: Any) -> None:
    handles = [make_any() for _ in range(10)]
    files, _ = await outcomes(ws.write(A, f"{n}") for n, ws in enumerate(handles))
    assert sorted(file.version for file in files) == list(range(1, 11))
    assert len({file.id for file in files}) == 1
    texts = [await handles[0].read_text(A, version=number) for number in range(1, 11)]
    assert sorted(texts, key=int) == [str(number) for number in range(10)]


@pytest.mark.parametrize("inline", [20, 64_000])
async def test_twenty_parallel_edits_of_one_file_all_land(make_ws: Any, inline: int) -> None:
    handles = [make_ws(content=ContentOptions(inline_text_below_bytes=inline)) for _ in range(2)]
    await handles[0].write(A, "".join(f"<{number}>\n" for number in range(20)))
    await outcomes(handles[n % 2].edit(A, f"<{n}>", f"[{n}]") for n in range(20))
    assert await handles[0].read_text(A) == "".join(f"[{number}]\n" for number in range(20))
    assert [entry.version for entry in await handles[0].history(A)] == list(range(21, 0, -1))


async def test_parallel_edits_on_a_store_without_a_lock_land_or_conflict(make_any: Any) -> None:
    ws = make_any()
    await ws.write(A, "".join(f"<{number}>\n" for number in range(20)))
    done, refusals = await outcomes(ws.edit(A, f"<{n}>", f"[{n}]") for n in range(20))
    assert set(refusals) <= {ErrorCode.VERSION_CONFLICT}
    text = await ws.read_text(A)
    assert text.count("[") == len(done)
    assert text.count("[") + text.count("<") == 20


async def test_no_update_is_lost(make_ws: Any) -> None:
    ws = make_ws()
    await ws.write(A, 0)
    done, refusals = await outcomes(
        ws.update(A, lambda value: value + 1, max_attempts=50) for _ in range(10)
    )
    assert refusals == []
    assert await ws.read_json(A) == len(done) == 10


async def test_one_of_several_writers_at_one_version_wins(make_any: Any) -> None:
    handles = [make_any() for _ in range(5)]
    await handles[0].write(A, "base")
    done, refusals = await outcomes(
        ws.write(A, f"{n}", if_version=1) for n, ws in enumerate(handles)
    )
    assert len(done) == 1
    assert refusals == [ErrorCode.VERSION_CONFLICT] * 4


async def test_a_file_and_a_directory_created_at_once_have_one_winner(make_any: Any) -> None:
    one, two = make_any(), make_any()
    for number in range(5):
        path = f"/workspace/{number}"
        done, refusals = await outcomes([one.write(path, ""), two.write(f"{path}/below", "")])
        assert len(done) == 1
        assert refusals == [ErrorCode.PATH_TYPE_CONFLICT]
        assert len(await one.list(path, recursive=True)) == 1


async def test_a_directory_moved_while_a_file_is_made_where_it_goes(make_any: Any) -> None:
    one, two = make_any(), make_any()
    await one.write("/workspace/d/1", "")
    _, refusals = await outcomes(
        [one.rename("/workspace/d", "/workspace/e"), two.write("/workspace/e", "")]
    )
    assert refusals == [ErrorCode.PATH_TYPE_CONFLICT]
    listed = [entry.path for entry in await one.list(recursive=True)]
    assert listed in (["/workspace/e/1"], ["/workspace/d/1", "/workspace/e"])


async def test_a_file_made_in_a_directory_that_is_deleted_or_moved_is_not_lost(
    make_any: Any,
) -> None:
    for verb in ("delete", "rename"):
        one, two = make_any(namespace=verb), make_any(namespace=verb)
        await one.write("/workspace/d/1", "")
        call = (
            one.delete("/workspace/d", recursive=True)
            if verb == "delete"
            else one.rename("/workspace/d", "/workspace/e")
        )
        _, refusals = await outcomes([call, two.write("/workspace/d/2", "text")])
        assert set(refusals) <= {ErrorCode.VERSION_CONFLICT}
        entries = {change.path for entry in await one.log() for change in entry.changes}
        assert "/workspace/d/2" in entries


async def test_finalize_racing_a_write_pins_one_of_them_and_loses_neither(make_any: Any) -> None:
    one, two = make_any(), make_any()
    await one.write(A, "1")
    for number in range(5):
        artifact_and_file, refusals = await outcomes([one.finalize(A), two.write(A, f"{number}")])
        assert refusals == []
        artifact, file = artifact_and_file
        head = await one.stat(A)
        assert head is not None
        assert head.version == file.version
        assert head.status == "final"
        assert head.pinned_version == artifact.version
        assert artifact.version in (file.version, file.version - 1)


async def test_two_writers_at_the_edge_of_the_quota(make_any: Any) -> None:
    limits = Limits(max_namespace_bytes=100, max_files=6)
    one, two = make_any(limits=limits), make_any(limits=limits)
    done, refusals = await outcomes(
        (one, two)[n % 2].write(f"/workspace/{n}", "x" * 30) for n in range(6)
    )
    assert len(done) == 3
    assert refusals == [ErrorCode.QUOTA_EXCEEDED] * 3
    usage = await one.usage()
    assert (usage.live_bytes, usage.live_files, usage.versions) == (90, 3, 3)


async def test_parallel_renames_to_one_path_have_one_winner(make_any: Any) -> None:
    one, two = make_any(), make_any()
    await one.write("/workspace/1", "1")
    await one.write("/workspace/2", "2")
    done, refusals = await outcomes([one.rename("/workspace/1", A), two.rename("/workspace/2", A)])
    assert len(done) == 1
    assert refusals == [ErrorCode.ALREADY_EXISTS]


async def test_parallel_renames_of_one_file_have_one_winner(make_any: Any) -> None:
    one, two = make_any(), make_any()
    await one.write(A, "1")
    done, refusals = await outcomes([one.rename(A, "/workspace/1"), two.rename(A, "/workspace/2")])
    assert len(done) == 1
    assert refusals == [ErrorCode.FILE_NOT_FOUND]
    assert len(await one.list(recursive=True)) == 1


async def test_collection_under_concurrent_writers_keeps_the_count(make_any: Any) -> None:
    handles = [make_any(versioning=Versioning(max_versions=2)) for _ in range(3)]
    await outcomes(handles[n % 3].write(A, f"{n}" * 10) for n in range(12))
    assert [entry.version for entry in await handles[0].history(A)] == [12, 11]
    assert (await handles[0].usage()).versions == 2


async def test_large_contents_in_parallel_leave_no_orphans(make_ws: Any, clock: Any) -> None:
    handles = [make_ws(content=ContentOptions(inline_text_below_bytes=20)) for _ in range(4)]
    await outcomes(handles[n % 4].write(A, bytes([n]) * 500) for n in range(12))
    seen = {await handles[0].read_bytes(A, version=number) for number in range(1, 13)}
    assert seen == {bytes([n]) * 500 for n in range(12)}
    clock.advance(100_000_000)
    assert (await handles[0].gc()).assets == 0


async def test_the_same_key_at_once_is_done_once(make_any: Any) -> None:
    handles = [make_any() for _ in range(5)]
    done, refusals = await outcomes(ws.append(A, "x", idempotency_key="k") for ws in handles)
    assert refusals == []
    assert len({file.version for file in done}) == 1
    assert await handles[0].read_text(A) == "x"


async def test_namespaces_do_not_disturb_each_other(make_any: Any) -> None:
    ws = make_any()
    await outcomes(ws.append(A, f"{n}\n", namespace=f"n{n % 4}") for n in range(40))
    for number in range(4):
        lines = (await ws.read_text(A, namespace=f"n{number}")).split()
        assert sorted(map(int, lines)) == list(range(number, 40, 4))
        assert [e.sequence for e in await ws.log(namespace=f"n{number}")] == list(range(10, 0, -1))


async def test_a_cancelled_call_is_wholly_there_or_absent(make_any: Any) -> None:
    ws: Workspace = make_any()
    for number in range(20):
        task = asyncio.create_task(ws.append(A, f"{number}\n"))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await ws.aclose()  # waits for the commits that go on without their callers
    ws = make_any()
    text = await ws.read_text(A) if await ws.exists(A) else ""
    versions = await ws.history(A)
    assert len(text.split()) == len(versions) == len(await ws.log())
    assert (await ws.usage()).versions == len(versions)
