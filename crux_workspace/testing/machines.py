"""Rule-based machines that drive a real workspace and the oracle side by side.

After each step the machine compares the result or the refusal, the log, the tree with all attributes, contents, histories,
artifacts and usage counted from scratch, and trees of the past. Subclass `WorkspaceMachine` with another `open_storage` to run it
on your own store.
"""

# ruff: noqa: D102 - the rules are named for what they do

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crux_workspace import ContentOptions, Limits, Retention, Versioning, workspace
from crux_workspace.errors import ErrorCode, VersionNotFoundError, WorkspaceError
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.storage import memory_storage
from crux_workspace.testing import strategies as make
from crux_workspace.testing.doubles import FixedClock
from crux_workspace.testing.model import (
    ModelChange,
    ModelCommit,
    ModelEdit,
    ModelFile,
    ModelLive,
    ModelTree,
    ModelVersion,
    ModelWorkspace,
)

if TYPE_CHECKING:
    from crux_workspace import Workspace
    from crux_workspace.storage import Storage

__all__ = ["WorkspaceMachine"]

T = TypeVar("T")
IF_VERSION = st.sampled_from([None, None, None, None, "current", "absent", "stale"])
STATUS = st.sampled_from([None, None, None, None, "draft", "final"])
KIND = st.sampled_from([None, None, None, "report"])
METADATA = st.sampled_from([None, None, {"n": 1}])
MIME = st.sampled_from([None, None, None, "text/x-odd"])


class WorkspaceMachine(RuleBasedStateMachine):
    """One namespace, several handles, one oracle.

    Attributes:
        ttl_ms: Time to live of the workspaces; with one, time passes and sweeps run.
        max_versions: Versions that each file keeps.
        has_limits: Whether limits are drawn.
        handles: Workspace objects over the one storage; each step takes any.
    """

    ttl_ms: ClassVar[int | None] = None
    max_versions: ClassVar[int | None] = None
    has_limits: ClassVar[bool] = False
    handles: ClassVar[int] = 1

    async def open_storage(self) -> Storage:
        """Return the storage to run on; a fresh one each time."""
        return memory_storage()

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = FixedClock()
        self.real_ids: dict[int, str] = {}
        self.looked_at: set[str] = set()
        self.serial = 0
        self.compared_log = 0

    @initialize(limits=make.limits())
    def open(self, limits: Limits) -> None:
        chosen = limits if self.has_limits else Limits()
        self.storage = self.run(self.open_storage())
        self.model = ModelWorkspace(
            clock=self.clock, limits=chosen, ttl_ms=self.ttl_ms, max_versions=self.max_versions
        )
        self.opened = [
            workspace(
                id="machine",
                namespace="n:1",
                storage=self.storage,
                clock=self.clock,
                limits=chosen,
                retention=Retention(ttl_ms=self.ttl_ms),
                versioning=Versioning(max_versions=self.max_versions),
                content=ContentOptions(inline_text_below_bytes=make.INLINE_BYTES),
            )
            for _ in range(self.handles)
        ]

    def teardown(self) -> None:
        try:
            if hasattr(self, "opened"):
                self.look_at_all_of_the_past()
        finally:
            self.run(self.close())
            self.runner.close()

    async def close(self) -> None:
        for handle in getattr(self, "opened", []):
            await handle.aclose()
        if hasattr(self, "storage"):
            await self.storage.aclose()

    # Running both

    @property
    def ws(self) -> Workspace:
        """The next handle in turn."""
        self.serial += 1
        return self.opened[self.serial % len(self.opened)]

    def run(self, call: Awaitable[T]) -> T:
        async def once() -> T:
            return await call

        return self.runner.run(once())

    def both(
        self, expected: Callable[[], Any], call: Callable[[Workspace], Awaitable[T]]
    ) -> T | None:
        """Run a verb on both sides; both do it, or both refuse for one reason."""
        refusal: WorkspaceError | None = None
        try:
            expected()
        except WorkspaceError as error:
            refusal = error
        try:
            result = self.run(call(self.ws))
        except WorkspaceError as error:
            require_same(refusal, error)
            return None
        assert refusal is None, f"went through, expected {refusal.code}: {result!r}"
        return result

    def version_of(self, path: str, which: str | None) -> int | None:
        """Return a value for `if_version`."""
        if which is None:
            return None
        live = self.model.tree.stat(path)
        current = live.version if live else 0
        return {"current": current, "absent": 0, "stale": current + 1}[which]

    def look(self, *paths: str) -> None:
        self.looked_at |= set(paths)

    # Rules

    @rule(
        path=make.colliding_paths(),
        content=make.contents(),
        status=STATUS,
        kind=KIND,
        metadata=METADATA,
        mime_type=MIME,
        which=IF_VERSION,
    )
    def write(
        self,
        path: str,
        content: Any,  # noqa: ANN401 - anything writable
        status: str | None,
        kind: str | None,
        metadata: dict[str, Any] | None,
        mime_type: str | None,
        which: str | None,
    ) -> None:
        name = nfc(path)
        options: dict[str, Any] = {
            "status": status,
            "kind": kind,
            "metadata": metadata,
            "mime_type": mime_type,
            "if_version": self.version_of(name, which),
        }
        self.both(
            lambda: self.model.write(name, content, **options),
            lambda ws: ws.write(path, content, **options),
        )
        self.look(name)

    @rule(path=make.colliding_paths(), changes=make.edits(), which=IF_VERSION)
    def edit(self, path: str, changes: list[ModelEdit], which: str | None) -> None:
        from crux_workspace import Edit

        name = nfc(path)
        if_version = self.version_of(name, which)
        steps = [
            Edit(
                find=step.find,
                replace=step.replace,
                occurrence=step.occurrence,
                replace_all=step.replace_all,
            )
            for step in changes
        ]
        self.both(
            lambda: self.model.edit(name, changes, if_version=if_version),
            lambda ws: ws.edit(path, edits=steps, if_version=if_version),
        )
        self.look(name)

    @rule(path=make.colliding_paths(), text=make.texts().filter(bool), which=IF_VERSION)
    def append(self, path: str, text: str, which: str | None) -> None:
        name = nfc(path)
        if_version = self.version_of(name, which)
        self.both(
            lambda: self.model.append(name, text, if_version=if_version),
            lambda ws: ws.append(path, text, if_version=if_version),
        )
        self.look(name)

    @rule(path=make.colliding_paths(), status=STATUS, kind=KIND)
    def set(self, path: str, status: str | None, kind: str | None) -> None:
        name = nfc(path)
        self.serial += 1
        options: dict[str, Any] = {"metadata": {"serial": self.serial}}
        options |= {"status": status} if status else {}
        options |= {"kind": kind} if kind else {}
        self.both(
            lambda: self.model.set_attributes(name, **options),
            lambda ws: ws.set(path, **options),
        )
        self.look(name)

    @rule(path=make.colliding_paths(), back=st.integers(0, 3), kind=KIND)
    def finalize(self, path: str, back: int, kind: str | None) -> None:
        name = nfc(path)
        live = self.model.tree.stat(name)
        number = max(live.version - back, 1) if live and back else None
        if live and live.pin == (number or live.version):
            return
        self.both(
            lambda: self.model.finalize(name, version=number, kind=kind),
            lambda ws: ws.finalize(path, version=number, kind=kind),
        )
        self.look(name)

    @rule(path=make.colliding_paths())
    def withdraw(self, path: str) -> None:
        self.both(lambda: self.model.withdraw(nfc(path)), lambda ws: ws.withdraw(path))
        self.look(nfc(path))

    @rule(
        src=make.colliding_paths(),
        dst=make.colliding_paths(),
        overwrite=st.booleans(),
        is_move=st.booleans(),
        which=IF_VERSION,
    )
    def rename(self, src: str, dst: str, overwrite: bool, is_move: bool, which: str | None) -> None:
        old, new = nfc(src), nfc(dst)
        options: dict[str, Any] = {
            "overwrite": overwrite,
            "if_version": self.version_of(old, which),
        }
        verb = "move" if is_move else "rename"
        self.both(
            lambda: self.model.rename(old, new, **options, verb=verb),
            lambda ws: getattr(ws, verb)(src, dst, **options),
        )
        self.look(old, new)

    @rule(
        src=make.colliding_directories(),
        dst=make.colliding_directories(),
        is_copy=st.booleans(),
        overwrite=st.booleans(),
    )
    def take_a_directory_elsewhere(
        self, src: str, dst: str, is_copy: bool, overwrite: bool
    ) -> None:
        if is_copy and dst.startswith(src + "/"):
            return
        if is_copy:
            self.both(
                lambda: self.model.copy(src, dst, overwrite=overwrite),
                lambda ws: ws.copy(src, dst, overwrite=overwrite),
            )
        else:
            self.both(
                lambda: self.model.rename(src, dst, overwrite=overwrite),
                lambda ws: ws.rename(src, dst, overwrite=overwrite),
            )

    @rule(
        src=make.colliding_paths(),
        dst=make.colliding_paths(),
        overwrite=st.booleans(),
        which=IF_VERSION,
    )
    def copy(self, src: str, dst: str, overwrite: bool, which: str | None) -> None:
        old, new = nfc(src), nfc(dst)
        options: dict[str, Any] = {
            "overwrite": overwrite,
            "if_version": self.version_of(new, which),
        }
        self.both(
            lambda: self.model.copy(old, new, **options), lambda ws: ws.copy(src, dst, **options)
        )
        self.look(old, new)

    @rule(path=make.colliding_paths(), recursive=st.booleans(), which=IF_VERSION)
    def delete(self, path: str, recursive: bool, which: str | None) -> None:
        name = nfc(path)
        options: dict[str, Any] = {
            "recursive": recursive,
            "if_version": self.version_of(name, which),
        }
        self.both(lambda: self.model.delete(name, **options), lambda ws: ws.delete(path, **options))
        self.look(name)

    @rule(path=make.colliding_directories())
    def delete_a_directory(self, path: str) -> None:
        self.both(
            lambda: self.model.delete(path, recursive=True),
            lambda ws: ws.delete(path, recursive=True),
        )

    @precondition(lambda self: self.model.files)
    @rule(path=make.colliding_paths())
    def purge(self, path: str) -> None:
        name = nfc(path)
        if self.model.tree.is_dir(name) and name not in self.model.live:
            return
        self.both(lambda: self.model.purge(name), lambda ws: ws.delete(path, purge=True))
        self.follow()
        self.look(name)

    @rule(path=make.colliding_paths(), back=st.sampled_from([0, 0, 0, 1, 2]), which=IF_VERSION)
    def undo(self, path: str, back: int, which: str | None) -> None:
        name = nfc(path)
        file = self.model.file_at(name)
        to_version = max(file.last - back, 1) if file and back else None
        if file and (to_version == file.last or not (back or file.undo_known)):
            return
        options: dict[str, Any] = {
            "to_version": to_version,
            "if_version": self.version_of(name, which),
        }
        self.both(lambda: self.model.undo(name, **options), lambda ws: ws.undo(path, **options))
        self.look(name)

    @rule(path=make.colliding_paths(), which=IF_VERSION)
    def redo(self, path: str, which: str | None) -> None:
        name = nfc(path)
        file = self.model.file_at(name)
        if file and not (file.redo_known and file.undo_known):
            return
        if_version = self.version_of(name, which)
        self.both(
            lambda: self.model.redo(name, if_version=if_version),
            lambda ws: ws.redo(path, if_version=if_version),
        )
        self.look(name)

    @precondition(lambda self: self.ttl_ms is None and self.model.commits)
    @rule(back=st.integers(0, 4))
    def undo_commit(self, back: int) -> None:
        known = sorted(self.model.commits)
        sequence = known[max(len(known) - 1 - back, 0)]
        entry = self.entry(sequence)
        if not entry.changes or not self.model.commits[sequence].changes:
            return
        self.both(lambda: self.model.undo_commit(sequence), lambda ws: ws.undo_commit(entry.commit))
        for change in self.model.commits[sequence].changes:
            self.look(change.path, change.from_path or change.path)

    @rule(ms=st.integers(0, 700))
    def let_time_pass(self, ms: int) -> None:
        self.clock.advance(ms)

    @rule()
    def collect(self) -> None:
        self.model.expire()
        self.run(self.ws.gc(dry_run=False))
        self.model.unswept.clear()
        self.follow()

    @rule(path=make.colliding_paths(), back=st.integers(0, 5))
    def read_a_version(self, path: str, back: int) -> None:
        name = nfc(path)
        file = self.model.file_at(name)
        if file is None or (file.number in self.model.unswept):
            return
        number = max(file.last - back, 1)
        content = self.both(
            lambda: self.model.read(name, number), lambda ws: ws.read(path, version=number)
        )
        if content is not None:
            self.compare_content(self.model.read(name, number), content)

    @rule(needle=make.needles().filter(lambda text: "\n" not in text))
    def grep(self, needle: str) -> None:
        result = self.run(self.ws.grep(needle, max_results=1000))
        found = [(m.path, m.line, m.column, m.text) for m in result.matches]
        assert found == self.model.tree.grep(needle)

    @precondition(lambda self: self.model.sequence > 0)
    @rule(data=st.data())
    def look_at_the_past(self, data: st.DataObject) -> None:
        self.compare_past(data.draw(st.integers(0, self.model.sequence), label="sequence"))

    # Comparing

    def entry(self, sequence: int) -> Any:  # noqa: ANN401 - a CommitEntry
        limit = self.model.sequence - sequence + 1
        entries = self.run(self.ws.log(limit=limit))
        (found,) = [entry for entry in entries if entry.sequence == sequence]
        return found

    def follow(self) -> None:
        entries = self.run(self.ws.log(limit=1))
        self.model.follow(entries[0].sequence if entries else 0)

    @invariant()
    def the_log_is_the_same(self) -> None:
        if not hasattr(self, "opened"):
            return
        entries = self.run(self.ws.log(limit=3))
        newest = entries[0].sequence if entries else 0
        assert newest == self.model.sequence, f"tip {newest}, expected {self.model.sequence}"
        for entry in entries:
            if entry.sequence > self.compared_log and entry.sequence in self.model.commits:
                self.compare_commit(self.model.commits[entry.sequence], entry)
        self.compared_log = newest

    @invariant()
    def the_tree_is_the_same(self) -> None:
        if not hasattr(self, "opened"):
            return
        tree = self.model.tree
        page = self.run(self.ws.list(recursive=True))
        assert page.cursor is None
        assert [entry.path for entry in page] == tree.paths()
        for entry in page:
            assert isinstance(entry, WorkspaceFile)
            self.compare_file(tree, entry)
        for path in sorted(self.looked_at):
            self.compare_path(tree, path)
        self.looked_at.clear()

    @invariant()
    def usage_is_the_same(self) -> None:
        if not hasattr(self, "opened"):
            return
        real, expected = self.run(self.ws.usage()), self.model.usage()
        assert (real.live_bytes, real.live_files) == (expected.live_bytes, expected.live_files)
        if not self.model.unswept:
            assert real == expected

    @invariant()
    def artifacts_are_the_same(self) -> None:
        if not hasattr(self, "opened"):
            return
        tree = self.model.tree
        real = self.run(self.ws.artifacts())
        assert [artifact.path for artifact in real] == [path for path, _, _ in tree.artifacts()]
        for artifact, (path, live, shown) in zip(real, tree.artifacts(), strict=True):
            assert shown is not None
            assert artifact.status == (live.shown_status or "draft"), path
            assert artifact.kind == live.artifact_kind
            assert (artifact.version, artifact.head_version) == (shown.number, live.version)
            assert (artifact.size, artifact.sha256) == (shown.size, shown.sha256)
            assert artifact.mime_type == shown.mime_type
            assert self.run(self.ws.resolve(artifact.uri)) == shown.data

    def compare_commit(self, expected: ModelCommit, entry: Any) -> None:  # noqa: ANN401
        is_redacted = any(self.model.files[change.file].purged for change in expected.changes)
        if is_redacted or expected.verb == "purge":
            return
        assert (entry.verb, entry.at) == (expected.verb, expected.at)
        deleted = {change.path for change in expected.changes if change.type == "delete"}
        # A commit that meets a file which has expired says so first.
        changes = [
            change
            for change in entry.changes
            if not (self.ttl_ms and change.type == "delete" and change.path not in deleted)
        ]
        for change in changes:
            self.learn(expected, change)
        assert [self.changed(change) for change in expected.changes] == [
            (
                change.type,
                change.path,
                change.from_path,
                change.file_id,
                change.replaced,
                change.version,
                change.previous_version,
                change.attributes,
            )
            for change in changes
        ]

    def learn(self, expected: ModelCommit, change: Any) -> None:  # noqa: ANN401
        """Learn the identity of files that the log names first."""
        for known in expected.changes:
            if (known.path, known.type) == (change.path, change.type):
                self.same_file(known.file, change.file_id)

    def changed(self, change: ModelChange) -> tuple[object, ...]:
        return (
            change.type,
            change.path,
            change.from_path,
            self.real_ids.get(change.file),
            None if change.replaced is None else self.real_ids.get(change.replaced),
            change.version,
            change.previous_version,
            change.attributes,
        )

    def same_file(self, number: int, real: str) -> None:
        known = self.real_ids.setdefault(number, real)
        assert known == real, f"file {number} is {known}, not {real}"
        twins = [other for other, name in self.real_ids.items() if name == real]
        assert twins == [number], f"files {twins} are one"

    def compare_file(self, tree: ModelTree, entry: WorkspaceFile, *, is_past: bool = False) -> None:
        live = tree.live[entry.path]
        version = tree.version(live)
        self.same_file(live.file, entry.id)
        expected: dict[str, Any] = {
            "version": live.version,
            "content_kind": version.kind,
            "size": version.size,
            "sha256": version.sha256,
            "mime_type": live.mime_type,
            "metadata": live.metadata,
            "status": live.shown_status,
            "artifact_kind": live.artifact_kind,
            "pinned_version": live.pin,
            "created_at": live.created_at,
            "updated_at": live.updated_at,
            "sequence": live.sequence,
            "storage": storage_of(version),
            "mount": "/" + entry.path.split("/")[1],
            "preview": preview_of(version),
        }
        real = {name: getattr(entry, name) for name in expected}
        assert real == expected, f"{entry.path}{' (past)' if is_past else ''}"

    def compare_path(self, tree: ModelTree, path: str) -> None:
        assert self.run(self.ws.exists(path)) == tree.exists(path)
        assert self.run(self.ws.is_dir(path)) == (tree.is_dir(path) and path not in tree.live)
        children = self.run(self.ws.list(parent_of(path)))
        assert [(e.path, e.kind == "file") for e in children] == tree.children(parent_of(path))
        live = tree.stat(path)
        stat = self.run(self.ws.stat(path))
        assert (stat is None) == (live is None)
        if live is not None:
            content = self.run(self.ws.read(path, max_inline_bytes=1 << 20))
            self.compare_content(tree.read(path), content, live)
            assert self.run(self.ws.read_bytes(path)) == tree.read(path).data
        file = self.model.file_at(path)
        if file is None or file.number not in self.model.unswept:
            self.compare_history(path, file)

    def compare_history(self, path: str, file: ModelFile | None) -> None:
        real = self.run(self.ws.history(path))
        expected = self.model.history(path)
        assert [entry.version for entry in real] == [version.number for version in expected]
        for entry, version in zip(real, expected, strict=True):
            assert file is not None
            assert (entry.path, entry.operation) == (version.path, version.operation)
            assert entry.size == version.size
            if version.kind is not None or self.ttl_ms is None:
                # The commit that first meets an expired file records when it went.
                assert entry.created_at == version.created_at
                assert entry.sequence == version.sequence
            if version.kind is not None:
                assert (entry.content_kind, entry.sha256) == (version.kind, version.sha256)
                assert entry.mime_type == version.mime_type
                assert entry.preview == preview_of(version)
            restored = entry.restored_from
            assert (restored is None) == (version.restored_from is None)
            if restored is not None and version.restored_from is not None:
                assert file.origin(restored) == file.origin(version.restored_from)

    def compare_content(
        self,
        version: ModelVersion,
        content: Any,  # noqa: ANN401 - one of three
        live: ModelLive | None = None,
    ) -> None:
        assert content.kind == version.kind
        assert (content.version, content.size) == (version.number, version.size)
        assert content.sha256 == version.sha256
        assert (content.mime_type, content.metadata) == (version.mime_type, version.metadata)
        if content.kind != "binary":
            assert content.content == version.content
            assert type(content.content) is type(version.content)
            assert content.truncated is False
        if live is not None:
            assert content.status == live.shown_status
            assert content.artifact_kind == live.artifact_kind
            assert content.pinned_version == live.pin

    def compare_past(self, sequence: int) -> None:
        tree = self.model.at(sequence)
        view = self.ws.at(sequence)
        page = self.run(view.list(recursive=True))
        readable = [path for path in tree.paths() if tree.is_readable(path)]
        assert [entry.path for entry in page] == readable
        for entry in page:
            assert isinstance(entry, WorkspaceFile)
            self.compare_file(tree, entry, is_past=True)
        for path in tree.paths():
            self.compare_past_content(tree, path, view)
        shown = [path for path, _, version in tree.artifacts() if version is not None]
        assert [artifact.path for artifact in self.run(view.artifacts())] == shown

    def compare_past_content(self, tree: ModelTree, path: str, view: Any) -> None:  # noqa: ANN401
        if tree.is_readable(path):
            content = self.run(view.read(path, max_inline_bytes=1 << 20))
            self.compare_content(tree.read(path), content, tree.live[path])
            return
        collected = VersionNotFoundError(path, code=ErrorCode.VERSION_EXPIRED)
        try:
            self.run(view.read(path))
        except WorkspaceError as error:
            require_same(collected, error)
        else:
            message = f"{path} was read, though it was collected"
            raise AssertionError(message)

    def look_at_all_of_the_past(self) -> None:
        for sequence in range(self.model.sequence + 1):
            self.compare_past(sequence)


def require_same(expected: WorkspaceError | None, error: WorkspaceError) -> None:
    """Return if a refusal has a code that the oracle would refuse with too; else raise it."""
    if expected is None:
        raise error
    allowed = {str(expected.code), *expected.details.get("also", ())}
    assert str(error.code) in allowed, f"{error!r}, expected one of {allowed}"


def nfc(path: str) -> str:
    """Return a path as it is stored."""
    return unicodedata.normalize("NFC", path)


def parent_of(path: str) -> str:
    """Return the directory that a path lies in."""
    return path.rsplit("/", 1)[0] or "/"


def storage_of(version: ModelVersion) -> str:
    """Return where the content of a version has to be."""
    is_inline = version.kind != "binary" and version.size <= make.INLINE_BYTES
    return "inline" if is_inline else "asset"


def preview_of(version: ModelVersion) -> str | None:
    """Return the preview that a version has to have."""
    if version.kind == "binary":
        return None
    text = version.data.decode()
    return text if len(text) <= PREVIEW else text[: PREVIEW - len("...")] + "..."


PREVIEW = 240
