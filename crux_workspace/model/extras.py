"""Optional packages: what needs one says which extra brings it."""

from __future__ import annotations

from importlib.util import find_spec

from crux_workspace.errors import UnsupportedError

__all__ = ["need_extra"]


def need_extra(module: str, extra: str) -> None:
    """Refuse to go on without an optional package; nothing is imported.

    Args:
        module: Top-level module that is about to be imported.
        extra: The extra of this package that installs it.

    Raises:
        UnsupportedError: It is not installed (``CAPABILITY_MISSING``); the message names the extra.
    """
    if find_spec(module) is None:
        raise UnsupportedError(
            f"This needs the package {module} of crux-workspace[{extra}], which is not installed.",
            details={"package": module, "extra": extra},
            hint=f"Install the extra: pip install 'crux-workspace[{extra}]'.",
        )
