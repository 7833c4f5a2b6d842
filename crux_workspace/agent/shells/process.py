"""One child process under limits: time, processor, memory, processes, output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Limits", "Outcome", "run_limited"]

_MARK = "CRUX_WORKSPACE_RUN"
_CHUNK = 65_536
_WATCH_S = 0.1
_FIRST_POLL_S = 0.002
_LAST_POLL_S = 0.03
_DRAIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may use."""

    timeout_ms: int
    max_output_bytes: int
    """Of standard output and of standard error each."""
    max_memory_bytes: int
    """Address space of each process."""
    max_processes: int
    """Processes and their children at a time."""
    max_file_bytes: int
    """Largest file that may be written."""

    def shell_words(self) -> str:
        """Return the limits as bash sets them."""
        seconds = max(1, -(-self.timeout_ms // 1000)) + 1
        return (
            f"ulimit -S -c 0; ulimit -t {seconds}; ulimit -v {self.max_memory_bytes // 1024}; "
            f"ulimit -f {self.max_file_bytes // 1024}; ulimit -n 1024"
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a process ended."""

    stdout: bytes
    stderr: bytes
    exit_code: int
    truncated: bool
    timed_out: bool
    stopped: str | None = None
    """Why it was stopped, apart from time."""


class _Capture:
    """Keeps the first bytes of a stream and reads the rest away."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept = bytearray()
        self.truncated = False

    async def read(self, stream: asyncio.StreamReader) -> None:
        while part := await stream.read(_CHUNK):
            room = self.limit - len(self.kept)
            self.truncated = self.truncated or len(part) > room
            self.kept += part[: max(0, room)]


async def run_limited(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limits: Limits
) -> Outcome:
    """Run a program and everything it starts; when it ends, or time is up, all of them are ended."""
    mark = secrets.token_hex(8)
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env={**env, _MARK: mark},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=_CHUNK,
    )
    out, err = _Capture(limits.max_output_bytes), _Capture(limits.max_output_bytes)
    assert process.stdout is not None
    assert process.stderr is not None
    readers = [
        asyncio.ensure_future(out.read(process.stdout)),
        asyncio.ensure_future(err.read(process.stderr)),
    ]
    stopped: str | None = None
    timed_out = False
    try:
        async with asyncio.timeout(limits.timeout_ms / 1000):
            stopped = await _watched(process, mark, limits.max_processes)
    except TimeoutError:
        timed_out = True
    finally:
        _end(process, mark)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                await asyncio.gather(*readers)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        _end(process, mark)
        await process.wait()
        _close(process)
    code = process.returncode or 0
    return Outcome(
        bytes(out.kept),
        bytes(err.kept),
        124 if timed_out else 128 - code if code < 0 else code,
        out.truncated or err.truncated,
        timed_out,
        stopped,
    )


async def _watched(process: asyncio.subprocess.Process, mark: str, most: int) -> str | None:
    """Wait for the end; stop everything when there are too many processes.

    The end is polled: waiting for it would wait for whoever holds the output open, too.
    """
    pause = _FIRST_POLL_S
    counted = 0.0
    while process.returncode is None:
        await asyncio.sleep(pause)
        counted += pause
        pause = min(pause * 1.5, _LAST_POLL_S)
        if counted >= _WATCH_S:
            counted = 0.0
            if sum(1 for _ in _family(process.pid, mark)) > most:
                _end(process, mark)
                return f"more than {most} processes"
    return None


def _end(process: asyncio.subprocess.Process, mark: str) -> None:
    """Kill the process's group, and what left the group but still carries our mark."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in list(_family(process.pid, mark)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _family(leader: int, mark: str) -> Iterator[int]:
    """Yield the processes of the command's session, and those that carry its mark (Linux)."""
    wanted = f"{_MARK}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "stat").read_bytes().rpartition(b") ")[2].split()
            is_ours = int(text[3]) == leader and text[0] != b"Z"
            if is_ours or wanted in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)
        except (OSError, ValueError, IndexError):
            continue


def _close(process: asyncio.subprocess.Process) -> None:
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
