"""Optional packages: imported when they are needed, and named when they are missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from crux_workspace.errors import UnsupportedError

__all__ = ["need"]


def need(module: str, extra: str) -> ModuleType:
    """Import a module of an optional package.

    Args:
        module: Its full name.
        extra: The extra of this distribution that installs it.

    Raises:
        UnsupportedError: It is not installed; the message names the extra (``CAPABILITY_MISSING``).
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (module, package):  # something that the package itself needs
            raise
        raise UnsupportedError(
            f"This store needs the package {package}, which is not installed.",
            hint=f"pip install 'crux-workspace[{extra}]'",
        ) from error
