"""`WorkspaceContract`: what a whole workspace has to do on a given storage.

Certify a store by subclassing it with a `storage` fixture::

    class TestWorkspaceOnMyStore(WorkspaceContract):
        @pytest_asyncio.fixture
        async def storage(self):
            async with MyStore.connect(URL) as records:
                yield storage(records=records, assets=MemoryAssetStore())

Each check uses a workspace id of its own, so that they can share a database.
"""

# ruff: noqa: D102 - the checks are named for what they require

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from crux_workspace import ContentOptions, Limits, Retention, Versioning, workspace
from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.model.contents import BinaryContent
from crux_workspace.testing.doubles import FixedClock

if TYPE_CHECKING:
    from crux_workspace import Workspace
    from crux_workspace.storage import Storage

__all__ = ["WorkspaceContract", "refused"]

INLINE_BYTES = 20


@contextmanager
def refused(
    code: str | ErrorCode, kind: type[WorkspaceError] = WorkspaceError
) -> Iterator[pytest.ExceptionInfo[WorkspaceError]]:
    """Expect a refusal with this very code.

    Args:
        code: The code.
        kind: A class that the error has to be of.

    Yields:
        What `pytest.raises` gives.
    """
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code, f"refused with {caught.value.code}: {caught.value}"


@pytest.mark.asyncio
class WorkspaceContract:
    """Whole-library checks; subclass it and give a `storage` fixture."""

    @pytest.fixture
    def storage(self) -> Storage:
        message = "override the `storage` fixture with a Storage to certify"
        raise NotImplementedError(message)

    @pytest.fixture
    def clock(self) -> FixedClock:
        return FixedClock()

    @pytest_asyncio.fixture
    async def make(
        self, storage: Storage, clock: FixedClock
    ) -> AsyncIterator[Callable[..., Workspace]]:
        made: list[Workspace] = []
        fresh = f"contract-{secrets.token_hex(6)}"

        def build(**options: Any) -> Workspace:  # noqa: ANN401 - those of workspace()
            chosen: dict[str, Any] = {
                "id": fresh,
                "namespace": "n:1",
                "storage": storage,
                "clock": clock,
                "content": ContentOptions(inline_text_below_bytes=INLINE_BYTES),
                **options,
            }
            made.append(workspace(**chosen))
            return made[-1]

        yield build
        for ws in made:
            await ws.aclose()

    @pytest.fixture
    def ws(self, make: Callable[..., Workspace]) -> Workspace:
        return make()

    @pytest.mark.parametrize(
        "content",
        ["", "line\n", "\x00\r\n\r\u2028", "x" * 5000, {"k": [1, None]}, b"\x00\xff" * 99],
    )
    async def test_w01_what_was_written_reads_back(
        self,
        ws: Workspace,
        content: Any,  # noqa: ANN401 - anything writable
    ) -> None:
        file = await ws.write("/workspace/a", content)
        if isinstance(content, bytes):
            assert await ws.read_bytes("/workspace/a") == content
        else:
            read = await ws.read("/workspace/a")
            assert not isinstance(read, BinaryContent)
            assert read.content == content
        assert await ws.stat("/workspace/a") == file

    async def test_w02_a_missing_file_is_not_found(self, ws: Workspace) -> None:
        with refused(ErrorCode.FILE_NOT_FOUND):
            await ws.read("/workspace/a")
        assert await ws.stat("/workspace/a") is None
        assert not await ws.exists("/workspace/a")

    async def test_w03_every_write_appends_a_version(self, ws: Workspace) -> None:
        for text in ("one", "one", "three"):
            await ws.write("/workspace/a", text)
        assert [entry.version for entry in await ws.history("/workspace/a")] == [3, 2, 1]
        assert await ws.read_text("/workspace/a", version=2) == "one"

    async def test_w04_a_stale_write_changes_nothing(self, ws: Workspace) -> None:
        await ws.write("/workspace/a", "one")
        with refused(ErrorCode.VERSION_CONFLICT):
            await ws.write("/workspace/a", "two", if_version=0)
        assert await ws.read_text("/workspace/a") == "one"
        assert [entry.sequence for entry in await ws.log()] == [1]

    async def test_w05_the_same_number_of_another_file_is_a_conflict(self, ws: Workspace) -> None:
        mine = await ws.write("/workspace/a", "mine")
        await ws.rename("/workspace/a", "/workspace/b")
        await ws.write("/workspace/a", "other")
        with refused(ErrorCode.VERSION_CONFLICT):
            await ws.write("/workspace/a", "again", if_version=mine)

    async def test_w06_crossing_the_inline_limit_both_ways_keeps_every_version(
        self, ws: Workspace
    ) -> None:
        texts = ["short", "long " * 50, "s", "longer " * 500]
        for text in texts:
            await ws.write("/workspace/a", text)
        for number, text in enumerate(texts, 1):
            assert await ws.read_text("/workspace/a", version=number) == text

    async def test_w07_lists_are_ordered_segment_by_segment(self, ws: Workspace) -> None:
        for path in ("/workspace/a/z", "/workspace/a-b", "/workspace/a.md", "/workspace/\ud7ff"):
            await ws.write(path, "")
        listed = [entry.path for entry in await ws.list("/workspace", recursive=True)]
        expected = ["/workspace/a/z", "/workspace/a-b", "/workspace/a.md", "/workspace/\ud7ff"]
        assert listed == expected

    async def test_w08_pages_hold_each_entry_once(self, ws: Workspace) -> None:
        paths = [f"/workspace/{number:02}" for number in range(25)]
        for path in paths:
            await ws.write(path, "")
        found, cursor = [], None
        while True:
            page = await ws.list("/workspace", limit=4, cursor=cursor)
            found += [entry.path for entry in page]
            if (cursor := page.cursor) is None:
                break
        assert found == paths

    async def test_w09_names_mean_nothing(self, ws: Workspace) -> None:
        for name in ("%", "_", "*", "head", "a b+c", "\u6587", "[x]"):
            await ws.write(f"/workspace/{name}", name)
        for name in ("%", "_", "*", "head", "a b+c", "\u6587", "[x]"):
            assert await ws.read_text(f"/workspace/{name}") == name
        await ws.delete("/workspace/%")
        assert await ws.exists("/workspace/_")

    async def test_w10_a_file_and_a_directory_cannot_share_a_path(self, ws: Workspace) -> None:
        await ws.write("/workspace/a/b", "")
        with refused(ErrorCode.PATH_TYPE_CONFLICT):
            await ws.write("/workspace/a", "")
        with refused(ErrorCode.PATH_TYPE_CONFLICT):
            await ws.write("/workspace/a/b/c", "")

    async def test_w11_edits_are_all_or_none(self, ws: Workspace) -> None:
        await ws.write("/workspace/a", "x y x")
        with refused(ErrorCode.EDIT_AMBIGUOUS):
            await ws.edit("/workspace/a", "x", "z")
        with refused(ErrorCode.EDIT_NOT_FOUND):
            await ws.edit("/workspace/a", "q", "z")
        await ws.edit("/workspace/a", "x", "z", occurrence=2)
        assert await ws.read_text("/workspace/a") == "x y z"

    async def test_w12_a_renamed_file_keeps_identity_and_history(self, ws: Workspace) -> None:
        first = await ws.write("/workspace/a", "one")
        moved = await ws.rename("/workspace/a", "/workspace/d/b")
        assert moved.kind == "file"
        assert (moved.id, moved.version) == (first.id, 1)
        assert [entry.path for entry in await ws.history("/workspace/d/b")] == ["/workspace/a"]

    async def test_w13_a_directory_moves_in_one_commit(self, ws: Workspace) -> None:
        for name in ("a", "b", "c/d"):
            await ws.write(f"/workspace/old/{name}", name)
        await ws.rename("/workspace/old", "/workspace/new")
        assert [change.type for change in (await ws.log(limit=1))[0].changes] == ["rename"] * 3
        assert not await ws.exists("/workspace/old")

    async def test_w14_a_deleted_file_comes_back(self, ws: Workspace) -> None:
        await ws.write("/workspace/a", "text")
        await ws.delete("/workspace/a")
        await ws.delete("/workspace/a")
        assert (await ws.undo("/workspace/a")).version == 3
        assert await ws.read_text("/workspace/a") == "text"

    async def test_w15_a_purged_file_leaves_nothing(self, ws: Workspace) -> None:
        await ws.write("/workspace/a", "x" * 100)
        await ws.delete("/workspace/a", purge=True)
        assert await ws.history("/workspace/a") == []
        assert (await ws.usage()).versions == 0
        assert (await ws.write("/workspace/a", "")).version == 1

    async def test_w16_undo_walks_back_and_redo_forward(self, ws: Workspace) -> None:
        for text in ("one", "two", "three"):
            await ws.write("/workspace/a", text)
        await ws.undo("/workspace/a")
        await ws.undo("/workspace/a")
        assert await ws.read_text("/workspace/a") == "one"
        with refused(ErrorCode.NOTHING_TO_UNDO):
            await ws.undo("/workspace/a")
        await ws.redo("/workspace/a")
        await ws.redo("/workspace/a")
        assert await ws.read_text("/workspace/a") == "three"
        with refused(ErrorCode.NOTHING_TO_REDO):
            await ws.redo("/workspace/a")

    async def test_w17_old_versions_are_collected_and_pinned_ones_stay(
        self, make: Callable[..., Workspace]
    ) -> None:
        ws = make(versioning=Versioning(max_versions=2))
        await ws.write("/workspace/a", "pinned", status="final")
        for number in range(4):
            await ws.write("/workspace/a", f"{number}")
        assert await ws.read_text("/workspace/a", version=1) == "pinned"
        with refused(ErrorCode.VERSION_EXPIRED):
            await ws.read("/workspace/a", version=2)

    async def test_w18_a_final_artifact_keeps_its_version(self, ws: Workspace) -> None:
        await ws.write("/workspace/a", "published", kind="report")
        await ws.finalize("/workspace/a")
        await ws.write("/workspace/a", "draft")
        (artifact,) = await ws.artifacts(status="final")
        assert (artifact.version, artifact.head_version) == (1, 2)
        assert await ws.resolve(artifact.uri) == b"published"

    async def test_w19_usage_counts_what_is_there(self, ws: Workspace) -> None:
        await ws.write("/workspace/a", "12345")
        await ws.write("/workspace/a", "123")
        await ws.write("/workspace/b", b"12")
        usage = await ws.usage()
        assert (usage.live_bytes, usage.live_files) == (5, 2)
        assert (usage.versions, usage.history_bytes) == (3, 5)

    async def test_w20_a_quota_refuses_growth_only(self, make: Callable[..., Workspace]) -> None:
        ws = make(limits=Limits(max_namespace_bytes=10, max_files=2))
        await ws.write("/workspace/a", "1234567890")
        with refused(ErrorCode.QUOTA_EXCEEDED):
            await ws.write("/workspace/b", "1")
        await ws.write("/workspace/a", "0987654321")
        await ws.delete("/workspace/a")
        await ws.write("/workspace/b", "1")

    async def test_w21_every_past_tree_can_be_seen(self, ws: Workspace) -> None:
        await ws.write("/workspace/a", "one")
        await ws.rename("/workspace/a", "/workspace/b")
        await ws.write("/workspace/a", "two")
        await ws.delete("/workspace/b")
        trees = [
            [entry.path for entry in await ws.at(number).list(recursive=True)]
            for number in range(5)
        ]
        a, b = "/workspace/a", "/workspace/b"
        assert trees == [[], [a], [b], [a, b], [a]]
        assert await ws.at(2).read_text(b) == "one"

    async def test_w22_a_commit_can_be_reversed(self, ws: Workspace) -> None:
        await ws.write("/workspace/d/a", "a")
        await ws.write("/workspace/d/b", "b")
        await ws.delete("/workspace/d", recursive=True)
        await ws.undo_commit((await ws.log(limit=1))[0])
        assert await ws.read_text("/workspace/d/a") == "a"
        assert await ws.read_text("/workspace/d/b") == "b"

    async def test_w23_a_repeated_call_with_one_key_is_done_once(self, ws: Workspace) -> None:
        first = await ws.append("/workspace/a", "x", idempotency_key="k")
        again = await ws.append("/workspace/a", "x", idempotency_key="k")
        assert again == first
        assert await ws.read_text("/workspace/a") == "x"
        with refused(ErrorCode.INVALID_ARGUMENT):
            await ws.append("/workspace/a", "y", idempotency_key="k")

    async def test_w24_namespaces_are_apart(self, ws: Workspace) -> None:
        names = ["%", "*", "_", "a:b", "n:1"]
        for name in names:
            await ws.write("/workspace/a", name, namespace=name)
        for name in names:
            assert await ws.read_text("/workspace/a", namespace=name) == name
        assert list(await ws.namespaces()) == names
        await ws.drop_namespace("%")
        assert list(await ws.namespaces()) == names[1:]

    async def test_w25_a_file_expires_at_once(
        self, make: Callable[..., Workspace], clock: FixedClock
    ) -> None:
        ws = make(retention=Retention(ttl_ms=100))
        await ws.write("/workspace/a", "text")
        clock.advance(100)
        assert not await ws.exists("/workspace/a")
        assert (await ws.gc(dry_run=False)).expired == 1
        assert (await ws.history("/workspace/a"))[0].operation == "delete"

    async def test_w26_parallel_writes_are_numbered_without_gaps(
        self, make: Callable[..., Workspace]
    ) -> None:
        handles = [make() for _ in range(10)]
        done = await asyncio.gather(*(ws.write("/workspace/a", "text") for ws in handles))
        assert sorted(file.version for file in done) == list(range(1, 11))

    async def test_w27_no_parallel_append_is_lost(self, make: Callable[..., Workspace]) -> None:
        one, two = make(), make()
        await asyncio.gather(
            *((one, two)[number % 2].append("/workspace/a", f"{number}\n") for number in range(20))
        )
        lines = (await one.read_text("/workspace/a")).split()
        assert sorted(lines, key=int) == [str(number) for number in range(20)]

    async def test_w28_two_writers_cannot_pass_the_quota_together(
        self, make: Callable[..., Workspace]
    ) -> None:
        limits = Limits(max_files=5)
        one, two = make(limits=limits), make(limits=limits)
        outcomes = await asyncio.gather(
            *((one, two)[n % 2].write(f"/workspace/{n}", "") for n in range(8)),
            return_exceptions=True,
        )
        refusals = [error for error in outcomes if isinstance(error, WorkspaceError)]
        assert [error.code for error in refusals] == [ErrorCode.QUOTA_EXCEEDED] * 3
        assert (await one.usage()).live_files == 5
