"""The project index: which workspaces Python code defines, who reads and writes them, where, and how.

The room reads code with the standard library's `ast` and never runs any of it. It knows the verb table, the settings and the names of
the tools; it must not know stores, engines or workspaces themselves.
"""

from __future__ import annotations

from crux_workspace.index.facts import (
    FORMAT,
    Definition,
    Dynamic,
    Exposure,
    IndexWarning,
    Operation,
    Owner,
    Place,
    ProjectIndex,
    Relation,
    Skipped,
)
from crux_workspace.index.indexing import WRITE_WITHOUT_GUARDRAIL, index_folder

__all__ = [
    "FORMAT",
    "WRITE_WITHOUT_GUARDRAIL",
    "Definition",
    "Dynamic",
    "Exposure",
    "IndexWarning",
    "Operation",
    "Owner",
    "Place",
    "ProjectIndex",
    "Relation",
    "Skipped",
    "index_folder",
]
