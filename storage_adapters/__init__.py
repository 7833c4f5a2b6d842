"""Adapters that connect the library to real stores; each sees errors, model, storage and events only."""

from storage_adapters.registry import StorageOpening, migrate, open_storage

__all__ = ["StorageOpening", "migrate", "open_storage"]
