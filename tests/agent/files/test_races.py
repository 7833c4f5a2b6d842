"""What was judged is what is opened, while a second process swaps folders and files for links out of the workspace."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from crux_workspace.agent import PermissionGate, PermissionPolicy, WorkspaceFs, local_filesystem
from crux_workspace.errors import WorkspaceError

SWAPS = int(os.environ.get("CRUX_RACE_SWAPS", "10000"))
LONGEST_S = 90
pytestmark = pytest.mark.timeout(150)
SECRET = "the secret outside"  # noqa: S105 - what must not be read


@dataclass
class Arena:
    """A workspace under attack, and what lies outside of it."""

    workspace: Path
    outside: Path
    process: subprocess.Popen[bytes]

    @property
    def swaps(self) -> int:
        told = self.workspace.parent / "swaps"
        return int(told.read_text() or 0) if told.exists() else 0

    def stop(self) -> None:
        (self.workspace.parent / "stop").touch()
        assert self.process.wait(timeout=30) == 0

    def is_untouched(self) -> bool:
        names = sorted(path.name for path in self.outside.iterdir())
        return names == ["victim.txt"] and (self.outside / "victim.txt").read_text() == SECRET


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    (workspace / "dir").mkdir(parents=True)
    outside.mkdir()
    (workspace / "dir" / "victim.txt").write_text("inside")
    (workspace / "file.txt").write_text("inside")
    (outside / "victim.txt").write_text(SECRET)
    script = Path(__file__).with_name("swapper.py")
    process = subprocess.Popen([sys.executable, script, workspace, outside])
    made = Arena(workspace, outside, process)
    yield made
    process.kill()
    process.wait()


async def attack(
    arena: Arena,
    calls: list[Callable[[], Awaitable[object]]],
    is_over: Callable[[int, list[object]], bool],
) -> tuple[int, int, list[object]]:
    """Make the calls again and again; return how many, how many succeeded, and what they returned of the secret."""
    made = done = 0
    leaked: list[object] = []
    until = time.monotonic() + LONGEST_S
    while not is_over(made, leaked) and time.monotonic() < until:
        for call in calls:
            made += 1
            try:
                found = await call()
            except (WorkspaceError, OSError):
                continue
            done += 1
            if SECRET in str(found):
                leaked.append(found)
    arena.stop()
    return made, done, leaked


async def fought(arena: Arena, calls: list[Callable[[], Awaitable[object]]]) -> None:
    made, done, leaked = await attack(
        arena, calls, lambda n, _: n % 40 == 0 and arena.swaps >= SWAPS
    )
    swaps = arena.swaps
    print(f"{swaps} swaps against {made} calls, {done} of which succeeded")
    assert swaps >= SWAPS
    assert done >= 20, "the attack must not simply block everything"
    assert leaked == []
    assert arena.is_untouched()


async def test_no_read_or_listing_escapes(arena: Arena) -> None:
    fs = WorkspaceFs(local_filesystem(arena.workspace))
    await fought(
        arena,
        [
            lambda: fs.read_file("dir/victim.txt"),
            lambda: fs.read_binary_file("file.txt"),
            lambda: fs.read_file("file.txt", start_line=1),
            lambda: fs.read_file("dir/../dir/victim.txt"),
        ],
    )


async def test_no_write_or_edit_escapes(arena: Arena) -> None:
    gate = PermissionGate(PermissionPolicy(), mode="non-interactive")
    fs = WorkspaceFs(local_filesystem(arena.workspace), gate=gate)
    await fought(
        arena,
        [
            lambda: fs.write_file("dir/victim.txt", "overwritten"),
            lambda: fs.write_file("dir/new.txt", "created"),
            lambda: fs.write_file("dir/sub/deep.txt", "created below"),
            lambda: fs.write_file("file.txt", "overwritten"),
            lambda: fs.edit_as("dir/victim.txt", lambda data: data + b"."),
        ],
    )


async def test_the_attack_breaks_a_check_by_name(arena: Arena) -> None:
    """The same calls through "resolve, compare, open by name" do escape; so the attack above is a real one."""
    root = str(arena.workspace)

    async def naive() -> object:
        path = f"{root}/dir/victim.txt"
        if not os.path.realpath(path).startswith(f"{root}/"):
            raise OSError
        return Path(path).read_text()

    *_, leaked = await attack(arena, [naive], lambda _, leaked: bool(leaked))
    assert leaked
