"""The checks of the asset store contract, by topic; `ASSET_CHECKS` holds them all."""

from __future__ import annotations

from crux_workspace.testing.asset_checks import keys, listing, putting, streaming
from crux_workspace.testing.asset_checks.shelf import ASSET_CHECKS

__all__ = ["ASSET_CHECKS", "keys", "listing", "putting", "streaming"]
