"""The inspector's own files: which there are, how each is answered, and what a browser lets them do."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CONTENT_SECURITY_POLICY", "PREFIX", "Page", "Pages"]

PREFIX = "/inspector/"
"""The path below which the files are answered; the page itself is the prefix."""

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "worker-src 'self'",
        "style-src 'self'",
        "font-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types inspector-worker",
    ]
)
"""What a browser lets the page do: run and load its own files only, and never make markup or script of a string."""

_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_ALWAYS_ASK = {"cache-control": "no-cache"}
_NEVER_CHANGES = {"cache-control": "public, max-age=31536000, immutable"}
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
    "txt": "text/plain; charset=utf-8",
}
_INDEX = "index.html"
_FOLDER = b"{files}"
_MODULES = b"<!-- modules -->"


@dataclass(frozen=True, slots=True)
class Page:
    """One answer: a status, headers and a body."""

    status: int
    headers: dict[str, str]
    body: bytes = field(default=b"", repr=False)


class Pages:
    """The files of the inspector, held in memory (about half a MB).

    A request names a file of a fixed list, so that no path, however it is encoded, leads anywhere else. All but the page itself lie below
    a folder that is named by their digest: a browser keeps them for good, and asks for others once the library is another.
    """

    def __init__(self) -> None:
        found = dict(sorted(_below(files("crux_workspace.inspector") / "static", "")))
        index = found.pop(_INDEX)
        digest = hashlib.sha256()
        for name, data in found.items():
            digest.update(f"{name}\0{len(data)}\0".encode() + data)
        self.folder = digest.hexdigest()[:16]
        """The folder's name."""
        self._files = {
            f"{self.folder}/{name}": _page(name, data, _NEVER_CHANGES)
            for name, data in found.items()
        }
        self._files[""] = _page(_INDEX, self._index(index), _ALWAYS_ASK)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def _index(self, written: bytes) -> bytes:
        """Return the page with the folder's name, and with all modules to load at once instead of one after another."""
        modules = [
            b'<link rel="modulepreload" href="%s" />' % name.encode()
            for name in self._files
            if name.startswith(f"{self.folder}/app/") and not name.endswith("-worker.js")
        ]
        return written.replace(_FOLDER, self.folder.encode()).replace(_MODULES, b"\n".join(modules))

    def answer(self, path: str, if_none_match: str = "") -> Page | None:
        """Return the answer to a GET.

        Args:
            path: Path of the request, decoded.
            if_none_match: Header of that name, empty without one.

        Returns:
            The file, or 304 when the browser has it already, or 307 to where the inspector is; None where there is nothing.
        """
        if path in ("/", PREFIX.rstrip("/")):
            return Page(307, _HEADERS | _ALWAYS_ASK | {"location": PREFIX[1:]})
        page = self._files.get(path.removeprefix(PREFIX)) if path.startswith(PREFIX) else None
        if page is not None and page.headers["etag"] in if_none_match:
            return Page(304, page.headers)
        return page


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        name = prefix + each.name
        if each.is_dir():
            yield from _below(each, f"{name}/")
        elif name.rpartition(".")[2] in _TYPES:
            yield name, each.read_bytes()


def _page(name: str, data: bytes, caching: dict[str, str]) -> Page:
    digest = hashlib.sha256(data).hexdigest()[:32]
    own = {"content-type": _TYPES[name.rpartition(".")[2]], "etag": f'"{digest}"'}
    return Page(200, _HEADERS | caching | own, data)
