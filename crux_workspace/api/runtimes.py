"""The runtime of the process, and how to make one."""

from __future__ import annotations

from crux_workspace.errors import InvalidInputError
from crux_workspace.events.runtime import LocalRuntime

__all__ = ["configure", "configured", "local_runtime"]

configured: LocalRuntime | None = None
"""What `configure` was given last."""


def configure(*, runtime: LocalRuntime | None) -> None:
    """Set the runtime of all workspaces of this process that were given none.

    Those that `open_workspace` opens have their own. Nothing is closed: who made a runtime closes it.

    Args:
        runtime: A runtime, e.g. of `local_runtime`; None takes back what was configured.

    Returns:
        Nothing.

    Raises:
        InvalidInputError: It is no runtime (``INVALID_ARGUMENT``).

    Cost:
        none

    Example:
        >>> configure(runtime=local_runtime()); configure(runtime=None)
    """
    global configured  # noqa: PLW0603 - the one process-wide default there is
    if runtime is not None and not isinstance(runtime, LocalRuntime):
        raise InvalidInputError("runtime must be a runtime or None.", details={"option": "runtime"})
    configured = runtime


def local_runtime(
    *, sweep_interval_ms: int | None = 30_000, gc_interval_ms: int | None = 3_600_000
) -> LocalRuntime:
    """Make a runtime inside this process: it polls for watches, sweeps due files, and collects what nothing needs.

    It works for the namespaces that its workspaces use in this process, and belongs to the event loop that first uses it. Who made it
    closes it: with ``async with``, or `aclose`. Closing ends the watches that it drives.

    Args:
        sweep_interval_ms: How often due files are swept; None never does. They are invisible all the same.
        gc_interval_ms: How often `gc` runs; None never runs it.

    Returns:
        The runtime. No task, thread or connection is held while nothing is to be done.

    Raises:
        InvalidInputError: A bad interval (``INVALID_ARGUMENT``).

    Cost:
        none; later one store call a poll and record store, and one read a sweep and namespace

    Example:
        >>> async with local_runtime() as runtime:
        ...     watched = workspace(id="jobs", namespace="n", runtime=runtime)
    """
    return LocalRuntime(sweep_interval_ms=sweep_interval_ms, gc_interval_ms=gc_interval_ms)
