"""Commands in a folder of this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from crux_workspace.agent.files.contract import FsContext
from crux_workspace.agent.files.descriptors import locate
from crux_workspace.agent.permissions.requests import covers
from crux_workspace.agent.permissions.rules import EMPTY_RULES, RuleSet
from crux_workspace.agent.shells.contract import ShellResult
from crux_workspace.agent.shells.process import Limits, run_limited
from crux_workspace.agent.shells.sandbox import SandboxChoice, chosen_sandbox, sandboxed
from crux_workspace.errors import ErrorCode, InvalidInputError, UnsupportedError
from crux_workspace.model.options import MOST, needed_number

__all__ = ["LocalShell", "local_shell"]

_PASSED_ON = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TERM", "USER", "LOGNAME", "TMPDIR")
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LocalShell:
    """Runs commands with bash in the workspace's folder, in a sandbox where there is one, always under limits.

    The command sees a small environment of its own: no credentials of this process, no start files, no exported functions.
    """

    def __init__(
        self,
        limits: Limits,
        sandbox: SandboxChoice,
        env: Mapping[str, str],
    ) -> None:
        self.limits = limits
        self.sandbox = sandbox
        self.env = dict(env)

    def __repr__(self) -> str:
        return f"LocalShell(sandbox={self.sandbox!r}, timeout_ms={self.limits.timeout_ms})"

    async def run_command(
        self,
        command: str,
        ctx: FsContext,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ShellResult:
        """See `Shell.run_command`; in a sandbox, paths that a rule denies are read only or empty."""
        denied = EMPTY_RULES if ctx.denied is None else await ctx.denied()
        return await self.run_in(
            ctx.root, command, shown_as=ctx.root, cwd=cwd, env=env, denied=denied
        )

    async def run_in(
        self,
        folder: str,
        command: str,
        *,
        shown_as: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        denied: RuleSet = EMPTY_RULES,
    ) -> ShellResult:
        """Run a command in a folder; in a sandbox the folder is seen under another path, without what `denied` denies."""
        if "\x00" in command:
            raise InvalidInputError(
                "A command must be text without NUL.", details={"option": "command"}
            )
        inside = cwd or shown_as
        if not covers(shown_as, inside):
            raise InvalidInputError(
                "A command's folder must be inside the workspace.", details={"option": "cwd"}
            )
        sandbox = chosen_sandbox(self.sandbox)
        argv, where = self._argv(sandbox, folder, shown_as, inside, command, denied)
        found = await run_limited(
            argv,
            cwd=where,
            env=self._environment(env, is_boxed=sandbox is not None),
            limits=self.limits,
        )
        stderr = found.stderr.decode("utf-8", "replace")
        if found.stopped is not None:
            stderr += f"\nstopped: {found.stopped}"
        return ShellResult(
            found.stdout.decode("utf-8", "replace"),
            stderr,
            found.exit_code,
            found.truncated,
            found.timed_out,
        )

    def _argv(
        self,
        sandbox: str | None,
        folder: str,
        shown_as: str,
        inside: str,
        command: str,
        denied: RuleSet,
    ) -> tuple[Sequence[str], str]:
        pin = locate(folder)
        try:
            real = pin.path
        finally:
            pin.close()
        bash = _bash()
        limited = f'{self.limits.shell_words()}; exec {bash} --noprofile --norc -c "$1"'
        inner = [bash, "--noprofile", "--norc", "-c", limited, "bash", command]
        if sandbox is None:
            return inner, os.path.normpath(real + inside[len(shown_as) :])
        frozen, hidden = (_existing(denied, key, real) for key in ("writeFile", "readFile"))
        boxed = sandboxed(sandbox, real, shown_as, inside, inner, frozen=frozen, hidden=hidden)
        return boxed, real

    def _environment(self, more: Mapping[str, str] | None, *, is_boxed: bool) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in _PASSED_ON or name.startswith("LC_")
        }
        if is_boxed:
            kept["HOME"] = kept["TMPDIR"] = "/tmp"  # noqa: S108 - the sandbox's own
        kept.setdefault("PATH", _DEFAULT_PATH)
        return {**kept, **self.env, **(more or {})}


def _existing(denied: RuleSet, key: str, root: str) -> list[str]:
    """Return the paths in a folder that rules of a key are about and that are there; the folder itself when all of it is."""
    if denied.path(key, root) is not None:
        return [root]
    below = (rule for rule in denied[key] if covers(root, rule) and Path(rule).exists())
    return sorted(rule for rule in below if os.path.realpath(rule) == rule)


def _bash() -> str:
    found = shutil.which("bash")
    if found is None:
        raise UnsupportedError(
            "There is no bash on this machine, and commands are judged by its grammar.",
            code=ErrorCode.CAPABILITY_MISSING,
            hint="Install bash, or withhold runBash.",
        )
    return found


def local_shell(
    *,
    timeout_ms: int = 120_000,
    max_output_bytes: int = 1 << 20,
    sandbox: SandboxChoice = "auto",
    max_memory_bytes: int = 16 << 30,
    max_processes: int = 256,
    max_file_bytes: int = 2 << 30,
    env: Mapping[str, str] | None = None,
) -> LocalShell:
    """Return a shell that runs commands in a folder of this machine.

    Args:
        timeout_ms: After this time the command and all it started are ended.
        max_output_bytes: What is kept of each of the two output streams.
        sandbox: ``auto`` uses bubblewrap where it works, ``required`` refuses to run without, ``off`` never does.
        max_memory_bytes: Address space of each process.
        max_processes: Most processes at a time.
        max_file_bytes: Largest file that a command may write.
        env: Variables that commands see beside the few that are passed on.

    Returns:
        The shell.

    Raises:
        InvalidInputError: A limit below 1, no such sandbox, or variables that are no strings (``INVALID_ARGUMENT``).
    """
    numbers = {
        "timeout_ms": timeout_ms,
        "max_output_bytes": max_output_bytes,
        "max_memory_bytes": max_memory_bytes,
        "max_processes": max_processes,
        "max_file_bytes": max_file_bytes,
    }
    for option, number in numbers.items():
        needed_number(option, number, most=MOST)
    if sandbox not in ("auto", "required", "off"):
        raise InvalidInputError(
            "sandbox is 'auto', 'required' or 'off'.", details={"option": "sandbox"}
        )
    given: object = {} if env is None else env
    if not isinstance(given, Mapping) or not all(
        isinstance(text, str) for pair in given.items() for text in pair
    ):
        raise InvalidInputError("env must map names to strings.", details={"option": "env"})
    return LocalShell(Limits(**numbers), sandbox, given)
