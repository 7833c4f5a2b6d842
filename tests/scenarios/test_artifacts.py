"""finalize, withdraw, artifacts, resolve."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace import ContentOptions, Mount, Workspace
from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.testing.workspace import refused

A, B, C = "/workspace/a", "/workspace/b", "/workspace/c"


async def test_a_file_is_an_artifact_when_it_has_a_status_or_a_kind(ws: Workspace) -> None:
    await ws.write(A, "", status="draft")
    await ws.write(B, "", kind="report")
    await ws.write(C, "")
    artifacts = await ws.artifacts()
    assert [(a.path, a.status, a.kind) for a in artifacts] == [
        (A, "draft", None),
        (B, "draft", "report"),
    ]


async def test_an_artifact_tells_all_about_itself(ws: Workspace, clock: Any) -> None:
    file = await ws.write(A, "text", kind="report", metadata={"m": 1})
    clock.advance(3)
    artifact = await ws.finalize(A)
    assert (artifact.path, artifact.kind, artifact.status) == (A, "report", "final")
    assert (artifact.version, artifact.head_version) == (1, 1)
    assert (artifact.mime_type, artifact.size, artifact.preview) == ("text/plain", 4, "text")
    assert (artifact.sha256, artifact.metadata) == (file.sha256, {"m": 1})
    assert (artifact.created_at, artifact.produced_by) == (file.created_at, None)
    assert artifact.uri == "workspace-inline://w/n/workspace/a@v1"
    assert await ws.artifacts() == [artifact]


async def test_finalize_pins_and_later_edits_make_drafts(ws: Workspace) -> None:
    await ws.write(A, "one")
    await ws.finalize(A, kind="report")
    await ws.write(A, "two")
    await ws.append(A, "!")
    file = await ws.stat(A)
    assert file is not None
    assert (file.status, file.pinned_version, file.version) == ("final", 1, 3)
    (artifact,) = await ws.artifacts()
    assert (artifact.version, artifact.head_version, artifact.preview) == (1, 3, "one")
    assert await ws.resolve(artifact.uri) == b"one"
    again = await ws.finalize(A)
    assert (again.version, again.kind) == (3, "report")


async def test_finalize_of_a_given_version(ws: Workspace) -> None:
    for text in ("one", "two", "three"):
        await ws.write(A, text)
    artifact = await ws.finalize(A, version=2)
    assert (artifact.version, artifact.head_version, artifact.size) == (2, 3, 3)
    assert await ws.resolve(artifact.uri) == b"two"
    with refused(ErrorCode.VERSION_NOT_FOUND):
        await ws.finalize(A, version=9)


async def test_write_with_final_pins_what_it_writes(ws: Workspace) -> None:
    await ws.write(A, "one", status="final")
    file = await ws.write(A, "two", status="final")
    assert (file.status, file.pinned_version) == ("final", 2)


async def test_only_withdraw_or_delete_unpublishes(ws: Workspace) -> None:
    await ws.write(A, "one", status="final")
    await ws.write(A, "two")
    await ws.undo(A)
    await ws.rename(A, B)
    assert [a.status for a in await ws.artifacts()] == ["final"]
    file = await ws.withdraw(B)
    assert (file.status, file.pinned_version) == ("draft", None)
    (artifact,) = await ws.artifacts()
    assert (artifact.status, artifact.version) == ("draft", 3)


async def test_withdraw_is_a_no_op_on_an_unpinned_file(ws: Workspace) -> None:
    file = await ws.write(A, "one")
    assert await ws.withdraw(A) == file
    assert len(await ws.log()) == 1


async def test_a_deleted_artifact_comes_back_as_a_draft(ws: Workspace) -> None:
    await ws.write(A, "one", kind="report", status="final")
    await ws.delete(A)
    assert await ws.artifacts() == []
    file = await ws.undo(A)
    assert (file.status, file.pinned_version) == ("draft", None)
    assert [a.status for a in await ws.artifacts()] == ["draft"]


async def test_a_deleted_plain_file_comes_back_plain(ws: Workspace) -> None:
    await ws.write(A, "one")
    await ws.delete(A)
    assert (await ws.undo(A)).status is None


async def test_set_final_is_finalize_and_draft_on_a_pinned_file_is_refused(ws: Workspace) -> None:
    await ws.write(A, "one")
    file = await ws.set(A, status="final")
    assert (file.status, file.pinned_version) == ("final", 1)
    calls: list[Any] = [
        lambda: ws.set(A, status="draft"),
        lambda: ws.write(A, "x", status="draft"),
    ]
    for call in calls:
        with refused(ErrorCode.INVALID_ARGUMENT) as caught:
            await call()
        assert "withdraw" in str(caught.value.hint)
    assert len(await ws.log()) == 2


@pytest.mark.parametrize("verb", ["finalize", "withdraw"])
async def test_events_of_artifacts_are_updates_of_attributes(ws: Workspace, verb: str) -> None:
    await ws.write(A, "one", status="final" if verb == "withdraw" else None)
    await getattr(ws, verb)(A)
    entry = (await ws.log(limit=1))[0]
    (change,) = entry.changes
    assert (entry.verb, change.type, change.attributes) == (verb, "update", True)
    assert (change.version, change.previous_version) == (1, 1)


async def test_filters(ws: Workspace) -> None:
    await ws.write("/outputs/d/1", "", kind="report", status="final")
    await ws.write("/outputs/d/2", "", kind="chart")
    await ws.write("/outputs/d-e", "", kind="report")
    await ws.write("/workspace/3", "", kind="report")

    async def paths(**arguments: Any) -> list[str]:
        return [artifact.path for artifact in await ws.artifacts(**arguments)]

    everything = ["/outputs/d/1", "/outputs/d/2", "/outputs/d-e", "/workspace/3"]
    assert await paths() == everything
    assert await paths(status="final") == ["/outputs/d/1"]
    assert await paths(status="draft") == everything[1:]
    assert await paths(kind="report") == ["/outputs/d/1", "/outputs/d-e", "/workspace/3"]
    assert await paths(path="/outputs/d") == ["/outputs/d/1", "/outputs/d/2"]
    assert await paths(limit=2) == everything[:2]
    assert await paths(limit=2, after="/outputs/d/2") == everything[2:]


@pytest.mark.parametrize("form", ["live", "past", "staged"])
async def test_a_scope_is_a_file_a_directory_or_a_glob(ws: Workspace, form: str) -> None:
    paths = ["/workspace/a", "/workspace/a.b", "/workspace/d/x", "/workspace/d/y", "/workspace/dd"]
    for path in paths:
        await ws.write(path, "", kind="k")

    async def found(scope: str | None, after: str | None = None) -> list[str]:
        if form == "staged":
            async with ws.transaction() as tx:
                return [a.path for a in await tx.artifacts(path=scope, after=after)]
        of = ws if form == "live" else ws.at(5)
        return [a.path for a in await of.artifacts(path=scope, after=after)]

    assert await found(None) == await found("/workspace") == paths
    assert await found("/workspace/a") == ["/workspace/a"]
    assert await found("/workspace/d") == await found("/workspace/d/*") == paths[2:4]
    assert await found("/workspace/?") == ["/workspace/a"]
    assert await found("/workspace", after="/workspace/d/x") == paths[3:]
    assert await found("/workspace/d", after="/workspace/d/x") == paths[3:4]
    assert await found("/workspace/a", after="/workspace/a") == []
    assert await found("/workspace/none") == await found("/outputs") == []


async def test_inline_uris_have_each_part_percent_encoded(make_ws: Any) -> None:
    ws = make_ws(id="my id/1", namespace="thread:1@v2")
    await ws.write("/workspace/a b@v1/ü?#.md", "text", status="final")
    (artifact,) = await ws.artifacts()
    assert artifact.uri == (
        "workspace-inline://my%20id%2F1/thread%3A1%40v2/workspace/a%20b%40v1/%C3%BC%3F%23.md@v1"
    )
    assert await ws.resolve(artifact.uri) == b"text"


async def test_asset_backed_artifacts_have_the_uri_of_the_asset(make_ws: Any) -> None:
    ws = make_ws(content=ContentOptions(inline_text_below_bytes=20))
    file = await ws.write(A, b"\x00" * 100, status="final")
    await ws.write(B, "x" * 100, status="final")
    for artifact in await ws.artifacts():
        assert not artifact.uri.startswith("workspace-inline:")
    first, second = await ws.artifacts()
    assert first.uri == file.uri
    assert await ws.resolve(first.uri) == b"\x00" * 100
    assert await ws.resolve(second.uri) == b"x" * 100


async def test_resolve_opens_only_its_own(make_ws: Any) -> None:
    mine = make_ws(content=ContentOptions(inline_text_below_bytes=20))
    other = mine.for_namespace("other")
    await other.write(A, "text", status="final")
    await other.write(B, b"\x00" * 100, status="final")
    for artifact in await other.artifacts():
        with refused(ErrorCode.INVALID_ARGUMENT):
            await mine.resolve(artifact.uri)
    for uri in ("", "rubbish", "https://example.org/", "file:///etc/passwd"):
        with refused(ErrorCode.INVALID_ARGUMENT):
            await mine.resolve(uri)


async def test_resolve_reaches_no_further_than_the_mounts(make_ws: Any) -> None:
    await make_ws().write(A, "secret")
    uri = (await make_ws().finalize(A)).uri
    narrow = make_ws(mounts=[Mount("/outputs")])
    with refused(ErrorCode.OUTSIDE_MOUNTS):
        await narrow.resolve(uri)


async def test_resolve_of_an_inline_version_that_is_gone(ws: Workspace) -> None:
    await ws.write(A, "text", status="final")
    (artifact,) = await ws.artifacts()
    await ws.delete(A, purge=True)
    with pytest.raises(WorkspaceError) as caught:
        await ws.resolve(artifact.uri)
    assert caught.value.code in {ErrorCode.FILE_NOT_FOUND, ErrorCode.VERSION_EXPIRED}


async def test_artifacts_of_the_past(ws: Workspace) -> None:
    await ws.write(A, "one", status="final")
    await ws.write(A, "two")
    await ws.finalize(A)
    await ws.withdraw(A)
    shown = [
        [(a.status, a.version) for a in await ws.at(number).artifacts()] for number in range(5)
    ]
    assert shown == [[], [("final", 1)], [("final", 1)], [("final", 2)], [("draft", 2)]]
