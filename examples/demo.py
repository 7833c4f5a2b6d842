"""Placeholder until the sections stand."""
