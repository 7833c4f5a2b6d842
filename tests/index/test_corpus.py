"""Small projects whose lines say which operations they are: ``#: verb id paths[>to] guard [ns=...] [through=...] [column=...]``."""

from __future__ import annotations

from pathlib import Path

import pytest

from crux_workspace.index import Dynamic, Operation, ProjectIndex, index_folder

CORPUS = Path(__file__).with_name("corpus")
CASES = sorted(path.stem for path in CORPUS.glob("*.txt"))


def files_of(case: str) -> dict[str, str]:
    """Return the files of a case; ``=== name`` begins each."""
    parts = (CORPUS / f"{case}.txt").read_text(encoding="utf-8").split("=== ")[1:]
    return {part.partition("\n")[0].strip(): part.partition("\n")[2] for part in parts}


def lay_out(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def expected(files: dict[str, str]) -> set[str]:
    found = set()
    for name, text in files.items():
        for number, line in enumerate(text.splitlines(), 1):
            _, mark, told = line.partition("  #: ")
            for each in told.split("; ") if mark else ():
                found.add(f"{name}:{number} {each}")
    return found


def described(index: ProjectIndex, operation: Operation, line: str) -> str:
    """Say an operation as the corpus does; extras are told only where they are not as usual."""
    names = {each.key: each.settings["id"] for each in index.definitions}
    name = "unknown" if operation.workspace is None else names[operation.workspace]
    name = "?" if isinstance(name, Dynamic) else name
    order = sorted(operation.paths, key=lambda path: (line.find(path), path))
    paths = ",".join(order) or ("?" if operation.path_kind == "dynamic" or operation.to else "-")
    to = f">{','.join(operation.to)}" if operation.to else ""
    told = f"{operation.operation} {name} {paths}{to} {operation.guard or '-'}"
    if operation.namespace is not None:
        told += f" ns={operation.namespace}"
    if operation.through != "workspace":
        told += f" through={operation.through}"
    if "column=" in line:
        told += f" column={operation.place.column}"
    return f"{operation.place.file}:{operation.place.line} {told}"


@pytest.mark.parametrize("case", CASES)
def test_each_line_has_exactly_the_operations_it_names(case: str, tmp_path: Path) -> None:
    files = files_of(case)
    index = index_folder(lay_out(tmp_path, files))
    lines = {name: text.splitlines() for name, text in files.items()}
    found = {
        described(index, each, lines[each.place.file][each.place.line - 1])
        for each in index.operations
    }
    assert found == expected(files)
    assert index.skipped == ()


def test_the_corpus_knows_every_verb_of_the_table_that_a_call_can_name() -> None:
    told = {line.split()[1] for case in CASES for line in expected(files_of(case))}
    assert len(told) > 20
