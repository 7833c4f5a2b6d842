"""Assets in any object store that obstore reaches: S3, Google Cloud Storage, Azure, a local folder."""

from storage_adapters.object_stores.backend import obstore_backend
from storage_adapters.object_stores.store import ObstoreAssetStore

__all__ = ["ObstoreAssetStore", "obstore_backend"]
