"""Records in a store that only knows get, put, create, delete and list."""

from storage_adapters.journaled.making import journaled
from storage_adapters.journaled.store import JournaledRecordStore

__all__ = ["JournaledRecordStore", "journaled"]
