"""What a shell is, and what running a command gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from crux_workspace.agent.files.contract import FsContext
from crux_workspace.model.values import Value

__all__ = ["Shell", "ShellResult"]


@dataclass(frozen=True, slots=True)
class ShellResult(Value):
    """What a command did. A non-zero exit code is a result, not an error."""

    stdout: str = field(repr=False)
    stderr: str = field(repr=False)
    exit_code: int
    """As shells count: 128 + n when signal n ended it, 124 after a timeout."""
    truncated: bool = False
    """Whether output was left out."""
    timed_out: bool = False
    commit: str | None = None
    """Over a workspace: the commit with what changed; None when nothing did."""
    refused: tuple[str, ...] = ()
    """Over a workspace: paths that were not taken over, because they are links or special files."""

    def to_tool(self) -> dict[str, Any]:
        """Return what the model sees."""
        told: dict[str, Any] = {
            "stdout": self.stdout,
            "stderr": self.stderr,
            "exitCode": self.exit_code,
            "truncated": self.truncated,
            "timedOut": self.timed_out,
            "commit": self.commit,
        }
        if self.refused:
            told["refused"] = list(self.refused)
        return told


@runtime_checkable
class Shell(Protocol):
    """Runs command lines for bash."""

    async def run_command(
        self,
        command: str,
        ctx: FsContext,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ShellResult:
        """Run a command line and wait for its end.

        Args:
            command: The command line.
            ctx: Says which folder is the workspace's root.
            cwd: Folder to run in, inside the root; None is the root.
            env: Variables to add.

        Returns:
            The result; a time limit that was met is part of it.

        Raises:
            UnsupportedError: There is no bash, or no sandbox where one is required (``CAPABILITY_MISSING``).
        """
        ...
