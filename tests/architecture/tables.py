# ruff: noqa: E501 - rows of tables
"""The README's tables that are made from what stores declare. ``python -m tests.architecture.tables`` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

from crux_workspace.storage import MemoryRecordStore, StoreCapabilities
from storage_adapters.sql import SqliteRecordStore
from storage_adapters.sql.postgres import PostgresRecordStore

__all__ = ["abilities", "guarantees"]

README = Path(__file__).parents[2] / "README.md"

MEMORY, SQLITE, POSTGRES = (
    store.capabilities for store in (MemoryRecordStore, SqliteRecordStore, PostgresRecordStore)
)
STORES = {
    "`memory://`": (MEMORY, ""),
    "`sqlite://`": (SQLITE, "survives a power cut"),
    "`sqlite://…?durability=normal`": (SQLITE, "survives a killed process"),
    "`postgresql://`": (POSTGRES, "survives a power cut"),
}
"""How a URL begins, what its store declares, and what its acknowledged commits survive."""

OPERATIONS = [
    ("`write`, `edit`, `append`, `set`", "yes", "in the log", "refused with `if_version`, else planned again"),
    ("`update`", "yes", "in the log", "run again, up to `max_attempts` times"),
    ("`rename`, `move`, `copy`", "yes, a whole directory too", "in the log", "refused with `if_version`, else planned again"),
    ("`delete`", "yes, a whole directory too", "in the log", "refused with `if_version`, else planned again"),
    ("`undo`, `redo`", "yes", "in the log", "refused with `if_version`, else planned again"),
    ("`finalize`, `withdraw`", "yes", "in the log", "refused with `if_version`, else planned again"),
    ("`transaction`", "yes, all its paths", "in the log", "refused when anything it read or wrote changed, run again up to `max_attempts` times"),
    ("`undo_commit`", "yes, all its paths", "in the log", "refused when a later commit touched one of its paths"),
    ("`gc`", "several small ones", "in the log", "planned again"),
    ("`drop_namespace`", "one store call", "ends the log", "not checked"),
]  # fmt: skip

ABILITIES = {
    "notify": "other processes hear of a commit without polling",
    "search": "searches are narrowed by the store",
    "plans_under_lock": "a plan is never refused",
    "multi_process": "several processes may use the same data",
    "durable": "an acknowledged commit survives the process",
    "task_agnostic": "a commit costs no task of its own",
    "max_commit_paths": "most changes of one commit",
    "max_commit_bytes": "most bytes of one commit",
    "max_value_bytes": "most bytes of a record's value",
    "max_body_bytes": "most bytes of a record's body",
}


def guarantees() -> str:
    """Return the table of operations and stores."""
    head = ["operation", "one commit", "ordered", "a conflict is", *STORES]
    kept = [_kept(declared, survives) for declared, survives in STORES.values()]
    return _table(head, [[*operation, *kept] for operation in OPERATIONS])


def abilities() -> str:
    """Return the table of abilities and stores."""
    head = [
        "declared ability",
        "`MemoryRecordStore`",
        "`SqliteRecordStore`",
        "`PostgresRecordStore`",
    ]
    rows = [
        [f"`{name}`: {meaning}", *(_told(getattr(s, name)) for s in (MEMORY, SQLITE, POSTGRES))]
        for name, meaning in ABILITIES.items()
    ]
    return _table(head, rows)


def _kept(declared: StoreCapabilities, survives: str) -> str:
    if not declared.durable:
        return "until the process ends"
    if declared.notify:
        return f"{survives}; other processes hear at once"
    return f"{survives}; other processes poll" if declared.multi_process else survives


def _told(value: bool | int | None) -> str:
    if value is None:
        return "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value:,}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "|" + "|".join(f" {c} " if c != "---" else c for c in line) + "|" for line in lines
    )


def main() -> None:
    """Write the tables into the README."""
    text = README.read_text(encoding="utf-8")
    for first, table in (("operation", guarantees()), ("declared ability", abilities())):
        before, found, behind = re.split(rf"^(\| {first} \|.*\n(?:\|.*\n)+)", text, flags=re.M)
        assert found
        text = f"{before}{table}\n{behind}"
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
