"""The entry point of ``crux-workspace`` and ``cws``: puts the commands together and runs one."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from crux_workspace.cli.declaring import app

# Each declares its commands, and the help lists them in this order.
# isort: off
from crux_workspace.cli.commands import (  # noqa: F401
    reading,
    searching,
    writing,
    editing,
    relocating,
    transacting,
    versions,
    publishing,
    past,
    watching,
    importing,
    exporting,
    keeping,
    certifying,
    indexing,
    serving,
    hosting,
    permitting,
)
# isort: on

__all__ = ["app", "main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code.

    Args:
        arguments: The command line without the program's name; the process's own by default.

    Raises:
        SystemExit: Always; 0 for success, 1 for a failed operation, 2 for wrong usage, 130 after Ctrl-C.
    """
    try:
        app(args=list(arguments) if arguments is not None else None, prog_name="crux-workspace")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
