from __future__ import annotations

import os
from pathlib import Path

import pytest

from crux_workspace.cli.host_reading import (
    FoundFile,
    LeftOut,
    SpecialFileError,
    open_file,
    walk_folder,
)


def _nothing(_: Path) -> bool:
    return False


def test_files_are_found_by_name_folder_by_folder(tmp_path: Path) -> None:
    for name in ("b", "a/z", "a/y/x", "c/d"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    found = list(walk_folder(tmp_path, _nothing))
    assert found == [
        FoundFile(name, tmp_path / name, len(name)) for name in ("b", "a/z", "a/y/x", "c/d")
    ]


def test_a_folder_that_goes_away_is_reported(tmp_path: Path) -> None:
    [found] = walk_folder(tmp_path / "gone", _nothing)
    assert isinstance(found, LeftOut)
    assert isinstance(found.error, FileNotFoundError)


def test_what_becomes_a_link_or_a_fifo_meanwhile_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link").symlink_to("secret")
    with pytest.raises(OSError, match="symbolic link"):
        open_file(tmp_path / "link")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SpecialFileError):
        open_file(tmp_path / "fifo")
