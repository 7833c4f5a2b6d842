"""Assets in a folder of the local file system."""

from storage_adapters.local_files.backend import file_backend
from storage_adapters.local_files.store import LocalFilesAssetStore

__all__ = ["LocalFilesAssetStore", "file_backend"]
