from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.cli import host_writing
from crux_workspace.errors import InvalidPathError, PathExistsError


@pytest.fixture
def out(tmp_path: Path) -> Iterator[host_writing.OutFolder]:
    folder = host_writing.OutFolder(tmp_path / "out")
    yield folder
    folder.close()


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def _bytes(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "..", ".", "", "/etc/x", "a//b", "a/", "a/./b", "a\0b"]
)
async def test_names_that_lead_outside_are_refused(
    out: host_writing.OutFolder, tmp_path: Path, name: str
) -> None:
    with pytest.raises(InvalidPathError):
        await out.write(name, _bytes(b"x"), overwrite=True)
    assert _names(tmp_path) == ["out"]
    assert _names(tmp_path / "out") == []


async def test_a_failed_file_leaves_nothing(out: host_writing.OutFolder, tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await out.write("a", broken())
    assert _names(tmp_path / "out") == []


async def test_a_file_that_appears_meanwhile_is_kept(
    out: host_writing.OutFolder, tmp_path: Path
) -> None:
    async def late() -> AsyncIterator[bytes]:
        (tmp_path / "out" / "a").write_bytes(b"theirs")
        yield b"ours"

    with pytest.raises(PathExistsError):
        await out.write("a", late())
    assert (tmp_path / "out" / "a").read_bytes() == b"theirs"
    assert _names(tmp_path / "out") == ["a"]


async def test_a_folder_that_becomes_a_link_is_not_followed(
    out: host_writing.OutFolder, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    await out.write("sub/a", _bytes(b"1"))
    (tmp_path / "out" / "sub").rename(tmp_path / "moved")
    (tmp_path / "out" / "sub").symlink_to(outside)
    with pytest.raises(PathExistsError):
        await out.write("sub/b", _bytes(b"2"))
    assert _names(outside) == []


@pytest.mark.parametrize("taken", [False, True])
async def test_without_hard_links_a_file_is_published_all_the_same(
    out: host_writing.OutFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    target = tmp_path / "out" / "a"

    def no_links(*_: Any, **__: Any) -> None:
        if taken:
            target.write_bytes(b"theirs")
        raise OSError(errno.EOPNOTSUPP, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    if taken:
        with pytest.raises(PathExistsError):
            await out.write("a", _bytes(b"ours"))
    else:
        assert await out.write("a", _bytes(b"ou", b"rs")) == 4
    assert target.read_bytes() == (b"theirs" if taken else b"ours")
    assert _names(tmp_path / "out") == ["a"]


async def test_names_as_long_as_a_machine_allows(
    out: host_writing.OutFolder, tmp_path: Path
) -> None:
    await out.write("n" * 255, _bytes(b"x"))
    with pytest.raises(OSError, match="name too long"):
        await out.write("n" * 256, _bytes(b"x"))
    assert _names(tmp_path / "out") == ["n" * 255]
