"""What a ``file://`` URL means."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from crux_workspace.errors import InvalidInputError
from crux_workspace.storage.assets import AssetStore
from storage_adapters.local_files.store import LocalFilesAssetStore

__all__ = ["file_backend"]


async def file_backend(url: str) -> AssetStore:
    """Open the assets of ``file:///absolute/folder``."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or path.strip("/") == "" or parts.query:
        raise InvalidInputError("A file URL names an absolute folder: file:///path/to/folder.")
    return LocalFilesAssetStore(Path(path))
