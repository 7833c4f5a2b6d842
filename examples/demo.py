"""The main job, on real input, checking itself: ``make demo``.

Imports this repository and generated files into an embedded SQLite workspace in a temporary folder, works on them, and checks every
claim it prints. The last table says what was proved. Exit code 1 when a check fails.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from crux_workspace import Limits, Transaction, Workspace, local_runtime, workspace
from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.storage import Storage
from storage_adapters import open_storage

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "/workspace/repository"
GENERATED = "/workspace/generated"
NOTES = "/workspace/notes.md"
REPORT = "/outputs/report.md"
STOCK = "/workspace/shop/stock.json"

console = Console(highlight=False)
if not console.is_terminal:
    console = Console(highlight=False, width=110)


# -- keeping score


@dataclass
class Section:
    """What one part of the demonstration proved."""

    title: str
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Proof:
    """Collects checks; prints each as it is made."""

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self._good = "✓" if "utf" in (console.encoding or "").lower() else "ok"

    def begin(self, title: str) -> None:
        """Open the next part."""
        self.sections.append(Section(title))
        console.print()
        console.rule(f"[bold]{len(self.sections)}. {title}", align="left", style="blue")

    def check(self, claim: str, holds: bool, seen: object = "") -> None:
        """Record one claim; a claim that does not hold fails the demonstration."""
        current = self.sections[-1]
        shown = Text(f" {seen}" if seen != "" else "", style="dim")
        if holds:
            current.passed += 1
            console.print(Text(f"  {self._good} ", style="green") + Text(claim) + shown)
        else:
            current.failed.append(claim)
            console.print(Text("  FAILED ", style="bold red") + Text(claim) + shown)

    def fact(self, text: str) -> None:
        """Record a figure for the last table."""
        self.sections[-1].facts.append(text)

    async def refused(self, claim: str, code: ErrorCode, call: Awaitable[object]) -> WorkspaceError:
        """Check that a call is refused with this code, and show what the caller is told."""
        try:
            await call
        except WorkspaceError as error:
            self.check(claim, error.code == code, f"({error.code})")
            console.print(Text(f"      {error.message}", style="yellow"))
            console.print(Text(f"      hint: {error.hint}", style="yellow"))
            return error
        self.check(claim, False, "nothing was raised")
        return WorkspaceError("nothing was raised")

    @property
    def failures(self) -> int:
        """How many checks failed so far."""
        return sum(len(section.failed) for section in self.sections)

    def summary(self) -> None:
        """Print what was proved, with counts and times."""
        table = Table(title="What this run proved", title_style="bold", header_style="bold")
        table.add_column("part")
        table.add_column("checks", justify="right")
        table.add_column("failed", justify="right")
        table.add_column("ms", justify="right")
        table.add_column("figures", style="dim")
        for section in self.sections:
            failed = Text(str(len(section.failed)), style="red" if section.failed else "green")
            table.add_row(
                section.title,
                str(section.passed),
                failed,
                f"{section.seconds * 1000:,.0f}",
                "; ".join(section.facts),
            )
        table.add_section()
        table.add_row(
            "all",
            str(sum(section.passed for section in self.sections)),
            Text(str(self.failures), style="bold red" if self.failures else "bold green"),
            f"{sum(section.seconds for section in self.sections) * 1000:,.0f}",
            "",
        )
        console.print()
        console.print(table)


@dataclass
class Stage:
    """What the parts share."""

    proof: Proof
    folder: Path
    storage: Storage
    ws: Workspace
    inputs: dict[str, bytes] = field(default_factory=dict)
    """Every imported path with the bytes that went in."""
    imported_at: int = 0
    """Sequence of the last commit of the import."""

    @property
    def database(self) -> Path:
        """The one file that holds all records."""
        return self.folder / "demo.db"


# -- input


def repository_files() -> dict[str, bytes]:
    """Return the files of this repository: what git tracks, else what a walk finds."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 - the git of the user
        cwd=ROOT,
        capture_output=True,
        check=False,
    ) if _has_git() else None  # fmt: skip
    if listed is not None and listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [str(path.relative_to(ROOT)) for path in sorted(_walk(ROOT))]
    files = [ROOT / name for name in names]
    return {
        f"{REPOSITORY}/{path.relative_to(ROOT).as_posix()}": path.read_bytes()
        for path in files
        if path.is_file() and not path.is_symlink()
    }


def _has_git() -> bool:
    from shutil import which

    return which("git") is not None and (ROOT / ".git").exists()


def _walk(folder: Path) -> list[Path]:
    found: list[Path] = []
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in ("__pycache__", "build", "dist"):
            continue
        found += _walk(path) if path.is_dir() and not path.is_symlink() else [path]
    return [path for path in found if ".egg-info" not in str(path)]


def generated_files(folder: Path) -> dict[str, bytes]:
    """Return inputs that no repository has all of: encodings, line endings, and binaries."""
    chance = random.Random(20240229)  # noqa: S311 - reproducible input
    text = "Grüße, 世界, e\u0301 and é\n"
    made = {
        "text/utf8.txt": text.encode(),
        "text/utf8-bom.txt": b"\xef\xbb\xbf" + text.encode(),
        "text/crlf.txt": b"one\r\ntwo\r\nthree\r\n",
        "text/lone-cr.txt": b"one\rtwo\rthree",
        "text/mixed.txt": b"one\r\ntwo\nthree\rfour",
        "text/no-final-newline.txt": b"the end",
        "text/separators.txt": "a\x0cb\u2028c\x85d\n".encode(),
        "text/latin-1.txt": "Grüße\n".encode("latin-1"),
        "text/utf-16.txt": text.encode("utf-16"),
        "text/nul.txt": b"before\0after\n",
        "text/empty.txt": b"",
        "text/long.txt": b"".join(b"%06d a line of a long text\n" % n for n in range(20_000)),
        "data/rows.json": json.dumps({"rows": [1, 2.5, None, "ü"], "ok": True}).encode(),
        "binary/pixel.png": small_png(),
        "binary/log.gz": gzip.compress(b"a line\n" * 1000, mtime=0),
        "binary/other.sqlite": small_database(folder),
        "binary/random.bin": chance.randbytes(3_000_000),
        "names/spaces and + plus.txt": b"spaces\n",
        "names/*[glob]?{a,b}.txt": b"globs\n",
        "names/日本語.txt": b"kanji\n",
        "names/head": b"a file named like an internal record\n",
    }
    return {f"{GENERATED}/{name}": data for name, data in made.items()}


def small_png() -> bytes:
    """Return a picture of one red dot."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    header = (1).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
        + chunk(b"IEND", b"")
    )


def small_database(folder: Path) -> bytes:
    """Return the bytes of an SQLite file that has nothing to do with ours."""
    path = folder / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (n integer, s text)")
        connection.executemany("insert into t values (?, ?)", [(n, str(n)) for n in range(500)])
    connection.close()
    return path.read_bytes()


def as_text(data: bytes) -> str | None:
    """Return valid UTF-8 without NUL as text, anything else as None: the rule of the import command."""
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def sha256(data: bytes) -> str:
    """Return the hash that the workspace records too."""
    return hashlib.sha256(data).hexdigest()


def digest(tree: dict[str, str | None]) -> str:
    """Return one short hash of a whole tree, from the hashes of its files."""
    return sha256(json.dumps(sorted(tree.items())).encode())[:12]


async def tree_of(reader: object) -> dict[str, str | None]:
    """Return path and content hash of every file that a workspace, or a view of its past, shows."""
    assert hasattr(reader, "walk")
    return {file.path: file.sha256 async for file in reader.walk("/")}


# -- the parts


async def import_everything(stage: Stage) -> None:
    """Write every input file; one commit each."""
    proof, ws = stage.proof, stage.ws
    repository = repository_files()
    generated = generated_files(stage.folder)
    stage.inputs = {**repository, **generated}
    start = time.perf_counter()
    for path, data in stage.inputs.items():
        text = as_text(data)
        await ws.write(path, data if text is None else text)
    took = time.perf_counter() - start
    stage.imported_at = (await ws.log(limit=1))[0].sequence
    size = sum(map(len, stage.inputs.values()))
    proof.check("this repository's own files are in", len(repository) > 50, f"({len(repository)})")
    proof.check("generated files are in", len(generated) > 15, f"({len(generated)})")
    proof.check("every file is one commit", stage.imported_at == len(stage.inputs))
    proof.fact(f"{len(stage.inputs)} files, {size / 1e6:.1f} MB, {took / len(stage.inputs) * 1000:.2f} ms a file")  # fmt: skip


async def compare_bytes(stage: Stage) -> None:
    """What comes out is what went in, whatever its encoding, line endings or kind."""
    proof, ws = stage.proof, stage.ws
    wrong = [path for path, data in stage.inputs.items() if await ws.read_bytes(path) != data]
    proof.check("every file comes out byte for byte", not wrong, wrong[:3] or "")
    files = [file async for file in ws.walk("/")]
    known = {file.path: file for file in files}
    proof.check("the listing names exactly these files", set(known) == set(stage.inputs))
    proof.check(
        "every recorded hash is the hash of the bytes",
        all(file.sha256 == sha256(stage.inputs[file.path]) for file in files),
    )
    big = f"{GENERATED}/binary/random.bin"
    streamed = b"".join([chunk async for chunk in ws.stream(big, chunk_bytes=100_000)])
    proof.check("3 MB stream out in chunks", streamed == stage.inputs[big])
    line_ends = [f"{GENERATED}/text/{name}.txt" for name in ("crlf", "lone-cr", "mixed", "utf8-bom", "separators")]  # fmt: skip
    kept = [await ws.read_text(path) == stage.inputs[path].decode() for path in line_ends]
    proof.check("BOM and every line ending survive in text", all(kept))
    binary = [f"{GENERATED}/text/{name}.txt" for name in ("latin-1", "utf-16", "nul")]
    proof.check(
        "what is not UTF-8 text is kept as binary",
        all(known[path].content_kind == "binary" for path in binary),
    )
    rows = f"{GENERATED}/data/rows.json"
    value = json.loads(stage.inputs[rows])
    again = await ws.write("/outputs/rows.json", {"later": 1, "before": value})
    proof.check(
        "JSON is a value: imported text parses, a written value keeps its order",
        await ws.read_json(rows) == value
        and await ws.read_text(again.path)
        == json.dumps({"later": 1, "before": value}, indent=2, ensure_ascii=False) + "\n",
    )
    files = [file async for file in ws.walk("/")]
    kinds = Counter(f"{file.content_kind}/{file.storage}" for file in files)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("kind/place", "files", "bytes"):
        table.add_column(name, justify="left" if name == "kind/place" else "right")
    for kind, count in sorted(kinds.items()):
        total = sum(f.size for f in files if f"{f.content_kind}/{f.storage}" == kind)
        table.add_row(f"    {kind}", str(count), f"{total:,}")
    console.print(table)
    proof.fact(f"tree {digest(await tree_of(ws))}")


async def edit_and_look_back(stage: Stage) -> None:
    """Edits, history, differences, undo and redo."""
    proof, ws = stage.proof, stage.ws
    await ws.write(NOTES, "# Notes\n\n- first thought\n- second thought\n")
    await ws.edit(NOTES, "second thought", "better thought")
    await ws.append(NOTES, "- third thought\n")
    history = await ws.history(NOTES)
    proof.check(
        "every change is a version, newest first",
        [entry.operation for entry in history] == ["append", "edit", "write"],
        f"({', '.join(f'v{entry.version} {entry.operation}' for entry in history)})",
    )
    diff = await ws.diff(NOTES, from_version=1, to_version=3)
    proof.check("the difference of two versions", (diff.added, diff.removed) == (2, 1))
    console.print(Syntax(diff.unified, "diff", theme="ansi_dark", background_color="default"))
    before = await ws.read_bytes(NOTES, version=1)
    await ws.undo(NOTES)
    undone = await ws.undo(NOTES)
    proof.check(
        "undo twice brings back the first content, as a new version",
        await ws.read_bytes(NOTES) == before and undone.version == 5,
        f"(v{undone.version})",
    )
    await ws.redo(NOTES)
    redone = await ws.redo(NOTES)
    proof.check(
        "redo twice takes that back",
        await ws.read_bytes(NOTES) == await ws.read_bytes(NOTES, version=3),
        f"(v{redone.version})",
    )
    proof.fact(f"{redone.version} versions of one file")


async def refuse_what_is_stale(stage: Stage) -> None:
    """No update is lost: who worked on an old state is told."""
    proof, ws = stage.proof, stage.ws
    seen = await ws.stat(NOTES)
    assert seen is not None
    await ws.acting_as("agent:faster").append(NOTES, "- somebody else was faster\n")
    error = await proof.refused(
        "a write on a stale version is refused",
        ErrorCode.VERSION_CONFLICT,
        ws.write(NOTES, "my old idea", if_version=seen.version),
    )
    proof.check(
        "the refusal names who changed it last",
        error.details.get("last_actor") == "agent:faster"
        and error.details.get("current_version") == seen.version + 1,
        f"({error.details.get('last_actor')}, v{error.details.get('current_version')})",
    )
    error = await proof.refused(
        "an ambiguous edit is refused with a hint",
        ErrorCode.EDIT_AMBIGUOUS,
        ws.edit(NOTES, "thought", "idea"),
    )
    proof.check(
        "it says where the hits are", error.details.get("hits") == 3, error.details.get("lines")
    )
    await proof.refused(
        "an edit that finds nothing is refused",
        ErrorCode.EDIT_NOT_FOUND,
        ws.edit(NOTES, "- frist thought", "- first idea"),
    )
    now = await ws.stat(NOTES)
    proof.check("refusals changed nothing", now is not None and now.version == seen.version + 1)
    ten = [ws.append("/workspace/shared.log", f"line {n}\n") for n in range(20)]
    versions = sorted(file.version for file in await asyncio.gather(*ten))
    lines = (await ws.read_text("/workspace/shared.log")).splitlines()
    proof.check(
        "20 appends at once all land, as versions 1 to 20",
        versions == list(range(1, 21)) and sorted(lines) == sorted(f"line {n}" for n in range(20)),
    )


async def publish(stage: Stage) -> None:
    """An artifact stays as published while its draft goes on."""
    proof, ws = stage.proof, stage.ws
    await ws.write(REPORT, "# Report\n\nAll is well.\n")
    published = await ws.finalize(REPORT, kind="report")
    await ws.edit(REPORT, "All is well.", "All is being looked into.")
    (shown,) = await ws.artifacts(status="final")
    proof.check(
        "the artifact shows its pinned version while the draft goes on",
        (shown.version, shown.head_version) == (1, 2),
        f"(published v{shown.version}, draft v{shown.head_version})",
    )
    proof.check(
        "its URI opens the published bytes",
        await ws.resolve(published.uri) == b"# Report\n\nAll is well.\n",
    )
    console.print(Text(f"      {published.uri}", style="dim"))
    again = await ws.finalize(REPORT)
    proof.check("publishing again moves the pin", again.version == 2)
    withdrawn = await ws.withdraw(REPORT)
    proof.check(
        "withdrawing leaves a draft",
        (withdrawn.status, withdrawn.pinned_version) == ("draft", None),
    )


class ChangedMind(Exception):
    """Raised inside a transaction, to see what becomes of it."""


async def commit_together(stage: Stage) -> None:
    """Several calls are one commit, or nothing."""
    proof, ws = stage.proof, stage.ws
    before = await tree_of(ws)
    sequence = (await ws.log(limit=1))[0].sequence
    async with ws.transaction() as tx:
        for number in range(50):
            await tx.write(f"/workspace/batch/{number:02}.md", f"{number}")
        await tx.rename("/workspace/batch/00.md", "/workspace/batch/first.md")
        await tx.delete("/workspace/batch/01.md")
        proof.check("it sees its own changes", await tx.exists("/workspace/batch/first.md"))
        proof.check("nobody else does", await tree_of(ws) == before)
    (entry,) = await ws.log(limit=1)
    proof.check(
        "52 calls are one commit",
        entry.sequence == sequence + 1 and len(entry.changes) == 49,
        f"({len(entry.changes)} changes, commit {entry.sequence})",
    )
    after = await tree_of(ws)
    try:
        async with ws.transaction() as tx:
            await tx.delete("/workspace/batch", recursive=True)
            raise ChangedMind
    except ChangedMind:
        proof.check("an exception discards everything", await tree_of(ws) == after)

    async def too_late() -> None:
        async with ws.transaction() as tx:
            found = await tx.list("/workspace/batch")
            await tx.write("/workspace/count.txt", str(len(found.entries)))
            await ws.write("/workspace/batch/phantom.md", "it was not there when you looked")

    await proof.refused(
        "a transaction is refused when what it listed changed",
        ErrorCode.TRANSACTION_CONFLICT,
        too_late(),
    )
    proof.check("and nothing of it is there", not await ws.exists("/workspace/count.txt"))
    proof.fact(f"{len(entry.changes)} files in one commit")


async def follow(stage: Stage) -> None:
    """A watcher sees every change once, in order, and goes on where it stopped."""
    proof, ws = stage.proof, stage.ws
    here = await ws.cursor()
    await ws.write("/workspace/seen/a.md", "a")
    await ws.rename("/workspace/seen/a.md", "/workspace/seen/b.md")
    await ws.append("/workspace/seen/b.md", "b")
    await ws.delete("/workspace/seen/b.md")
    expected = ["create", "rename", "update", "delete"]
    async with ws.watch("/workspace/seen", recursive=True, cursor=here) as events:
        seen = [await anext(events) for _ in expected]
    proof.check(
        "from a cursor on it sees every change in order",
        [event.type for event in seen] == expected,
        f"({', '.join(event.type for event in seen)})",
    )
    async with ws.watch("/workspace/seen", recursive=True, cursor=seen[1].cursor) as events:
        rest = [await anext(events) for _ in expected[2:]]
    proof.check("resumed in the middle it sees exactly the rest", rest == seen[2:])
    async with ws.watch("/outputs/live", recursive=True, poll_interval_ms=50) as events:
        start = time.perf_counter()
        await ws.write("/outputs/live/here.md", "from this process")
        first = await anext(events)
        near = time.perf_counter() - start
        await asyncio.to_thread(_command, stage, "write", "/outputs/live/there.md", "hello")
        second = await anext(events)
    proof.check("a change of this process wakes it", first.path == "/outputs/live/here.md")
    proof.check("so does one of another process", second.path == "/outputs/live/there.md")
    proof.fact(f"{near * 1000:.1f} ms from a call to its event")


async def respect_limits(stage: Stage) -> None:
    """A quota refuses what would exceed it, and nothing else."""
    proof = stage.proof
    limits = Limits(max_namespace_bytes=10_000, max_file_bytes=8_000)
    ws = workspace(id="demo", namespace="small", storage=stage.storage, limits=limits)
    await ws.write("/workspace/a.txt", "a" * 6_000)
    await proof.refused(
        "a write beyond the namespace's quota is refused",
        ErrorCode.QUOTA_EXCEEDED,
        ws.write("/workspace/b.txt", "b" * 5_000),
    )
    await proof.refused(
        "a file beyond the file limit is refused",
        ErrorCode.FILE_TOO_LARGE,
        ws.write("/workspace/c.txt", "c" * 9_000),
    )
    await ws.write("/workspace/a.txt", "a" * 2_000)
    await ws.write("/workspace/b.txt", "b" * 5_000)
    usage = await ws.usage()
    proof.check(
        "usage counts live bytes exactly",
        (usage.live_bytes, usage.live_files) == (7_000, 2),
        f"({usage.live_bytes:,} of {usage.max_namespace_bytes:,} bytes, {usage.live_files} files)",
    )
    names = (await stage.ws.namespaces()).names
    proof.check("namespaces are apart", names == ["demo", "small"], f"({', '.join(names)})")
    await ws.aclose()


async def move_and_bring_back(stage: Stage) -> None:
    """A directory moves in one commit, and one commit takes all of it back."""
    proof, ws = stage.proof, stage.ws
    before = await tree_of(ws)
    below = [path for path in before if path.startswith(f"{REPOSITORY}/crux_workspace/")]
    sequence = (await ws.log(limit=1))[0].sequence
    await ws.move(f"{REPOSITORY}/crux_workspace", "/outputs/library")
    (moved,) = await ws.log(limit=1)
    proof.check(
        "a whole directory moves in one commit",
        moved.sequence == sequence + 1 and len(moved.changes) == len(below),
        f"({len(below)} files, commit {moved.sequence})",
    )
    one = f"/outputs/library/{below[0].removeprefix(f'{REPOSITORY}/crux_workspace/')}"
    proof.check("a file's history moves along", len(await ws.history(one)) == 1)
    undone = await ws.undo_commit(moved)
    proof.check(
        "undo_commit reverses all of it in one commit",
        await tree_of(ws) == before and undone.sequence == moved.sequence + 1,
        f"(commit {undone.sequence})",
    )
    victim = below[1]
    await ws.delete(victim)
    proof.check("a deleted file is gone", not await ws.exists(victim))
    restored = await ws.undo(victim)
    proof.check(
        "undo brings a deleted file back",
        await ws.read_bytes(victim) == stage.inputs[victim],
        f"(v{restored.version})",
    )
    await ws.rename(NOTES, "/workspace/renamed notes.md")
    moved_notes = await ws.history("/workspace/renamed notes.md")
    proof.check("history follows a rename", len(moved_notes) >= 8, f"({len(moved_notes)} versions)")
    proof.fact(f"{len(below)} files moved and back, 2 commits")


async def look_at_the_past(stage: Stage) -> None:
    """The tree as it was after any commit."""
    proof, ws = stage.proof, stage.ws
    await ws.delete(REPOSITORY, recursive=True)
    view = ws.at(stage.imported_at)
    past = await tree_of(view)
    proof.check("everything under the repository is deleted", not await ws.is_dir(REPOSITORY))
    proof.check(
        "the tree as of the import is still there, all hashes right",
        past == {path: sha256(data) for path, data in stage.inputs.items()},
        f"(commit {stage.imported_at}, tree {digest(past)})",
    )
    chosen = [path for path in stage.inputs if path.startswith(REPOSITORY)][::10]
    proof.check(
        "its files can be read",
        all([await view.read_bytes(path) == stage.inputs[path] for path in chosen]),
        f"({len(chosen)} files)",
    )
    proof.check("before the first commit there was nothing", not await tree_of(ws.at(0)))
    await ws.undo_commit((await ws.log(limit=1))[0])
    live = await tree_of(ws)
    proof.check(
        "one commit brings the whole folder back",
        all(live[path] == sha256(stage.inputs[path]) for path in stage.inputs),
    )
    proof.fact(f"{len(past)} files as of commit {stage.imported_at}")


async def search(stage: Stage) -> None:
    """Search finds what a scan of the input finds."""
    proof, ws = stage.proof, stage.ws
    needle = "async def "
    expected = sum(
        text.count(needle)
        for path, data in stage.inputs.items()
        if path.startswith(REPOSITORY) and (text := as_text(data)) is not None
    )
    start = time.perf_counter()
    found = await ws.grep(needle, path=REPOSITORY, max_results=100_000)
    took = time.perf_counter() - start
    proof.check(
        "a literal search finds every occurrence",
        len(found.matches) == expected and not found.truncated,
        f"({expected:,})",
    )
    regex = await ws.grep(r"^class \w+Error\(", path=f"{REPOSITORY}/**/*.py", regex=True)
    proof.check("an expression within a glob", len(regex.matches) > 10, f"({len(regex.matches)})")
    for match in regex.matches[:3]:
        where = f"{match.path.removeprefix(REPOSITORY)}:{match.line}:{match.column}"
        console.print(Text(f"      {where}  ", style="dim") + Text(match.text))
    few = await ws.grep(needle, path=REPOSITORY, max_results=5)
    proof.check("a bounded search says that there is more", len(few.matches) == 5 and few.truncated)
    proof.fact(f"{expected:,} hits in {took * 1000:.0f} ms")


async def read_the_log(stage: Stage) -> None:
    """Every change is in the log, numbered without gaps."""
    proof, ws = stage.proof, stage.ws
    entries = []
    cursor = None
    while page := await ws.log(limit=200, cursor=cursor):
        entries += page
        cursor = page[-1].cursor
    sequences = [entry.sequence for entry in entries]
    proof.check(
        "commits are numbered without gaps, newest first",
        sequences == list(range(len(entries), 0, -1)),
        f"({len(entries)})",
    )
    proof.check(
        "times never go backwards",
        all(new.at >= old.at for new, old in pairwise(entries)),
    )
    proof.check("it says who acted", any(entry.actor == "agent:faster" for entry in entries))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("    commit", "verb", "changes", "first path"):
        table.add_column(name)
    for entry in entries[:6]:
        first = entry.changes[0].path if entry.changes else ""
        table.add_row(f"    {entry.sequence}", entry.verb, str(len(entry.changes)), first)
    console.print(table)
    proof.fact(f"{len(entries)} commits")


async def ask_another_process(stage: Stage) -> None:
    """A second process reads the same file while this one has it open."""
    proof = stage.proof
    path = f"{GENERATED}/binary/random.bin"
    start = time.perf_counter()
    out = await asyncio.to_thread(_command, stage, "cat", path)
    took = time.perf_counter() - start
    proof.check("crux-workspace cat gives the same 3 MB", out == stage.inputs[path])
    listed = json.loads(await asyncio.to_thread(_command, stage, "--json", "ls", "-R", GENERATED))
    names = {entry["path"] for entry in listed["entries"]}
    proof.check(
        "crux-workspace ls lists the same files",
        names == {name for name in stage.inputs if name.startswith(GENERATED)},
        f"({len(names)})",
    )
    await asyncio.to_thread(_command, stage, "write", "/workspace/from-outside.txt", "hello")
    proof.check(
        "what the other process writes is seen here",
        await stage.ws.read_text("/workspace/from-outside.txt") == "hello",
    )
    proof.fact(f"{took * 1000:.0f} ms for a process to start and read")


def _command(stage: Stage, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run the command line in a process of its own."""
    ran = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "crux_workspace.cli", *arguments],
        env=_environment(stage),
        input=stdin,
        capture_output=True,
        check=True,
        timeout=60,
    )
    return ran.stdout


def _environment(stage: Stage) -> dict[str, str]:
    return {
        **os.environ,
        "CRUX_WORKSPACE_URL": f"sqlite:///{stage.database}",
        "CRUX_WORKSPACE_ID": "demo",
        "CRUX_WORKSPACE_NAMESPACE": "demo",
        "PYTHONPATH": str(ROOT),
    }


async def let_writers_meet(stage: Stage) -> None:
    """Two handles on one file, as two processes have them: nothing of the other's is lost, nothing half done is seen."""
    proof, ws = stage.proof, stage.ws
    async with open_storage(f"sqlite:///{stage.database}") as storage:
        other = workspace(id="demo", namespace="demo", storage=storage).acting_as("agent:other")
        await _show_both_or_neither(proof, ws, other)
        await _meet_at_one_file(proof, ws, other)
        await _count_together(proof, ws, other)
        await _stay_on_call(proof, ws, other)
        await other.aclose()
    await _run_scripts(stage)


async def _show_both_or_neither(proof: Proof, ws: Workspace, other: Workspace) -> None:
    await ws.write(STOCK, {"apples": 10})
    order = "/workspace/shop/order.json"
    async with ws.transaction() as tx:
        await tx.write(STOCK, {"apples": 7})
        await tx.write(order, {"apples": 3})
        before = (await other.read_json(STOCK), await other.exists(order))
    after = (await other.read_json(STOCK), await other.exists(order))
    proof.check("before the commit others see neither change", before == ({"apples": 10}, False))
    proof.check("after it they see both", after == ({"apples": 7}, True))


async def _meet_at_one_file(proof: Proof, ws: Workspace, other: Workspace) -> None:
    async def second() -> None:
        async with ws.transaction() as tx:
            await tx.write(STOCK, {"apples": 0, "was": await tx.read_json(STOCK)})
            await tx.write("/workspace/shop/sold-out.md", "come again")
            await other.write(STOCK, {"apples": 6})

    error = await proof.refused(
        "of two writers of one file the second is refused",
        ErrorCode.TRANSACTION_CONFLICT,
        second(),
    )
    (conflict,) = error.details.get("conflicts", [{}])
    proof.check(
        "it is told which file, which versions and who",
        (conflict.get("path"), conflict.get("last_actor")) == (STOCK, "agent:other")
        and conflict.get("current_version") == conflict.get("base_version") + 1,
        f"({conflict.get('path')}, v{conflict.get('base_version')} is now v{conflict.get('current_version')})",
    )
    proof.check(
        "nothing of the loser is there",
        await ws.read_json(STOCK) == {"apples": 6}
        and not await ws.exists("/workspace/shop/sold-out.md"),
    )
    tries = 0

    async def take_one(tx: Transaction) -> int:
        nonlocal tries
        tries += 1
        apples = await _apples(tx)
        if tries == 1:
            await other.write(STOCK, {"apples": 5})
        await tx.write(STOCK, {"apples": apples - 1})
        return apples - 1

    left = await ws.transaction(take_one, max_attempts=3)
    proof.check(
        "with a callback it is run again on what is there now",
        (tries, left, await _apples(ws)) == (2, 4, 4),
        f"({tries} tries, 5 - 1 = {left})",
    )


async def _apples(reader: Workspace | Transaction) -> int:
    value = await reader.read_json(STOCK)
    assert isinstance(value, dict)
    assert isinstance(value["apples"], int)
    return value["apples"]


async def _count_together(proof: Proof, ws: Workspace, other: Workspace) -> None:
    await ws.write(STOCK, {"apples": 0})
    first = (await ws.log(limit=1))[0].sequence
    tries = 0

    async def add_one(tx: Transaction) -> None:
        nonlocal tries
        tries += 1
        await tx.write(STOCK, {"apples": await _apples(tx) + 1})
        await tx.append("/workspace/shop/journal.txt", "one more\n")

    writers = [each.transaction(add_one, max_attempts=100) for each in (ws, other) * 10]
    await asyncio.gather(*writers)
    lines = (await ws.read_text("/workspace/shop/journal.txt")).splitlines()
    proof.check(
        "20 transactions at once add 20, in both files",
        (await _apples(ws), len(lines)) == (20, 20),
    )
    proof.check("each is one commit", (await ws.log(limit=1))[0].sequence == first + 20)
    proof.fact(f"{tries} tries for 20 commits to one file")


async def _stay_on_call(proof: Proof, ws: Workspace, other: Workspace) -> None:
    """Write skew: two changes that are right alone and wrong together, to different files."""
    people = {name: f"/workspace/on-call/{name}" for name in ("ada", "bob")}
    for path in people.values():
        await ws.write(path, "")

    async def leave(who: str, handle: Workspace, meanwhile: Awaitable[object] | None) -> None:
        async with handle.transaction() as tx:
            if len((await tx.list("/workspace/on-call")).entries) > 1:
                await tx.delete(people[who])
            if meanwhile is not None:
                await meanwhile

    await proof.refused(
        "two that each leave because the other stays: the second is refused",
        ErrorCode.TRANSACTION_CONFLICT,
        leave("ada", ws, leave("bob", other, None)),
    )
    left = [entry.path for entry in await ws.list("/workspace/on-call")]
    proof.check("somebody is still there", left == [people["ada"]], f"({left[0]})")


async def _run_scripts(stage: Stage) -> None:
    proof, ws = stage.proof, stage.ws
    before = (await ws.log(limit=1))[0].sequence
    script = [
        {"op": "write", "path": f"/workspace/script/{number}.md", "content": f"{number}\n"}
        for number in range(20)
    ]
    wrong = {"op": "edit", "path": "/workspace/script/0.md", "find": "1", "replace": "2"}
    try:
        await asyncio.to_thread(_command, stage, "tx", stdin=_json_lines([*script, wrong]))
        code, told = 0, ""
    except subprocess.CalledProcessError as failed:
        code, told = failed.returncode, failed.stderr.decode().splitlines()[0]
    proof.check(
        "crux-workspace tx applies nothing when its last line is refused",
        code == 1
        and told.startswith("error EDIT_NOT_FOUND: Line 21 ")
        and (await ws.log(limit=1))[0].sequence == before,
    )
    console.print(Text(f"      {told}", style="yellow"))
    await asyncio.to_thread(_command, stage, "tx", stdin=_json_lines(script))
    (entry,) = await ws.log(limit=1)
    proof.check(
        "without that line it is one commit",
        (entry.sequence, len(entry.changes)) == (before + 1, 20),
    )


def _json_lines(values: list[dict[str, str]]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


async def kill_the_follower(stage: Stage) -> None:
    """A process follows the feed into a file; it is killed again and again, and every event is there once."""
    proof, ws = stage.proof, stage.ws
    feed, place = stage.folder / "feed.jsonl", stage.folder / "feed.cursor"
    feed.touch()
    before = (await ws.log(limit=1))[0].sequence
    start = ["--cursor", await ws.cursor()]
    rounds, commits, files = 4, 40, 4
    killed: list[tuple[int, int]] = []
    for number in range(rounds):
        follower = _follow_into(stage, feed, place, *start)
        writing = asyncio.create_task(_write_rounds(ws, number, commits, files))
        grown = len(_whole_lines(feed)) + 11 * (number + 1)
        await _until(lambda grown=grown: len(_whole_lines(feed)) >= grown)  # type: ignore[misc]
        follower.kill()
        killed.append((await asyncio.to_thread(follower.wait), len(_whole_lines(feed))))
        await writing
    proof.check(
        f"the follower was killed {rounds} times while others wrote",
        all(code == -signal.SIGKILL for code, _ in killed),
        f"(after {', '.join(str(lines) for _, lines in killed)} lines)",
    )
    follower = _follow_into(stage, feed, place)
    end = (await ws.cursor()).encode()
    await _until(lambda: end in place.read_bytes())
    follower.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(follower.wait)
    proof.check("asked to end, it ends and keeps its place", code == 128 + signal.SIGTERM)
    events = [json.loads(line) for line in _whole_lines(feed)]
    seen = [(event["sequence"], event["type"], event["path"]) for event in events]
    expected = [
        (entry.sequence, change.type, change.path)
        for entry in reversed(await ws.log(limit=rounds * commits))
        for change in entry.changes
    ]
    proof.check(
        "its file has every event exactly once, in order",
        seen == expected and expected[0][0] == before + 1,
        f"({len(seen)} events of {rounds * commits} commits)",
    )
    proof.check("no two lines have one cursor", len({e["cursor"] for e in events}) == len(events))
    proof.fact(f"{len(seen)} events, {rounds} kills, 0 lost, 0 twice")


def _follow_into(stage: Stage, feed: Path, place: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = ["watch", "--json", "--cursor-file", str(place), "--poll-interval-ms", "20"]
    with feed.open("ab") as out:
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "crux_workspace.cli", *command, *arguments],
            env=_environment(stage),
            stdout=out,
        )


async def _write_rounds(ws: Workspace, number: int, commits: int, files: int) -> None:
    for each in range(commits):
        async with ws.transaction() as tx:
            for file in range(files):
                await tx.write(f"/workspace/feed/{file}.md", f"round {number}, commit {each}\n")
        await asyncio.sleep(0.03)


async def _until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not happened():  # noqa: ASYNC110 - another process makes it happen
            await asyncio.sleep(0.005)


def _whole_lines(feed: Path) -> list[bytes]:
    return [line for line in feed.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


async def close_and_inspect(stage: Stage) -> None:
    """After closing, the file is sound and everything is still in it."""
    proof = stage.proof
    live = await tree_of(stage.ws)
    await stage.ws.aclose()
    await stage.storage.aclose()
    with sqlite3.connect(stage.database) as connection:
        (answer,) = connection.execute("pragma integrity_check").fetchone()
    connection.close()
    proof.check("SQLite's integrity check finds nothing", answer == "ok", f"({answer})")
    async with open_storage(f"sqlite:///{stage.database}") as storage:
        ws = workspace(id="demo", namespace="demo", storage=storage)
        proof.check("reopened, the tree is the same", await tree_of(ws) == live)
        everything = [await ws.read_bytes(path) == data for path, data in stage.inputs.items()]
        proof.check("every imported byte is still there", all(everything))
        await ws.aclose()
    size = sum(path.stat().st_size for path in stage.folder.rglob("*") if path.is_file())
    proof.fact(f"{size / 1e6:.1f} MB on disk")


PARTS: tuple[tuple[str, Callable[[Stage], Awaitable[None]]], ...] = (
    ("Import", import_everything),
    ("Byte for byte", compare_bytes),
    ("Edits, history, undo", edit_and_look_back),
    ("Conflicts", refuse_what_is_stale),
    ("Artifacts", publish),
    ("Transactions", commit_together),
    ("Watching", follow),
    ("Limits", respect_limits),
    ("Moving and deleting", move_and_bring_back),
    ("The past", look_at_the_past),
    ("Search", search),
    ("The log", read_the_log),
    ("Another process", ask_another_process),
    ("Several writers", let_writers_meet),
    ("A follower that is killed", kill_the_follower),
    ("The file itself", close_and_inspect),
)
"""The parts in order; each uses what the ones before left."""


async def demonstrate(folder: Path) -> int:
    """Run every part; return how many checks failed."""
    proof = Proof()
    storage = await open_storage(f"sqlite:///{folder / 'demo.db'}")
    runtime = local_runtime()
    ws = workspace(id="demo", namespace="demo", storage=storage, runtime=runtime)
    stage = Stage(proof, folder, storage, ws)
    for title, part in PARTS:
        proof.begin(title)
        start = time.perf_counter()
        try:
            async with asyncio.timeout(120):
                await part(stage)
        except Exception:
            trace = io.StringIO()
            traceback.print_exc(file=trace)
            proof.check("the part ran to its end", False, trace.getvalue())
        proof.sections[-1].seconds = time.perf_counter() - start
    await ws.aclose()
    await runtime.aclose()
    await storage.aclose()
    proof.summary()
    return proof.failures


def main() -> int:
    """Run the demonstration in a temporary folder."""
    console.print(
        Panel.fit(
            "crux_workspace: a versioned file workspace on one SQLite file.\n"
            "Each line below is checked while it is printed.",
            border_style="blue",
        )
    )
    with tempfile.TemporaryDirectory(prefix="crux-demo-") as folder:
        failures = asyncio.run(demonstrate(Path(folder)))
    if failures:
        console.print(Text(f"{failures} checks failed.", style="bold red"))
        return 1
    console.print(Text("Every check passed.", style="bold green"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
