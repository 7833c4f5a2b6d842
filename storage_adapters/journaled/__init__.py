"""Records in a store that only knows get, put, create, delete and list."""

from storage_adapters.journaled.store import JournaledRecordStore, journaled

__all__ = ["JournaledRecordStore", "journaled"]
