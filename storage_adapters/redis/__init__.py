"""Records and assets in Redis or Valkey; needs the extra ``redis``."""

from storage_adapters.redis.assets import RedisAssetStore
from storage_adapters.redis.backend import redis_assets_backend, redis_backend
from storage_adapters.redis.store import RedisRecordStore

__all__ = ["RedisAssetStore", "RedisRecordStore", "redis_assets_backend", "redis_backend"]
