"""Which mode a gate is in: as the code says, the environment, or the policy."""

from __future__ import annotations

import os

from crux_workspace.agent.permissions.policy import Mode, check_mode

__all__ = ["MODE_VARIABLE", "effective_mode"]

MODE_VARIABLE = "CRUX_PERMISSIONS_MODE"


def effective_mode(given: Mode | None, of_policy: Mode | None) -> Mode:
    """Return the mode: the explicit one, which the environment may only tighten; else environment, policy, default."""
    named = os.environ.get(MODE_VARIABLE)
    environment = check_mode(named) if named else None
    if given is not None:
        explicit = check_mode(given)
        return "non-interactive" if environment == "non-interactive" else explicit
    return environment or of_policy or "interactive"
