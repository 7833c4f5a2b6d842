"""Conformance kits, doubles, strategies and oracles for users and implementers."""
