"""Failures as exit codes: 1 with a typed error on stderr, 130 after Ctrl-C, quiet when nobody reads any more."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from crux_workspace.cli.output import Output
from crux_workspace.errors import ErrorCode, InternalError, WorkspaceError

__all__ = ["host_failure", "reported_failures"]

TRACEBACK_VARIABLE = "CRUX_WORKSPACE_TRACEBACK"
_HOST_CODES: dict[type[OSError], ErrorCode] = {
    FileNotFoundError: ErrorCode.FILE_NOT_FOUND,
    FileExistsError: ErrorCode.ALREADY_EXISTS,
    IsADirectoryError: ErrorCode.PATH_TYPE_CONFLICT,
    NotADirectoryError: ErrorCode.PATH_TYPE_CONFLICT,
}


@contextmanager
def reported_failures(output: Output) -> Iterator[None]:
    """Turn what goes wrong inside into a message and an exit code.

    Raises:
        typer.Exit: With 1 for a failed operation, 128 + the signal's number for Ctrl-C and for a reader that went away.
    """
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(128 + signal.SIGINT) from None
    except BrokenPipeError:
        _drop_standard_output()
        raise typer.Exit(128 + 13) from None  # SIGPIPE, by its number: not every platform names it
    except WorkspaceError as error:
        raise _failed(output, error, error) from error
    except OSError as error:
        raise _failed(output, host_failure(error), error) from error
    except Exception as error:  # the last line of defence of an entry point
        raise _failed(output, _unexpected(error), error) from error


def _failed(output: Output, shown: WorkspaceError, cause: Exception) -> typer.Exit:
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(cause)
    output.error(shown)
    return typer.Exit(1)


def host_failure(error: OSError) -> WorkspaceError:
    """Return what this machine refused as an error with a code."""
    reason = error.strerror or str(error)
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    code = next(
        (code for kind, code in _HOST_CODES.items() if isinstance(error, kind)),
        ErrorCode.INVALID_ARGUMENT,
    )
    return WorkspaceError(
        f"{where}{reason}",
        code=code,
        hint="Check the local path, its permissions and the free space there.",
    )


def _unexpected(error: Exception) -> WorkspaceError:
    return InternalError(
        f"{type(error).__name__}: {error}",
        hint=f"Please report this; {TRACEBACK_VARIABLE}=1 shows where it happened.",
    )


def _drop_standard_output() -> None:
    """Point standard output at nothing, so that the interpreter's last flush fails nowhere."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        pass
