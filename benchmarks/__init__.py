"""Figures of the library, each beside the raw floor it stands on."""
