"""history, diff, max_versions."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from crux_workspace import ContentOptions, Limits, Versioning, Workspace
from crux_workspace.errors import ErrorCode
from crux_workspace.testing.workspace import refused

A, B = "/workspace/a.md", "/workspace/b.md"


async def test_each_content_change_is_an_entry_newest_first(ws: Workspace, clock: Any) -> None:
    await ws.write(A, "one")
    clock.advance(5)
    await ws.append(A, " two")
    await ws.edit(A, "two", "2")
    await ws.undo(A)
    await ws.redo(A)
    await ws.write(B, "over")
    await ws.copy(B, A, overwrite=True)
    await ws.delete(A)
    entries = await ws.history(A)
    assert [entry.version for entry in entries] == [7, 6, 5, 4, 3, 2, 1]
    assert [entry.operation for entry in entries] == [
        "delete",
        "copy",
        "redo",
        "undo",
        "edit",
        "append",
        "write",
    ]
    second = entries[-2]
    assert (second.path, second.content_kind, second.mime_type) == (A, "text", "text/markdown")
    assert (second.size, second.storage, second.preview) == (7, "inline", "one two")
    assert second.created_at == clock.now
    assert second.sha256 == hashlib.sha256(b"one two").hexdigest()
    assert (second.restored_from, second.sequence) == (None, 2)
    assert second.commit == (await ws.log())[-2].commit
    assert entries[3].restored_from == 2


async def test_finalize_set_and_rename_add_no_version(ws: Workspace) -> None:
    await ws.write(A, "one")
    await ws.set(A, metadata={})
    await ws.finalize(A)
    await ws.withdraw(A)
    await ws.rename(A, B)
    (entry,) = await ws.history(B)
    assert (entry.version, entry.path, entry.sequence) == (1, A, 1)


async def test_history_is_paged_by_version(ws: Workspace) -> None:
    for number in range(1, 8):
        await ws.write(A, f"{number}")
    assert [entry.version for entry in await ws.history(A, limit=3)] == [7, 6, 5]
    assert [entry.version for entry in await ws.history(A, limit=3, before=5)] == [4, 3, 2]
    assert [entry.version for entry in await ws.history(A, before=2)] == [1]
    assert await ws.history(A, before=1) == []


async def test_history_of_a_path_that_never_held_a_file_is_empty(ws: Workspace) -> None:
    assert await ws.history(A) == []


async def test_history_survives_deletion_and_follows_renames(ws: Workspace) -> None:
    await ws.write(A, "one")
    await ws.rename(A, B)
    await ws.write(B, "two")
    await ws.delete(B)
    assert [(e.version, e.path) for e in await ws.history(B)] == [(3, B), (2, B), (1, A)]


async def test_max_versions_collects_the_oldest_head_and_tombstones_included(make_ws: Any) -> None:
    ws = make_ws(
        versioning=Versioning(max_versions=2), content=ContentOptions(inline_text_below_bytes=20)
    )
    for number in range(5):
        await ws.write(A, f"{number}" * 30)
    assert [entry.version for entry in await ws.history(A)] == [5, 4]
    for version in (1, 2, 3):
        with refused(ErrorCode.VERSION_EXPIRED):
            await ws.read(A, version=version)
    usage = await ws.usage()
    assert (usage.versions, usage.history_bytes) == (2, 30)
    await ws.delete(A)
    assert [entry.version for entry in await ws.history(A)] == [6, 5]


async def test_a_pinned_version_is_never_collected_until_it_is_released(make_ws: Any) -> None:
    ws = make_ws(versioning=Versioning(max_versions=1))
    await ws.write(A, "published", status="final")
    for number in range(3):
        await ws.write(A, f"{number}")
    assert await ws.read_text(A, version=1) == "published"
    assert [entry.version for entry in await ws.history(A)] == [4, 1]
    await ws.withdraw(A)
    with refused(ErrorCode.VERSION_EXPIRED):
        await ws.read(A, version=1)


async def test_max_history_bytes_collects_and_never_refuses(make_ws: Any) -> None:
    ws = make_ws(limits=Limits(max_history_bytes=10))
    for text in ("aaaa", "bbbb", "cccc", "dddd"):
        await ws.write(A, text)
    assert [entry.version for entry in await ws.history(A)] == [4, 3, 2]
    await ws.write(A, "e" * 1000)
    await ws.write(A, "f")
    assert (await ws.usage()).history_bytes == 0


@pytest.mark.parametrize("number", [0, -1])
def test_max_versions_below_one_is_refused_at_construction(number: int) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        Versioning(max_versions=number)


async def test_diff_defaults_to_the_latest_change(ws: Workspace) -> None:
    await ws.write(A, "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    await ws.write(A, "1\n2\n3\n4\nfive\n6\n7\n8\n9\n")
    diff = await ws.diff(A)
    assert (diff.path, diff.from_version, diff.to_version) == (A, 1, 2)
    assert (diff.added, diff.removed) == (1, 1)
    assert diff.unified == (
        f"--- {A}@v1\n+++ {A}@v2\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
    )
    (hunk,) = diff.hunks
    assert (hunk.from_start, hunk.from_lines, hunk.to_start, hunk.to_lines) == (2, 7, 2, 7)
    kinds = [line.kind for line in hunk.lines]
    assert kinds == ["context"] * 3 + ["remove", "add"] + ["context"] * 3
    assert [line.text for line in hunk.lines][3:5] == ["5", "five"]


async def test_diff_of_any_two_versions(ws: Workspace) -> None:
    for text in ("a\n", "b\n", "a\n"):
        await ws.write(A, text)
    assert (await ws.diff(A, from_version=1, to_version=3)).unified == ""
    backwards = await ws.diff(A, from_version=2, to_version=1)
    assert (backwards.added, backwards.removed) == (1, 1)
    assert "-b\n+a\n" in backwards.unified
    short = await ws.diff(A, from_version=1, to_version=2, context_lines=0)
    assert short.unified.endswith("@@\n-a\n+b\n")


async def test_a_changed_final_newline_shows(ws: Workspace) -> None:
    await ws.write(A, "a\n")
    await ws.write(A, "a")
    diff = await ws.diff(A)
    assert "-a\n+a\n\\ No newline at end of file\n" in diff.unified


async def test_changed_line_endings_show(ws: Workspace) -> None:
    await ws.write(A, "a\nb\n")
    await ws.write(A, "a\r\nb\n")
    diff = await ws.diff(A)
    assert (diff.added, diff.removed) == (1, 1)
    assert "-a\n+a\r\n" in diff.unified


async def test_diff_sees_json_in_its_pretty_form(ws: Workspace) -> None:
    await ws.write(A, {"a": 1, "b": 2})
    await ws.write(A, {"a": 1, "b": 3})
    assert '-  "b": 2\n+  "b": 3\n' in (await ws.diff(A)).unified


async def test_diff_of_binary_is_refused(ws: Workspace) -> None:
    await ws.write(A, "text")
    await ws.write(A, b"\x00")
    with refused(ErrorCode.BINARY_CONTENT):
        await ws.diff(A)


async def test_the_default_diff_of_a_one_version_file_is_not_found(ws: Workspace) -> None:
    await ws.write(A, "text")
    with refused(ErrorCode.VERSION_NOT_FOUND):
        await ws.diff(A)
    with refused(ErrorCode.VERSION_NOT_FOUND):
        await ws.diff(A, from_version=1, to_version=2)
    with refused(ErrorCode.FILE_NOT_FOUND):
        await ws.diff(B)
