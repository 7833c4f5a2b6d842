"""What a workspace is, as plain data."""

from __future__ import annotations

from dataclasses import asdict

from crux_workspace.api.core import WorkspaceCore

__all__ = ["describe"]


def describe(core: WorkspaceCore) -> dict[str, object]:
    """Return the Project-Index metadata of a workspace; no I/O, no credentials."""
    from crux_workspace.tools.catalogue import tool_names

    return {
        "id": core.workspace_id,
        "namespace": _namespace(core),
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
        "records": {
            "store": type(core.records).__name__,
            "capabilities": asdict(core.records.capabilities),
        },
        "assets": {
            "store": None if core.assets is None else type(core.assets).__name__,
            "inline_text_below_bytes": core.content.inline_text_below_bytes,
            "accepts_binary": core.assets is not None,
        },
        "retention": asdict(core.retention),
        "limits": asdict(core.limits),
        "versioning": asdict(core.versioning),
    }


def _namespace(core: WorkspaceCore) -> str:
    """Say how calls that name no namespace find theirs; never which one it is."""
    if core.namespace is None:
        return "none"
    return "fixed" if isinstance(core.namespace, str) else "computed"
