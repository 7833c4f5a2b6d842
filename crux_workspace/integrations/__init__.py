"""Workspaces as what other frameworks keep files in; each module needs its extra."""
