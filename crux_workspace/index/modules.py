"""Which file a name of a module means, and which files have to do with a workspace at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from crux_workspace.index.sources import Source

__all__ = ["Modules"]

_INIT = "__init__"
_CONFTEST = "conftest.py"


class Modules:
    """The modules of a folder, found the way the import system would, without its paths.

    An absolute name is looked for at the end of each file's path, below a folder that is no package; of several files the one
    nearest to who imports wins.
    """

    def __init__(self, sources: dict[str, Source]) -> None:
        self._sources = sources
        self._packages = {
            file.rpartition("/")[0] for file in sources if file.rpartition("/")[2] == "__init__.py"
        }
        self._by_last: dict[str, list[tuple[tuple[str, ...], str]]] = defaultdict(list)
        for file in sources:
            parts = _parts(file)
            if parts:
                self._by_last[parts[-1]].append((parts, file))

    def name_of(self, file: str) -> str:
        """Return the dotted name of a file's module, from its topmost package."""
        parts = _parts(file)
        folder = file.rpartition("/")[0]
        depth = 0 if file.rpartition("/")[2] == "__init__.py" else 1
        while folder in self._packages and folder:
            depth += 1
            folder = folder.rpartition("/")[0]
        return ".".join(parts[len(parts) - max(depth, 1) :]) or _INIT

    def absolute(self, name: str, importer: str) -> str | None:
        """Return the file of an absolute module name, None when it is not of this folder."""
        wanted = tuple(name.split("."))
        matching = [
            file
            for parts, file in self._by_last.get(wanted[-1], ())
            if parts[-len(wanted) :] == wanted and self._begins(parts, wanted)
        ]
        return min(matching, key=lambda file: _distance(file, importer), default=None)

    def relative(self, level: int, name: str, importer: str) -> str | None:
        """Return the file of a relative module name."""
        folder = importer.rpartition("/")[0]
        for _ in range(level - 1):
            if not folder:
                return None
            folder = folder.rpartition("/")[0]
        path = "/".join(part for part in (folder, *name.split(".")) if part)
        return self.at(path)

    def at(self, path: str) -> str | None:
        """Return the file of a module or package that lies at a path without its ending."""
        candidates = (f"{path}/{_INIT}.py", f"{path}.py") if path else (f"{_INIT}.py",)
        return next((file for file in candidates if file in self._sources), None)

    def child(self, package: str, name: str) -> str | None:
        """Return the file of a module inside a package, given the package's file."""
        folder, _, last = package.rpartition("/")
        if last != f"{_INIT}.py":
            return None
        return self.at(f"{folder}/{name}" if folder else name)

    def relevant(self) -> list[str]:
        """Return the files that name this library, and all that are tied to them by imports."""
        near: dict[str, set[str]] = defaultdict(set)
        for file, source in self._sources.items():
            for imported in self._imported(file, source):
                near[file].add(imported)
                near[imported].add(file)
            for conftest in self._conftests(file):
                near[file].add(conftest)
                near[conftest].add(file)
        waiting = [file for file, source in self._sources.items() if source.mentions]
        found = set(waiting)
        while waiting:
            for other in near[waiting.pop()] - found:
                found.add(other)
                waiting.append(other)
        return sorted(found)

    def _imported(self, file: str, source: Source) -> Iterable[str]:
        for level, name, members in source.imports:
            target = self.relative(level, name, file) if level else self.absolute(name, file)
            if target is None:
                continue
            yield target
            for member in members:
                child = self.child(target, member)
                if child is not None:
                    yield child

    def _conftests(self, file: str) -> Iterable[str]:
        """Yield the files whose fixtures pytest gives to a file of tests."""
        folder, _, name = file.rpartition("/")
        if not (name.startswith("test") or name.endswith("_test.py") or name == _CONFTEST):
            return
        while True:
            place = f"{folder}/{_CONFTEST}" if folder else _CONFTEST
            if place in self._sources and place != file:
                yield place
            if not folder:
                return
            folder = folder.rpartition("/")[0]

    def _begins(self, parts: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
        above = parts[: -len(wanted)]
        return not above or "/".join(above) not in self._packages


def _parts(file: str) -> tuple[str, ...]:
    parts = file.removesuffix(".py").split("/")
    return tuple(parts[:-1] if parts[-1] == _INIT else parts)


def _distance(file: str, importer: str) -> tuple[int, int, str]:
    common = 0
    for mine, theirs in zip(file.split("/"), importer.split("/"), strict=False):
        if mine != theirs:
            break
        common += 1
    return (-common, file.count("/"), file)
