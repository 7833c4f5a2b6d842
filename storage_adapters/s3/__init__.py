"""Assets in a bucket of Amazon S3, or of anything that speaks its protocol."""

from storage_adapters.s3.backend import s3_backend
from storage_adapters.s3.settings import S3Settings
from storage_adapters.s3.store import S3AssetStore

__all__ = ["S3AssetStore", "S3Settings", "s3_backend"]
