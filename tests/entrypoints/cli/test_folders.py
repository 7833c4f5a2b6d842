from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.cli import host_reading

FILES = {
    "empty": b"",
    "crlf.txt": b"a\r\nb\r\n",
    "cr.txt": b"a\rb",
    "bom.txt": b"\xef\xbb\xbfx\n",
    "nul.dat": b"a\0b",
    "latin1.txt": b"caf\xe9",
    "bytes.bin": bytes(range(256)) * 300,
    "data.json": b'{ "b":1,\r\n "a" : 2 }\n\n',
    "deep/er/x.md": b"# x\n",
    "sp ace/plus+[g]lob*?.md": b"globs\n",
    "ünï/你好.txt": "你好\n".encode(),
    "100%.txt": b"percent\n",
    "-dash": b"dash\n",
    "large.txt": b"line\r\n" * 400_000,
    "large.bin": os.urandom(2_200_000),
}


def _fill(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def _read(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def test_a_folder_comes_out_as_it_went_in(cws: Any, source: Path, tmp_path: Path) -> None:
    _fill(source, FILES)
    ran = cws.ok("import", source, "/workspace/in")
    total = sum(map(len, FILES.values()))
    assert ran.text == f"imported {len(FILES)} files, {total} bytes; 0 skipped, 0 refused\n"
    ran = cws.ok("export", "/workspace/in", tmp_path / "out", "--json")
    assert ran.json == {"exported": len(FILES), "bytes": total, "skipped": [], "failed": []}
    assert _read(tmp_path / "out") == FILES
    assert len(cws.ok("log", "--json").json) == len(FILES)


def test_kinds_are_told_apart(cws: Any, source: Path) -> None:
    cws.ok("import", _fill(source, FILES), "/workspace")
    listed = cws.ok("ls", "-R", "--json").json["entries"]
    binary = {entry["path"] for entry in listed if entry["content_kind"] == "binary"}
    names = ("nul.dat", "latin1.txt", "bytes.bin", "large.bin")
    assert binary == {f"/workspace/{name}" for name in names}
    assert {entry["content_kind"] for entry in listed} == {"text", "binary"}


def test_links_and_special_files_are_skipped_and_reported(
    cws: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    _fill(source, {"kept": b"kept"})
    (source / "link").symlink_to(secret)
    (source / "folder").symlink_to(tmp_path)
    (source / "dangling").symlink_to("nowhere")
    os.mkfifo(source / "fifo")
    monkeypatch.chdir(source)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        ran = cws("import", source, "/workspace")
    assert ran.code == 0
    assert ran.text == "imported 1 files, 4 bytes; 4 skipped, 0 refused\n".replace(
        "4 skipped", "5 skipped"
    )
    assert f"skipped {source}/fifo: special file" in ran.stderr.splitlines()
    assert f"skipped {source}/folder: symbolic link" in ran.stderr.splitlines()
    assert cws.ok("ls", "-R").lines == ["/workspace/kept"]


def test_refused_names_are_reported_and_the_rest_goes_in(cws: Any, source: Path) -> None:
    _fill(
        source, {"good": b"1", "back\\slash": b"2", "new\nline": b"3", "%2e%2e": b"4", "zz": b"5"}
    )
    (source / os.fsdecode(b"\xff\xfe")).write_bytes(b"6")
    ran = cws("import", source, "/workspace", "--json")
    assert ran.code == 1
    assert (ran.json["imported"], len(ran.json["failed"])) == (2, 4)
    assert {each["code"] for each in ran.json["failed"]} == {"INVALID_PATH"}
    assert ran.error["code"] == "INVALID_PATH"
    assert cws.ok("ls", "-R").lines == ["/workspace/good", "/workspace/zz"]
    ran = cws("import", source, "/workspace")
    assert len([line for line in ran.stderr.splitlines() if line.startswith("refused ")]) == 4
    assert "error INVALID_PATH: 4 files were not imported" in ran.stderr


def test_two_forms_of_one_name_do_not_overwrite_each_other(cws: Any, source: Path) -> None:
    (source / "e\u0301").write_bytes(b"decomposed")
    (source / "\u00e9").write_bytes(b"composed")
    ran = cws("import", source, "/workspace", "--json")
    assert ran.code == 1
    assert ran.json["imported"] == 1
    assert ran.json["failed"][0]["code"] == "ALREADY_EXISTS"
    assert cws.ok("history", "/workspace/\u00e9", "--json").json[0]["version"] == 1


class _ClosedOs:
    """The `os` of somebody who may not read what is named ``closed``; root may read everything."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _refuse(self, path: Any) -> None:
        if Path(path).name.startswith("closed"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    def open(self, path: Any, flags: int) -> int:
        self._refuse(path)
        return os.open(path, flags)

    def scandir(self, path: Any) -> Any:
        self._refuse(path)
        return os.scandir(path)


def test_files_that_cannot_be_read_are_reported(
    cws: Any, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(source, {"good": b"1", "closed": b"2", "closed folder/x": b"3"})
    monkeypatch.setattr(host_reading, "os", _ClosedOs())
    ran = cws("import", source, "/workspace", "--json")
    assert (ran.code, ran.json["imported"], len(ran.json["failed"])) == (1, 1, 2)


def test_the_store_is_not_taken_into_itself(cws: Any) -> None:
    cws.put("/workspace/large", b"\0" * 100_000)
    (cws.folder / "workspace.db.txt").write_text("also near the store")
    (cws.folder / "notes.md").write_text("mine")
    ran = cws("import", ".", "/workspace/in")
    assert ran.code == 0
    assert "workspace.db: the workspace's own store" in ran.stderr
    assert cws.ok("ls", "-R", "/workspace/in").lines == ["/workspace/in/notes.md"]


def test_import_again_makes_new_versions(cws: Any, source: Path) -> None:
    _fill(source, {"a": b"1"})
    cws.ok("import", source, "/workspace/")
    (source / "a").write_bytes(b"2")
    cws.ok("import", source, "/workspace/")
    assert [each["version"] for each in cws.ok("history", "/workspace/a", "--json").json] == [2, 1]


def test_import_outside_the_mounts_refuses_each_file(cws: Any, source: Path) -> None:
    ran = cws("import", _fill(source, {"a": b"1"}), "/elsewhere")
    assert ran.code == 1
    assert "error OUTSIDE_MOUNTS: 1 file was not imported" in ran.stderr


def test_export_of_a_file_and_of_nothing(cws: Any, tmp_path: Path) -> None:
    cws.put("/workspace/d/a.txt", b"a\r\n")
    cws.ok("export", "/workspace/d/a.txt", tmp_path / "one")
    assert _read(tmp_path / "one") == {"a.txt": b"a\r\n"}
    cws.ok("export", "/", tmp_path / "all")
    assert _read(tmp_path / "all") == {"workspace/d/a.txt": b"a\r\n"}
    ran = cws("export", "/workspace/missing", tmp_path / "none")
    assert ran.stderr.startswith("error FILE_NOT_FOUND: ")
    assert not (tmp_path / "none").exists()
    cws.ok("export", "/outputs", tmp_path / "empty")
    assert _read(tmp_path / "empty") == {}


def test_export_keeps_existing_files_unless_told(cws: Any, tmp_path: Path) -> None:
    cws.put("/workspace/a", b"new")
    cws.put("/workspace/b", b"new")
    out = _fill(tmp_path / "out", {"a": b"old"})
    ran = cws("export", "/workspace", out)
    assert ran.code == 1
    assert ran.text == "exported 1 files, 3 bytes; 0 skipped, 1 refused\n"
    assert "error ALREADY_EXISTS: " in ran.stderr
    assert _read(out) == {"a": b"old", "b": b"new"}
    cws.ok("export", "/workspace", out, "--overwrite")
    assert _read(out) == {"a": b"new", "b": b"new"}


def test_export_never_follows_links(cws: Any, tmp_path: Path) -> None:
    cws.put("/workspace/sub/a", b"new")
    cws.put("/workspace/b", b"new")
    outside = _fill(tmp_path / "outside", {"b": b"precious"})
    out = tmp_path / "out"
    out.mkdir()
    (out / "sub").symlink_to(outside)
    (out / "b").symlink_to(outside / "b")
    assert cws("export", "/workspace", out).code == 1
    assert cws("export", "/workspace", out, "--overwrite").code == 1
    assert _read(outside) == {"b": b"precious"}
    assert not (out / "b").is_symlink()
    assert (out / "b").read_bytes() == b"new"


def test_export_over_a_folder_or_below_a_file_is_refused(cws: Any, tmp_path: Path) -> None:
    cws.put("/workspace/a", b"1")
    cws.put("/workspace/b/c", b"2")
    out = tmp_path / "out"
    (out / "a").mkdir(parents=True)
    (out / "b").write_bytes(b"file")
    ran = cws("export", "/workspace", out, "--overwrite", "--json")
    assert (ran.code, ran.json["exported"], len(ran.json["failed"])) == (1, 0, 2)
    assert sorted(path.name for path in out.iterdir()) == ["a", "b"]
