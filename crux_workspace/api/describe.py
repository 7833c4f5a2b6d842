"""What a workspace is, as plain data."""

from __future__ import annotations

from dataclasses import asdict

from crux_workspace.api.core import WorkspaceCore
from crux_workspace.tools.catalogue import tool_names

__all__ = ["describe"]


def describe(core: WorkspaceCore) -> dict[str, object]:
    """Return the Project-Index metadata of a workspace; no I/O, no credentials."""
    return {
        "id": core.workspace_id,
        "mounts": [
            {
                "path": mount.path,
                "access": mount.access,
                "description": mount.description,
                "source": mount.source_kind,
            }
            for mount in core.router.mounts
        ],
        "tools": tool_names(core.tools),
        "assets": {
            "store": None if core.assets is None else type(core.assets).__name__,
            "inline_text_below_bytes": core.content.inline_text_below_bytes,
        },
        "retention": asdict(core.retention),
        "limits": asdict(core.limits),
        "versioning": asdict(core.versioning),
    }
