"""A git repository at one revision as a source; needs the extra ``git``."""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING, Any

from crux_workspace.errors import InvalidInputError, InvalidPathError
from crux_workspace.model.contents import Content
from crux_workspace.model.extras import need_extra
from crux_workspace.model.files import ListResult, WorkspaceDirectory, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.mime import guess
from crux_workspace.model.options import refused_option, shown
from crux_workspace.model.paths import normalise
from crux_workspace.model.sources import MountListOptions, MountPathOptions, MountReadOptions
from crux_workspace.mounts.bundled.pages import content_of, kind_of, page_of

if TYPE_CHECKING:
    from dulwich.repo import Repo

__all__ = ["GitSource"]


class GitSource:
    """The files of a git repository as of one commit, read-only; nothing of the work tree, no hooks, no git program.

    A branch or tag is resolved once, so the mount does not change under its readers. Links and submodules are not shown. The revision
    of every file is the commit.
    """

    kind = "git"

    def __init__(self, repository: str | os.PathLike[str], revision: str = "HEAD") -> None:
        need_extra("dulwich", "git")
        from dulwich.errors import NotGitRepository
        from dulwich.objects import Commit
        from dulwich.objectspec import parse_commit, parse_object
        from dulwich.repo import Repo

        for name, value in (("repository", repository), ("revision", revision)):
            given: object = value
            if not isinstance(given, str | os.PathLike) or not os.fspath(given):
                raise refused_option(name, "a path" if name == "repository" else "a str", given)
        try:
            self._repo: Repo = Repo(os.fspath(repository))
        except NotGitRepository as error:
            raise InvalidInputError(
                "The repository of a GitSource must be a git repository.",
                details={"option": "repository"},
            ) from error
        try:
            found = parse_object(self._repo, os.fsencode(revision))
            commit = found if isinstance(found, Commit) else parse_commit(self._repo, found.id)
        except (KeyError, ValueError) as error:
            self._repo.close()
            raise InvalidInputError(
                f"The repository has no revision {shown(revision)}.", details={"option": "revision"}
            ) from error
        self._tree: bytes = commit.tree
        self._at = int(commit.commit_time) * 1000
        self._lock = threading.Lock()
        self.revision = commit.id.decode()
        """The commit whose files are shown."""

    def close(self) -> None:
        """Let go of the repository's files."""
        self._repo.close()

    def list(self, path: str, options: MountListOptions) -> ListResult:
        """List a directory of the commit."""
        with self._lock:
            tree = self._object(path, options.mount_path)
            items = [] if tree is None or tree.type_name != b"tree" else list(tree.items())
            entries = [self._entry(path, item) for item in items]
        return page_of([entry for entry in entries if entry is not None], options)

    def _entry(self, directory: str, item: Any) -> WorkspaceEntry | None:  # noqa: ANN401 - a tree entry
        try:
            path = normalise(f"{directory}/{item.path.decode()}")
        except (InvalidPathError, UnicodeDecodeError):
            return None
        if stat.S_ISDIR(item.mode):
            return WorkspaceDirectory(path)
        if not stat.S_ISREG(item.mode):
            return None
        return self._file(path, self._repo[item.sha].as_raw_string())

    def _file(self, path: str, data: bytes) -> WorkspaceFile:
        kind = kind_of(data)
        return WorkspaceFile(
            path=path,
            content_kind=kind,
            mime_type=guess(path, kind),
            size=len(data),
            created_at=self._at,
            updated_at=self._at,
            metadata={"revision": self.revision},
        )

    def _object(self, path: str, mount_path: str) -> Any:  # noqa: ANN401 - a git object
        found: Any = self._repo[self._tree]
        for step in path[len(mount_path) :].split("/"):
            if not step:
                continue
            if found.type_name != b"tree":
                return None
            try:
                mode, sha = found[step.encode()]
            except KeyError:
                return None
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                return None
            found = self._repo[sha]
        return found

    def _data(self, path: str, mount_path: str) -> bytes | None:
        with self._lock:
            blob = self._object(path, mount_path)
            return None if blob is None or blob.type_name != b"blob" else blob.as_raw_string()

    def read(self, path: str, options: MountReadOptions) -> Content | None:
        """Return a file of the commit."""
        data = self._data(path, options.mount_path)
        return None if data is None else content_of(path, data, options, self.revision)

    def read_bytes(self, path: str, options: MountPathOptions) -> bytes | None:
        """Return a file's bytes."""
        return self._data(path, options.mount_path)

    def stat(self, path: str, options: MountPathOptions) -> WorkspaceFile | None:
        """Return what is known of a file."""
        data = self._data(path, options.mount_path)
        return None if data is None else self._file(path, data)
