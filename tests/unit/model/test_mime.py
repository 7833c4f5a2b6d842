"""A path's MIME type depends on nothing but the path and the kind."""

from __future__ import annotations

from typing import Literal

import pytest

from crux_workspace.model import mime


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/notes.md", "text/markdown"),
        ("/a/NOTES.MD", "text/markdown"),
        ("/a/data.json", "application/json"),
        ("/a/rows.jsonl", "application/jsonl"),
        ("/a/c.yaml", "application/yaml"),
        ("/a/c.yml", "application/yaml"),
        ("/a/c.toml", "application/toml"),
        ("/a/x.ts", "text/typescript"),
        ("/a/x.tsx", "text/tsx"),
        ("/a/x.rs", "text/x-rust"),
        ("/a/x.go", "text/x-go"),
        ("/a/x.py", "text/x-python"),
        ("/a/t.parquet", "application/vnd.apache.parquet"),
        ("/a/f.woff2", "font/woff2"),
        ("/a/i.webp", "image/webp"),
        ("/a/i.avif", "image/avif"),
        ("/a/i.png", "image/png"),
        ("/a/i.jpeg", "image/jpeg"),
        ("/a/p.pdf", "application/pdf"),
        ("/a/t.csv", "text/csv"),
        ("/a/t.html", "text/html"),
        ("/a/archive.tar.gz", "application/gzip"),
    ],
)
def test_by_extension(path: str, expected: str) -> None:
    assert mime.guess(path, "text") == expected
    assert mime.guess(path, "binary") == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("text", "text/plain"),
        ("json", "application/json"),
        ("binary", "application/octet-stream"),
    ],
)
@pytest.mark.parametrize("path", ["/Makefile", "/a.b/c", "/x.unheard-of", "/trailing.", "/json"])
def test_by_kind(path: str, kind: Literal["text", "json", "binary"], expected: str) -> None:
    assert mime.guess(path, kind) == expected
