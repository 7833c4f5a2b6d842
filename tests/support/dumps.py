"""Everything a user can see of a namespace, as plain data that two runs can be compared by.

Identities, commit ids and asset URIs differ from run to run; they are replaced by names in order of appearance.
"""

from __future__ import annotations

from typing import Any

from crux_workspace import Workspace, WorkspaceFile
from crux_workspace.errors import WorkspaceError

__all__ = ["Names", "dump", "plain", "visible"]

_OWN_TO_A_RUN = ("commit", "cursor")


class Names:
    """Gives what differs from run to run a name that does not."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def __call__(self, file_id: str | None) -> str | None:
        """Name a file id."""
        if not file_id:
            return file_id
        return self._ids.setdefault(file_id, f"file {len(self._ids) + 1}")


def plain(value: Any, names: Names) -> Any:
    """Turn a result into data without what differs from run to run."""
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, dict):
        found = {k: plain(v, names) for k, v in value.items() if k not in _OWN_TO_A_RUN}
        for name in ("id", "file_id", "replaced"):
            if name in found:
                found[name] = names(found[name])
        if isinstance(found.get("uri"), str):
            found["uri"] = _place(found["uri"])
        return found
    if isinstance(value, list | tuple):
        return [plain(item, names) for item in value]
    return value


def _place(uri: str) -> str:
    """Cut off what names the namespace, or the upload."""
    return "/".join(uri.split("/")[4:]) if uri.startswith("workspace-inline:") else "an asset"


async def dump(ws: Workspace, namespace: str) -> dict[str, Any]:
    """Read all there is to read of a namespace: log, files, histories, contents, artifacts, usage."""
    names = Names()
    log = await ws.log(limit=10_000, namespace=namespace)
    commits = [plain(entry, names) for entry in reversed(log)]
    files = [f async for f in ws.walk("/", namespace=namespace)]
    touched = {p for e in log for c in e.changes for p in (c.path, c.from_path) if p}
    paths = sorted({*touched, *(file.path for file in files)} - {"<purged>"})
    return {
        "log": commits,
        "tree": plain(list(await ws.list("/", namespace=namespace)), names),
        "files": [await _file(ws, file, namespace, names) for file in files],
        "histories": {path: await _history(ws, path, namespace, names) for path in paths},
        "artifacts": plain(await ws.artifacts(namespace=namespace), names),
        "usage": plain(await ws.usage(namespace=namespace), names),
    }


def visible(dumped: dict[str, Any]) -> dict[str, Any]:
    """Leave out the log: what remains is the same however many commits a result took."""
    return {name: _unnumbered(part) for name, part in dumped.items() if name != "log"}


def _unnumbered(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _unnumbered(v) for k, v in value.items() if k != "sequence"}
    return [_unnumbered(item) for item in value] if isinstance(value, list) else value


async def _file(ws: Workspace, file: WorkspaceFile, namespace: str, names: Names) -> Any:
    content = await ws.read_bytes(file.path, namespace=namespace)
    assert len(content) == file.size
    return [plain(file, names), content]


async def _history(ws: Workspace, path: str, namespace: str, names: Names) -> list[Any]:
    found = []
    for entry in await ws.history(path, namespace=namespace):
        try:
            content: Any = await ws.read_bytes(path, version=entry.version, namespace=namespace)
        except WorkspaceError as error:
            content = str(error.code)
        found.append([plain(entry, names), content])
    return found
