"""The oracle's transactions: a copy of the model is worked on, and its net changes are one commit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from crux_workspace.errors import PathNotFoundError
from crux_workspace.testing.model import (
    ModelChange,
    ModelFile,
    ModelLive,
    ModelVersion,
    ModelWorkspace,
    below,
    order,
    parents,
)

__all__ = ["ModelTransaction", "copy_of"]


def copy_of(model: ModelWorkspace) -> ModelWorkspace:
    """Return a model that is changed without changing this one; its past is not copied."""
    copied = ModelWorkspace(
        clock=model.clock,
        mounts=model.mounts,
        limits=model.limits,
        ttl_ms=model.ttl_ms,
        max_versions=model.max_versions,
    )
    copied.live, copied.gone = dict(model.live), dict(model.gone)
    copied.files = {number: file.clone() for number, file in model.files.items()}
    copied.sequence, copied.time = model.sequence, model.time
    return copied


@dataclass
class _Net:
    """One file that a transaction changed."""

    number: int
    start: str | None
    """Where it was, None: nowhere."""
    end: str | None
    gone: str | None
    """Where it had been deleted before."""
    content: ModelVersion | None
    live: ModelLive | None

    @property
    def is_move(self) -> bool:
        return self.start is not None and self.end is not None and self.start != self.end


@dataclass
class ModelTransaction:
    """Verbs run on `inside`; `commit` brings the net changes to the model it was begun on."""

    model: ModelWorkspace
    touched: set[str] = field(default_factory=set)
    """Paths that were read or written, or seen to be absent."""
    listed: set[str] = field(default_factory=set)
    """Directories that were listed or searched."""

    def __post_init__(self) -> None:
        self.begun = self.model.sequence
        self.start = copy_of(self.model)
        self.inside = copy_of(self.model)

    # What it means

    def changed_since(self) -> tuple[set[str], bool]:
        """Return the paths of later commits, and whether there were commits that tell no paths (purges, sweeps)."""
        paths: set[str] = set()
        untold = False
        for number in range(self.begun + 1, self.model.sequence + 1):
            commit = self.model.commits.get(number)
            untold = untold or commit is None or commit.verb == "purge"
            for change in () if commit is None else commit.changes:
                paths |= {change.path, change.from_path or change.path}
        return paths, untold

    def must_conflict(self) -> bool:
        """Tell whether something that was read or written is certainly not what it was."""
        changed, _ = self.changed_since()
        for path in changed:
            is_file = path in self.start.live or path in self.model.live
            if path in self.touched and is_file:
                return True
            if any(path == listed or below(path, listed) for listed in self.listed):
                return True
        return False

    def may_conflict(self) -> bool:
        """Tell whether a later commit came near what was touched."""
        changed, untold = self.changed_since()
        near = self.touched | self.listed
        return untold or any(
            path == other or below(path, other) or below(other, path)
            for path in changed
            for other in near
        )

    def net(self) -> list[_Net]:
        """Return what is different from the start, by file."""
        starts = {live.file: path for path, live in self.start.live.items()}
        ends = {live.file: path for path, live in self.inside.live.items()}
        gone = {number: path for path, (number, _, _) in self.start.gone.items()}
        found = []
        for number, file in self.inside.files.items():
            start, end = starts.get(number), ends.get(number)
            if start is None and end is None:
                continue
            before = self.start.files.get(number)
            has_content = before is None or file.last > before.last
            live = None if end is None else self.inside.live[end]
            content = file.versions[live.version] if live is not None and has_content else None
            if start == end and content is None and start is not None and live is not None:
                if _attributes(self.start.live[start]) == _attributes(live):
                    continue
            found.append(_Net(number, start, end, gone.get(number), content, live))
        return found

    # The commit

    def commit(self) -> None:
        """Apply the net changes to the model as one commit."""
        changes = self.net()
        if not changes:
            return
        model = self.model
        with model._commit("transaction"):
            taken = {one.end for one in changes if one.end is not None}
            replaced: dict[str, int] = {}
            held: dict[int, ModelLive] = {}
            for one in changes:
                if one.start is not None and one.end is None:
                    self._remove(one.start, taken, replaced)
                elif one.start is not None:
                    held[one.number] = model.live.pop(one.start)
            for one in sorted(changes, key=lambda one: one.number):
                if one.end is not None:
                    self._place(one, held.get(one.number), replaced)

    def _remove(self, path: str, taken: set[str], replaced: dict[str, int]) -> None:
        if path in taken:
            replaced[path] = self.model.live[path].file
            self.model._bury(path)
            self.model.files[replaced[path]].overwritten_at = path
        else:
            self.model._end(path)

    def _place(self, one: _Net, old: ModelLive | None, replaced: dict[str, int]) -> None:
        model, path, live = self.model, one.end, one.live
        assert path is not None
        assert live is not None
        file = self._file(one)
        if one.gone is not None:
            model.gone.pop(one.gone, None)
        if one.start != path:
            ended = model.gone.pop(path, None)
            if ended is not None and ended[0] != file.number:
                model.files[ended[0]].overwritten_at = path
        if one.content is not None:
            self._append(file, path, one.content)
        pin = live.pin
        if pin is not None and pin == live.version:
            pin = file.last
        model.live[path] = replace(
            live,
            file=file.number,
            version=file.last,
            pin=pin,
            created_at=file.created_at if old is None else old.created_at,
            updated_at=model.time,
            sequence=model.sequence,
        )
        if one.content is None:
            head = file.versions[file.last]
            file.versions[file.last] = replace(
                head, mime_type=live.mime_type, metadata=live.metadata
            )
        kind = "create" if old is None else "rename" if one.is_move else "update"
        model._changes.append(
            ModelChange(
                kind,
                path,
                file.number,
                one.start if one.is_move else None,
                replaced.get(path),
                file.last,
                None if old is None else old.version,
                one.content is None and not one.is_move and old is not None,
            )
        )

    def _file(self, one: _Net) -> ModelFile:
        model = self.model
        if one.number in self.start.files:
            return model.files[one.number]
        made = ModelFile(len(model.files) + 1, model.time)
        model.files[made.number] = made
        return made

    def _append(self, file: ModelFile, path: str, content: ModelVersion) -> None:
        assert content.kind is not None
        self.model._add(
            file,
            path,
            content.operation,
            content.kind,
            content.content,
            content.data,
            content.mime_type,
            content.metadata,
        )
        file.timeline = [*file.timeline[: file.position + 1], file.last]
        file.position = len(file.timeline) - 1
        file.redo_known = True

    # Reading

    def read(self, path: str) -> ModelVersion | None:
        """Return what the transaction sees at a path."""
        try:
            return self.inside.tree.read(path)
        except PathNotFoundError:
            return None

    def note(self, *paths: str) -> None:
        """Remember that files were read or written."""
        self.touched |= set(paths)

    def note_written(self, *paths: str) -> None:
        """Remember that files come or go: what is above them was looked at too."""
        for path in paths:
            self.touched |= {path, *parents(path)}

    def paths(self) -> list[str]:
        """Return what the transaction sees, in order."""
        return sorted(self.inside.live, key=order)


def _attributes(live: ModelLive) -> tuple[object, ...]:
    return (live.mime_type, live.metadata, live.status, live.artifact_kind, live.pin)
