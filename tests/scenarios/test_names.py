"""Paths, namespaces and ids: what is legal, what is folded, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from crux_workspace import Mount, Workspace, workspace
from crux_workspace.errors import ErrorCode, InvalidPathError
from crux_workspace.testing.strategies import any_paths
from crux_workspace.testing.workspace import refused

ODD = (
    "*",
    "?",
    "[a-z]",
    "{a,b}",
    "a b",
    " ",
    "+",
    "100%",
    "文件",
    "head",
    "gone",
    "~",
    "#",
    "a:b",
    "…",
)


@pytest.mark.parametrize("name", ODD)
async def test_odd_names_are_legal_and_literal(ws: Workspace, name: str) -> None:
    path = f"/workspace/{name}"
    await ws.write("/workspace/a", "other")
    await ws.write(path, name)
    assert await ws.read_text(path) == name
    assert [entry.path for entry in await ws.list(path)] == [path]
    await ws.delete(path)
    assert await ws.read_text("/workspace/a") == "other"


async def test_both_normal_forms_are_one_file_stored_nfc(ws: Workspace) -> None:
    file = await ws.write("/workspace/cafe\u0301", "text")
    assert file.path == "/workspace/caf\u00e9"
    assert await ws.read_text("/workspace/caf\u00e9") == "text"
    assert (await ws.write("/workspace/caf\u00e9", "text")).version == 2
    assert len(await ws.history("/workspace/cafe\u0301")) == 2


@pytest.mark.parametrize(
    "path", ["//workspace//a", "/./workspace/./a", "/workspace/a/.", "/workspace//./a"]
)
async def test_double_slashes_and_dots_fold(ws: Workspace, path: str) -> None:
    if path.endswith("/."):
        await ws.write("/workspace/a", "")
        assert await ws.exists(path)
    else:
        assert (await ws.write(path, "")).path == "/workspace/a"


BAD = (
    "",
    "relative",
    "workspace/a",
    "/workspace/../etc",
    "/workspace/..",
    "/workspace/%2e%2e/a",
    "/workspace/%2E./a",
    "/workspace/a%2fb",
    "/workspace/a%5Cb",
    "/workspace/a\\b",
    "/workspace/a\x00b",
    "/workspace/a\nb",
    "/workspace/a\x7f",
    "/workspace/\ud800",
    "/workspace/" + "x" * 256,
    "/workspace/" + "ü" * 128,
    "/workspace" + "/x" * 600,
)


@pytest.mark.parametrize("path", BAD)
async def test_bad_paths_are_refused_by_every_verb(ws: Workspace, path: str) -> None:
    good = "/workspace/good"
    calls: list[Any] = [
        lambda: ws.list(path),
        lambda: ws.read(path),
        lambda: ws.read_text(path),
        lambda: ws.read_bytes(path),
        lambda: ws.read_json(path),
        lambda: ws.read_many([path]),
        lambda: ws.write(path, ""),
        lambda: ws.edit(path, "a", "b"),
        lambda: ws.append(path, "a"),
        lambda: ws.update(path, lambda value: value),
        lambda: ws.set(path, metadata={}),
        lambda: ws.rename(path, good),
        lambda: ws.move(good, path),
        lambda: ws.copy(path, good),
        lambda: ws.delete(path),
        lambda: ws.exists(path),
        lambda: ws.is_dir(path),
        lambda: ws.stat(path),
        lambda: ws.grep("a", path=path),
        lambda: ws.history(path),
        lambda: ws.diff(path),
        lambda: ws.undo(path),
        lambda: ws.redo(path),
        lambda: ws.finalize(path),
        lambda: ws.withdraw(path),
        lambda: ws.artifacts(path=path),
        lambda: ws.log(path=path),
    ]
    for call in calls:
        with refused(ErrorCode.INVALID_PATH, InvalidPathError):
            await call()
    assert await ws.log() == []


async def test_the_longest_names_are_legal(ws: Workspace) -> None:
    segment = "/workspace/" + "x" * 255
    long = "/workspace" + ("/" + "y" * 252) * 4
    assert len(long) + 2 == 1024
    for path in (segment, long + "/z"):
        await ws.write(path, "text")
        await ws.write(path, b"\x00" * 100)
        assert await ws.read_text(path, version=1) == "text"
        await ws.delete(path)
        await ws.undo(path)
        assert await ws.read_bytes(path) == b"\x00" * 100


async def test_paths_outside_the_mounts_are_refused(ws: Workspace) -> None:
    for call in (ws.write("/etc/passwd", ""), ws.read("/etc/passwd"), ws.append("/x", "a")):
        with refused(ErrorCode.OUTSIDE_MOUNTS):
            await call
    with pytest.raises(PermissionError):
        await ws.write("/workspace-not", "")


@pytest.mark.parametrize("path", ["/etc", "/etc/", "/etc/passwd", "/workspace-not"])
async def test_what_is_never_told_of_cannot_be_asked_for(ws: Workspace, path: str) -> None:
    """A search, a log or a watch outside of all mounts finds nothing for ever: that is a mistake, and said at once."""
    await ws.write("/workspace/a", "text", status="draft")
    calls: list[Any] = [
        lambda: ws.list(path),
        lambda: ws.grep("text", path=path),
        lambda: ws.artifacts(path=path),
        lambda: ws.artifacts(path=f"{path.rstrip('/')}/*"),
        lambda: ws.at(1).artifacts(path=path),
        lambda: ws.log(path=path),
    ]
    for call in calls:
        with refused(ErrorCode.OUTSIDE_MOUNTS):
            await call()
    with refused(ErrorCode.RUNTIME_REQUIRED):
        ws.watch("/workspace")
    with refused(ErrorCode.OUTSIDE_MOUNTS):
        ws.watch(path)


async def test_above_and_on_a_mount_there_is_something_to_tell(ws: Workspace) -> None:
    await ws.write("/workspace/a", "text", status="draft")
    for path in (None, "/", "/workspace", "/workspace/", "/workspace/a"):
        assert [artifact.path for artifact in await ws.artifacts(path=path)] == ["/workspace/a"]
        assert [entry.sequence for entry in await ws.log(path=path)] == [1]
    assert await ws.artifacts(path="/workspace/gone") == []
    assert await ws.log(path="/workspace/gone") == []


async def test_a_read_only_mount_refuses_every_change(make_ws: Any) -> None:
    writer = make_ws()
    await writer.write("/workspace/a", "text")
    ws = make_ws(mounts=[Mount("/workspace", access="read"), Mount("/outputs")])
    assert await ws.read_text("/workspace/a") == "text"
    await ws.copy("/workspace/a", "/outputs/a")
    a = "/workspace/a"
    calls: list[Any] = [
        lambda: ws.write(a, ""),
        lambda: ws.edit(a, "t", "x"),
        lambda: ws.append(a, "x"),
        lambda: ws.set(a, metadata={}),
        lambda: ws.rename(a, "/outputs/b"),
        lambda: ws.rename("/outputs/a", "/workspace/b"),
        lambda: ws.copy("/outputs/a", "/workspace/b"),
        lambda: ws.delete(a),
        lambda: ws.undo(a),
        lambda: ws.redo(a),
        lambda: ws.finalize(a),
        lambda: ws.withdraw(a),
    ]
    for call in calls:
        with refused(ErrorCode.READ_ONLY_MOUNT):
            await call()


async def test_nested_mounts_the_deepest_wins(make_ws: Any) -> None:
    ws = make_ws(mounts=[Mount("/w"), Mount("/w/locked", access="read"), Mount("/w/locked/open")])
    assert (await ws.write("/w/a", "")).mount == "/w"
    assert (await ws.write("/w/locked/open/a", "")).mount == "/w/locked/open"
    with refused(ErrorCode.READ_ONLY_MOUNT):
        await ws.write("/w/locked/a", "")
    children = [(entry.path, entry.kind) for entry in await ws.list("/w")]
    assert children == [("/w/a", "file"), ("/w/locked", "directory")]


@pytest.mark.parametrize(
    "mounts",
    [
        [Mount("/")],
        [Mount("/a"), Mount("/a")],
        [Mount("/a"), Mount("/a/")],
        [Mount("relative")],
        [Mount("/a/../b")],
        [Mount("")],
        [],
    ],
)
def test_bad_mounts_are_refused_at_construction(mounts: list[Mount]) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        workspace(id="w", mounts=mounts)


NAMESPACES = ("%", "_", "*", "a:b", "a", "b", "a/b", "..", "文", "a b", "\u0001", "n" * 512)


async def test_namespaces_are_literal(ws: Workspace) -> None:
    legal = [name for name in NAMESPACES if name != "\u0001"]
    for name in legal:
        await ws.write("/workspace/a", name, namespace=name)
        await ws.write("/workspace/b", name.encode() * 3, namespace=name)
    for name in legal:
        assert await ws.read_text("/workspace/a", namespace=name) == name
        assert await ws.read_bytes("/workspace/b", namespace=name) == name.encode() * 3
    page = await ws.namespaces()
    assert list(page) == sorted(legal)
    assert list(await ws.namespaces("a")) == ["a", "a b", "a/b", "a:b"]
    await ws.drop_namespace("%")
    await ws.drop_namespace("a")
    assert list(await ws.namespaces()) == sorted(set(legal) - {"%", "a"})
    assert await ws.read_text("/workspace/a", namespace="a:b") == "a:b"


async def test_ids_and_namespaces_that_would_collide_when_joined_do_not(make_ws: Any) -> None:
    pairs = [("a", "b:c"), ("a:b", "c"), ("a/b", "c"), ("a", "b/c"), ("a%3Ab", "c"), ("ab", "c")]
    made = [make_ws(id=first, namespace=second) for first, second in pairs]
    for number, ws in enumerate(made):
        await ws.write("/workspace/a", f"{number}")
        await ws.write("/workspace/b", bytes([number]) * 10)
    for number, ws in enumerate(made):
        assert await ws.read_text("/workspace/a") == f"{number}"
        assert await ws.read_bytes("/workspace/b") == bytes([number]) * 10
    assert list(await made[0].namespaces()) == ["b/c", "b:c"]


async def test_namespaces_are_paged(ws: Workspace) -> None:
    names = [f"n{number}" for number in range(7)]
    for name in names:
        await ws.write("/workspace/a", "", namespace=name)
    found, cursor = [], None
    while True:
        page = await ws.namespaces("n", limit=3, cursor=cursor)
        found += list(page)
        if (cursor := page.cursor) is None:
            break
    assert found == names
    with refused(ErrorCode.INVALID_CURSOR):
        await ws.namespaces(cursor="rubbish")


@pytest.mark.parametrize("name", ["", " ", "\t", "n" * 513, "ü" * 257])
async def test_blank_and_oversized_namespaces_are_refused(ws: Workspace, name: str) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.write("/workspace/a", "", namespace=name)
    with refused(ErrorCode.INVALID_ARGUMENT):
        ws.for_namespace(name)
    with refused(ErrorCode.INVALID_ARGUMENT):
        workspace(id=name)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=any_paths())
async def test_any_legal_name_can_be_written_found_and_deleted(ws: Workspace, path: str) -> None:
    file = await ws.write(path, path)
    assert await ws.read_text(path) == path
    assert file.path in [entry.path for entry in await ws.list(recursive=True)]
    await ws.delete(path, purge=True)
    assert not await ws.exists(path)


async def test_a_directorys_spelling_never_means_a_file_of_its_name(ws: Workspace) -> None:
    file, directory = "/workspace/d", "/workspace/d/"
    await ws.write(file, "hello", status="final")
    assert not await ws.exists(directory)
    assert not await ws.is_dir(directory)
    for tree in (ws, ws.at(1)):
        assert await tree.artifacts(path=directory) == []
        assert [found.path for found in await tree.artifacts(path=file)] == [file]
    async with ws.transaction() as tx:
        assert await tx.artifacts(path=directory) == []
    assert await ws.log(path=directory) == []
    assert len(await ws.log(path=file)) == 1
    await ws.rename(file, "/workspace/e")
    await ws.rename("/workspace/e", "/workspace/d/inside")
    assert [found.path for found in await ws.artifacts(path=directory)] == ["/workspace/d/inside"]
    assert [entry.verb for entry in await ws.log(path=directory)] == ["rename"]
    assert [entry.verb for entry in await ws.log(path=file)] == ["rename", "rename", "write"]
