"""Checks of `expect_quiet`, which is judged against the log."""

from __future__ import annotations

from crux_workspace.model.changes import PURGED_PATH, Change
from crux_workspace.storage.layout import log_key
from crux_workspace.storage.records import RecordStore
from crux_workspace.testing.record_checks.bench import (
    RECORD_CHECKS,
    FreshRecords,
    changes,
    put,
    refused,
    requires_room,
    seed,
)

__all__: list[str] = []


def _update(path: str) -> Change:
    return Change("update", path, file_id="a" * 32, version=2, previous_version=1)


@RECORD_CHECKS.add()
async def check_quiet_path(store: RecordStore, fresh: FreshRecords) -> None:
    """R-060: expect_quiet refuses when a commit after quiet_since touched the path, and only then."""
    writer = await seed(store, fresh, changes=[_update("/a")])
    await writer.commit(changes=[_update("/b")])
    async with refused(writer, "quiet", subject="/b"):
        await writer.commit(put("x"), expect_quiet=[("/a", False), ("/b", False)], quiet_since=1)
    await writer.commit(put("x"), expect_quiet=[("/a", False)], quiet_since=1)
    await writer.commit(put("x"), expect_quiet=[("/b", False)], quiet_since=2)
    async with refused(writer, "quiet", subject="/a"):
        await writer.commit(put("x"), expect_quiet=[("/a", False)], quiet_since=0)
    await writer.commit(put("x"), expect_quiet=[("/a", True), ("/", False)], quiet_since=4)
    async with refused(writer, "quiet", subject="/b"):
        await writer.commit(put("x"), expect_quiet=[("/b", True)], quiet_since=1)


@RECORD_CHECKS.add()
async def check_quiet_subtree(store: RecordStore, fresh: FreshRecords) -> None:
    """R-061: with subtree everything below the path counts; without, only the path; siblings never."""
    writer = await seed(store, fresh)
    await writer.commit(changes=[_update("/d/e/f.md")])
    for path in ("/d", "/d/e", "/d/e/f.md", "/"):
        async with refused(writer, "quiet", subject=path):
            await writer.commit(put("x"), expect_quiet=[(path, True)], quiet_since=1)
    for path in ("/d", "/d/e", "/"):
        await writer.commit(put("x"), expect_quiet=[(path, False)], quiet_since=1)
    for path in ("/d/e/f", "/d/e/f.md/g", "/d/e/f.mdx", "/D", "/d/", "/e", "/d/%", "/_"):
        await writer.commit(put("x"), expect_quiet=[(path, True)], quiet_since=1)


@RECORD_CHECKS.add()
async def check_quiet_rename_source(store: RecordStore, fresh: FreshRecords) -> None:
    """R-062: a rename touches where the file came from as well as where it went."""
    writer = await seed(store, fresh)
    rename = Change("rename", "/to/b", "/from/a", "a" * 32, None, 1, 1)
    await writer.commit(changes=[rename])
    for path, subtree in (("/from/a", False), ("/from", True), ("/to/b", False), ("/to", True)):
        async with refused(writer, "quiet", subject=path):
            await writer.commit(put("x"), expect_quiet=[(path, subtree)], quiet_since=1)


@RECORD_CHECKS.add()
async def check_quiet_erased_name(store: RecordStore, fresh: FreshRecords) -> None:
    """R-067: a change whose name was erased may have been of any path, and touches them all."""
    writer = await seed(store, fresh)
    await writer.commit(changes=[Change("rename", PURGED_PATH, PURGED_PATH, "a" * 32, None, 1, 1)])
    for path, subtree in (("/a", False), ("/d", True), ("/", False), ("/", True)):
        async with refused(writer, "quiet", subject=path):
            await writer.commit(put("x"), expect_quiet=[(path, subtree)], quiet_since=1)
    await writer.commit(put("x"), expect_quiet=[("/a", True)], quiet_since=2)


@RECORD_CHECKS.add()
async def check_quiet_trimmed_log(store: RecordStore, fresh: FreshRecords) -> None:
    """R-063: when the log no longer reaches back to quiet_since, the batch is refused."""
    writer = await seed(store, fresh)
    for _ in range(4):
        await writer.commit(changes=[_update("/a")])
    await writer.commit(deletes=[log_key(1), log_key(2), log_key(3)])
    for since in (0, 1, 2):
        async with refused(writer, "quiet"):
            await writer.commit(put("x"), expect_quiet=[("/z", True)], quiet_since=since)
    await writer.commit(put("x"), expect_quiet=[("/z", True)], quiet_since=3)
    await writer.commit(put("x"), quiet_since=0)


@RECORD_CHECKS.add()
async def check_quiet_more_than_16(store: RecordStore, fresh: FreshRecords) -> None:
    """R-064: the changes behind the 16th of a commit count too."""
    writer = await seed(store, fresh)
    await writer.commit(changes=changes(40))
    for n in (0, 15, 16, 17, 39):
        path = f"/d/{n:05d}.txt"
        async with refused(writer, "quiet", subject=path):
            await writer.commit(put("x"), expect_quiet=[(path, False)], quiet_since=1)
    await writer.commit(put("x"), expect_quiet=[("/d/00040.txt", True)], quiet_since=1)


@RECORD_CHECKS.add()
async def check_quiet_more_than_1000(store: RecordStore, fresh: FreshRecords) -> None:
    """R-065: the changes behind the 1,000th of a commit count too."""
    requires_room(store, paths=2_100)
    writer = await seed(store, fresh)
    await writer.commit(changes=changes(2_100))
    for n in (0, 999, 1_000, 1_999, 2_000, 2_099):
        path = f"/d/{n:05d}.txt"
        async with refused(writer, "quiet", subject=path):
            await writer.commit(put("x"), expect_quiet=[(path, False)], quiet_since=1)
    await writer.commit(put("x"), expect_quiet=[("/d/02100.txt", True)], quiet_since=1)


@RECORD_CHECKS.add()
async def check_quiet_over_many_commits(store: RecordStore, fresh: FreshRecords) -> None:
    """R-066: every commit between quiet_since and the last one is judged."""
    writer = await seed(store, fresh)
    for n in range(150):
        await writer.commit(changes=[_update(f"/f{n:03d}")])
    for n, since in ((0, 1), (75, 1), (149, 1), (75, 76), (149, 150)):
        path = f"/f{n:03d}"
        async with refused(writer, "quiet", subject=path):
            await writer.commit(put("x"), expect_quiet=[(path, False)], quiet_since=since)
    await writer.commit(put("x"), expect_quiet=[("/f075", False)], quiet_since=77)
