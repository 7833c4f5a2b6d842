"""The real thing: processes, pipes, signals and terminals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

Shell = Callable[..., "subprocess.Popen[bytes]"]


def _finish(
    process: subprocess.Popen[bytes], data: bytes | None = None
) -> tuple[int, bytes, bytes]:
    stdout, stderr = process.communicate(data, timeout=50)
    return process.returncode, stdout, stderr


def test_content_goes_through_pipes_byte_for_byte(shell: Shell) -> None:
    data = os.urandom(3_000_000) + b"\r\n\0"
    assert _finish(shell("init")) == (0, b"created workspace.db\n", b"")
    assert _finish(shell("write", "/workspace/b"), data) == (0, b"/workspace/b@v1\n", b"")
    assert _finish(shell("cat", "/workspace/b")) == (0, data, b"")
    code, stdout, stderr = _finish(shell("cat", "/workspace/missing"))
    assert (code, stdout, stderr.split(b":")[0]) == (1, b"", b"error FILE_NOT_FOUND")


def test_a_reader_that_goes_away_is_no_error_worth_a_word(cws: Any, shell: Shell) -> None:
    cws.put("/workspace/b", b"line\n" * 1_000_000)
    process = shell("cat", "/workspace/b")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(5) == b"line\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=30) == 141
    assert process.stdin is not None
    process.stdin.close()


def test_ctrl_c_while_waiting_for_stdin_ends_with_130(cws: Any, shell: Shell) -> None:
    process = shell("write", "/workspace/a")
    assert process.stdin is not None
    process.stdin.write(
        b"x" * 200_000
    )  # more than a pipe holds: it is being read when this returns
    process.stdin.flush()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    code = process.wait(timeout=30)
    _, stderr = process.communicate()
    assert (code, stderr) == (130, b"")
    assert cws.ok("log").text == ""


def test_ctrl_c_during_an_import_keeps_what_is_in(cws: Any, shell: Shell) -> None:
    (cws.folder / "in").mkdir()
    for number in range(5000):
        (cws.folder / "in" / f"{number}").write_bytes(b"x")
    process = shell("import", "in", "/workspace", "--json")
    while not cws.ok("log", "--limit", 1).lines:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    code, stdout, stderr = _finish(process)
    assert (code, stderr) == (130, b"")
    taken = json.loads(stdout)["imported"]
    assert taken < 5000
    assert cws.ok("usage", "--json").json["live_files"] in (taken, taken + 1)


def test_output_is_utf8_whatever_the_locale(
    cws: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "POSIX")
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    cws.put("/workspace/ünï.txt", "größe\n".encode())
    assert _finish(shell("ls", "-R")) == (0, "/workspace/ünï.txt\n".encode(), b"")
    assert _finish(shell("grep", "gr")) == (0, "/workspace/ünï.txt:1:größe\n".encode(), b"")


def test_progress_is_silent_in_a_pipe(cws: Any, shell: Shell) -> None:
    (cws.folder / "in").mkdir()
    (cws.folder / "in" / "a").write_bytes(b"x")
    assert _finish(shell("import", "in", "/workspace")) == (
        0,
        b"imported 1 files, 1 bytes; 0 skipped, 0 refused\n",
        b"",
    )


def test_progress_is_shown_on_a_terminal(
    cws: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    (cws.folder / "in").mkdir()
    (cws.folder / "in" / "a").write_bytes(b"x" * 100)
    ours, theirs = os.openpty()
    process = shell("import", "in", "/workspace", stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(ours)
    code, stdout, _ = _finish(process)
    assert (code, stdout) == (0, b"imported 1 files, 100 bytes; 0 skipped, 0 refused\n")
    assert b"importing" in shown


def test_two_processes_write_one_file(cws: Any, shell: Shell) -> None:
    processes = [shell("append", "/workspace/log", f"{number}\n") for number in range(4)]
    assert {_finish(process)[0] for process in processes} == {0}
    assert sorted(cws.cat("/workspace/log").split()) == [b"0", b"1", b"2", b"3"]
