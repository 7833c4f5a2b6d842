"""The command line in this process: arguments and stdin in; exit code, bytes and messages out."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.cli.main import main


@dataclass(frozen=True)
class Ran:
    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def error(self) -> Any:
        return json.loads(self.stderr)


class _Stream(io.TextIOWrapper):
    is_terminal = False

    def isatty(self) -> bool:
        return self.is_terminal


class Cws:
    """Runs commands in one folder."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._patch = patch

    def __call__(self, *arguments: object, stdin: bytes = b"", terminal: bool = False) -> Ran:
        streams = {
            "stdin": _Stream(io.BytesIO(stdin), encoding="utf-8"),
            "stdout": _Stream(io.BytesIO(), encoding="utf-8"),
            "stderr": _Stream(io.BytesIO(), encoding="utf-8"),
        }
        streams["stdout"].is_terminal = streams["stderr"].is_terminal = terminal
        with self._patch.context() as patch:
            patch.chdir(self.folder)
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as left:
                main([str(argument) for argument in arguments])
            for stream in streams.values():
                stream.flush()
        stdout, stderr = (streams[name].buffer.getvalue() for name in ("stdout", "stderr"))  # type: ignore[attr-defined]
        code = left.value.code
        return Ran(code if isinstance(code, int) else 0, stdout, stderr.decode())

    def ok(self, *arguments: object, stdin: bytes = b"") -> Ran:
        """Run a command that has to succeed quietly."""
        ran = self(*arguments, stdin=stdin)
        assert (ran.code, ran.stderr) == (0, ""), ran
        return ran

    def put(self, path: str, content: bytes = b"text\n", *options: object) -> None:
        self.ok("write", path, *options, stdin=content)

    def cat(self, path: str, *options: object) -> bytes:
        return self.ok("cat", path, *options).stdout


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("CRUX_WORKSPACE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean_environment: None) -> Cws:
    """The command line in an empty folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    return Cws(folder, monkeypatch)


@pytest.fixture
def cws(bare: Cws) -> Cws:
    """The command line in a folder with an initialised workspace."""
    bare.ok("init")
    return bare


# Whoever starts the tests in the background makes them, and what they start, ignore Ctrl-C.
_START = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('crux_workspace.cli', run_name='__main__', alter_sys=True)"
)


@pytest.fixture
def shell(bare: Cws) -> Iterator[Callable[..., Any]]:
    """Start the real thing as a process in the same folder; what still runs at the end is ended."""
    root = Path(__file__).parents[3]

    def start(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(root)}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [sys.executable, "-c", _START, *arguments]
        process = subprocess.Popen(
            command, cwd=bare.folder, env=environment, **{**pipes, **options}
        )
        started.append(process)
        return process

    started: list[subprocess.Popen[bytes]] = []
    yield start
    for process in started:
        process.kill()
        with process:
            pass
