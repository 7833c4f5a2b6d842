"""Adapters that connect the library to real stores; each sees errors, model, storage and events only."""
