"""Paths that try to leave the workspace without a word of the gate."""

from __future__ import annotations

import os
import socket
import unicodedata
from pathlib import Path

import pytest

from crux_workspace import workspace
from crux_workspace.agent import (
    PermissionGate,
    PermissionPolicy,
    WorkspaceFs,
    local_filesystem,
    workspace_filesystem,
)
from crux_workspace.errors import (
    ApprovalRequiredError,
    ErrorCode,
    InvalidPathError,
    PathNotFoundError,
    PermissionDeniedError,
    WorkspaceError,
)

SECRET = "the secret outside"  # noqa: S105 - what must not be read


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("workspace/sub", "workspace-evil", "outside", "workspacex"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "secret.txt").write_text(SECRET)
    (tmp_path / "workspace" / "a.txt").write_text("inside")
    return tmp_path


@pytest.fixture
def fs(home: Path) -> WorkspaceFs:
    return WorkspaceFs(local_filesystem(home / "workspace"))


def links(home: Path) -> list[str]:
    """Make links of every kind that lead out, and return paths through them."""
    ws, outside = home / "workspace", home / "outside"
    made = {
        "file-link": outside / "secret.txt",
        "folder-link": outside,
        "relative-link": Path("../outside"),
        "up-link": Path(".."),
        "root-link": Path("/"),
        "chain-2": Path("folder-link"),
        "sub/deep-link": Path("../../outside"),
        "proc-link": Path("/proc/self/root"),
        "dot-link": Path("./../outside/./secret.txt"),
    }
    for name, target in made.items():
        (ws / name).symlink_to(target)
    (ws / "chain-3").symlink_to("chain-2")
    return [
        "file-link", "folder-link/secret.txt", "relative-link/secret.txt", "up-link/outside/secret.txt",
        f"root-link{outside}/secret.txt", "chain-2/secret.txt", "chain-3/secret.txt", "sub/deep-link/secret.txt",
        f"proc-link{outside}/secret.txt", "dot-link", "sub/../folder-link/secret.txt", "folder-link/../outside/secret.txt",
        "./folder-link//secret.txt",
    ]  # fmt: skip


def spellings(home: Path) -> list[str]:
    return [
        "../outside/secret.txt", "sub/../../outside/secret.txt", f"{home}/outside/secret.txt", "/etc/passwd", "//etc/passwd",
        f"{home}/workspace/../outside/secret.txt", f"{home}/workspace-evil/secret.txt", f"{home}/workspacex/secret.txt",
        "../workspace-evil/secret.txt", "./.././outside/secret.txt", "/proc/self/root/etc/passwd", "/proc/self/cwd",
        f"/proc/self/root{home}/outside/secret.txt", "..", "../..", "/",
    ]  # fmt: skip


async def test_no_spelling_reads_outside(fs: WorkspaceFs, home: Path) -> None:
    for path in [*spellings(home), *links(home)]:
        with pytest.raises(WorkspaceError) as caught:
            await fs.read_file(path)
        assert caught.value.code in (ErrorCode.PERMISSION_DENIED, ErrorCode.INVALID_PATH), path


async def test_no_spelling_lists_outside(fs: WorkspaceFs, home: Path) -> None:
    links(home)
    for path in [
        "..",
        "/",
        "folder-link",
        "up-link",
        "sub/../..",
        str(home),
        "chain-3",
        "sub/deep-link",
    ]:
        with pytest.raises(PermissionDeniedError):
            await fs.list_dir(path)


async def test_no_spelling_writes_outside(fs: WorkspaceFs, home: Path) -> None:
    before = sorted((home / "outside").iterdir())
    for path in [*spellings(home), *links(home), "folder-link/new.txt", "chain-3/new/deep.txt"]:
        for call in (
            fs.write_file(path, "overwritten"),
            fs.edit_as(path, lambda data: b"x" + data),
        ):
            with pytest.raises(WorkspaceError):
                await call
    assert sorted((home / "outside").iterdir()) == before
    assert (home / "outside" / "secret.txt").read_text() == SECRET


async def test_a_dangling_link_is_judged_where_it_points(fs: WorkspaceFs, home: Path) -> None:
    ws = home / "workspace"
    (ws / "dangling").symlink_to(home / "outside" / "new.txt")
    (ws / "dangling-folder").symlink_to(home / "outside" / "new")
    for path in ("dangling", "dangling-folder/a.txt", "dangling-folder/b/c.txt"):
        with pytest.raises(PermissionDeniedError) as caught:
            await fs.write_file(path, "escaped")
        assert str(home / "outside" / "new") in caught.value.message
    assert not (home / "outside" / "new.txt").exists()
    assert not (home / "outside" / "new").exists()
    (ws / "inward").symlink_to("fresh.txt")
    await fs.write_file("inward", "inside")
    assert (ws / "fresh.txt").read_text() == "inside"


async def test_a_link_that_stays_inside_is_followed(fs: WorkspaceFs, home: Path) -> None:
    (home / "workspace" / "in").symlink_to("sub")
    await fs.write_file("in/b.txt", "x")
    assert (home / "workspace" / "sub" / "b.txt").read_text() == "x"
    assert await fs.read_file("in/../a.txt") == "inside"


async def test_a_loop_of_links_ends(fs: WorkspaceFs, home: Path) -> None:
    (home / "workspace" / "one").symlink_to("two")
    (home / "workspace" / "two").symlink_to("one")
    (home / "workspace" / "self").symlink_to("self")
    for path in ("one", "self", "one/x"):
        with pytest.raises(InvalidPathError):
            await fs.read_file(path)


async def test_writing_to_a_file_with_several_hard_links_is_judged_as_outside(
    fs: WorkspaceFs, home: Path
) -> None:
    ws = home / "workspace"
    os.link(home / "outside" / "secret.txt", ws / "hard.txt")
    for call in (fs.write_file("hard.txt", "x"), fs.edit_as("hard.txt", lambda data: b"x" + data)):
        with pytest.raises(PermissionDeniedError):
            await call
    assert (home / "outside" / "secret.txt").read_text() == SECRET
    gate = PermissionGate(PermissionPolicy(), mode="interactive")
    with pytest.raises(ApprovalRequiredError):
        await WorkspaceFs(local_filesystem(ws), gate=gate).write_file("hard.txt", "x")


async def test_fifos_sockets_and_devices_are_refused_without_waiting(
    fs: WorkspaceFs, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = home / "workspace"
    os.mkfifo(ws / "fifo")
    (ws / "device").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(ws)  # the path of a socket is short
        server.bind("socket")
    for path in ("fifo", "socket"):
        for call in (
            fs.read_file(path),
            fs.write_file(path, "x"),
            fs.read_file(path, start_line=1),
        ):
            with pytest.raises(PermissionDeniedError):
                await call
    everything = PermissionGate(
        PermissionPolicy(allow={"readFile": ["/dev"], "writeFile": ["/dev"]}), mode="interactive"
    )
    generous = WorkspaceFs(local_filesystem(ws), gate=everything)
    for path in ("device", "/dev/null", "/dev/zero"):
        with pytest.raises(PermissionDeniedError, match="device"):
            await generous.read_file(path)
        with pytest.raises(PermissionDeniedError, match="device"):
            await generous.write_file(path, "x")


async def test_case_and_unicode_forms_are_other_names_and_no_way_around_a_deny_rule(
    home: Path,
) -> None:
    ws = home / "workspace"
    composed = unicodedata.normalize("NFC", "geheimé.txt")
    decomposed = unicodedata.normalize("NFD", composed)
    gate = PermissionGate(
        PermissionPolicy(deny={"readFile": [f"{ws}/{composed}"]}), mode="non-interactive"
    )
    fs = WorkspaceFs(local_filesystem(ws), gate=gate)
    (ws / composed).write_text("x")
    (ws / decomposed).write_text("x")
    for name in (composed, decomposed):
        with pytest.raises(PermissionDeniedError):
            await fs.read_file(name)
    with pytest.raises(PathNotFoundError):
        await fs.read_file("A.TXT")


@pytest.mark.parametrize(
    "path", ["a\x00b", "\x00", "x" * 300, "a/" * 3000 + "b", "\ud800", "sub/\udcff"]
)
async def test_paths_that_cannot_be_are_refused(path: str, fs: WorkspaceFs) -> None:
    for call in (fs.read_file(path), fs.write_file(path, "x"), fs.list_dir(path)):
        try:
            await call
        except (WorkspaceError, UnicodeEncodeError) as error:
            assert isinstance(error, WorkspaceError), path
        else:
            assert path == "sub/\udcff"


async def test_a_backslash_is_an_ordinary_character(fs: WorkspaceFs, home: Path) -> None:
    await fs.write_file("..\\x.txt", "x")
    assert (home / "workspace" / "..\\x.txt").read_text() == "x"


async def test_a_file_in_the_way_of_a_folder_is_no_way_out(fs: WorkspaceFs) -> None:
    for path in (
        "a.txt/..",
        "a.txt/../../outside/secret.txt",
        "a.txt/",
        "missing/../../outside/secret.txt",
    ):
        with pytest.raises(WorkspaceError):
            await fs.read_file(path)


async def test_read_only_files_stay_so(home: Path) -> None:
    target = home / "workspace" / "a.txt"
    target.chmod(0o640)
    fs = WorkspaceFs(local_filesystem(home / "workspace"))
    await fs.write_file("a.txt", "new")
    assert target.stat().st_mode & 0o777 == 0o640


async def test_no_temporary_file_is_left_behind(fs: WorkspaceFs, home: Path) -> None:
    (home / "workspace" / "folder").mkdir()
    with pytest.raises(WorkspaceError):
        await fs.write_file("folder", "x")
    await fs.write_file("a.txt", "y")
    left = sorted(path.name for path in (home / "workspace").iterdir())
    assert left == ["a.txt", "folder", "sub"]


async def test_a_pin_is_let_go_whatever_happens(fs: WorkspaceFs, home: Path) -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    await fs.read_file("a.txt")
    before = open_descriptors()
    for path in ("a.txt", "missing", "../outside/secret.txt", "sub", "fifo", "/etc/passwd"):
        for call in (fs.read_file(path), fs.list_dir(path), fs.stat(path)):
            try:
                await call
            except WorkspaceError:
                continue
    assert open_descriptors() == before


async def test_over_a_workspace_no_spelling_leaves_the_root() -> None:
    async with workspace(id="w", namespace="n") as ws:
        await ws.write("/outputs/secret.txt", SECRET)
        fs = WorkspaceFs(workspace_filesystem(ws))
        await fs.write_file("a.txt", "inside")
        for path in (
            "../outputs/secret.txt",
            "/outputs/secret.txt",
            "a/../../outputs/secret.txt",
            "//outputs",
        ):
            for call in (fs.read_file(path), fs.write_file(path, "x")):
                with pytest.raises(PermissionDeniedError):
                    await call
        assert await ws.read_text("/outputs/secret.txt") == SECRET
        assert await fs.read_file("x/../a.txt") == "inside"
