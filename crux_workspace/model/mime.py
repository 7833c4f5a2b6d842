"""The MIME type of a file whose writer named none: by extension, else by the kind of content.

The table is the interpreter's own and the additions below; the machine's files are never read, so a path means the same everywhere.
"""

from __future__ import annotations

import re
from functools import cache
from types import MappingProxyType
from typing import Literal

__all__ = ["DEFAULTS", "guess", "is_binary"]

DEFAULTS = MappingProxyType(
    {"text": "text/plain", "json": "application/json", "binary": "application/octet-stream"}
)
"""MIME type of each kind of content when the extension tells nothing."""

_ADDITIONS = {
    "application/dart": "dart",
    "application/epub+zip": "epub",
    "application/geo+json": "geojson",
    "application/gzip": "gz tgz",
    "application/json": "json webmanifest map",
    "application/jsonl": "jsonl ndjson",
    "application/ld+json": "jsonld",
    "application/msword": "doc",
    "application/pdf": "pdf",
    "application/rtf": "rtf",
    "application/sql": "sql",
    "application/toml": "toml",
    "application/vnd.apache.arrow.file": "arrow feather",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.oasis.opendocument.presentation": "odp",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.sqlite3": "sqlite sqlite3 db",
    "application/wasm": "wasm",
    "application/x-7z-compressed": "7z",
    "application/x-bzip2": "bz2",
    "application/x-ipynb+json": "ipynb",
    "application/x-sh": "sh bash zsh",
    "application/x-tar": "tar",
    "application/xml": "xml xsl xsd",
    "application/yaml": "yaml yml",
    "application/zip": "zip",
    "application/zstd": "zst",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg oga",
    "audio/opus": "opus",
    "audio/wav": "wav",
    "font/otf": "otf",
    "font/ttf": "ttf",
    "font/woff": "woff",
    "font/woff2": "woff2",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/heic": "heic",
    "image/jxl": "jxl",
    "image/svg+xml": "svg",
    "image/webp": "webp",
    "image/x-icon": "ico",
    "text/calendar": "ics",
    "text/css": "css",
    "text/csv": "csv",
    "text/html": "html htm",
    "text/javascript": "js mjs cjs",
    "text/jsx": "jsx",
    "text/markdown": "md markdown mdown",
    "text/mdx": "mdx",
    "text/plain": "txt text log conf cfg ini env properties lock gitignore",
    "text/tab-separated-values": "tsv",
    "text/tsx": "tsx",
    "text/typescript": "ts mts cts",
    "text/vtt": "vtt",
    "text/x-asm": "asm s",
    "text/x-c": "c h",
    "text/x-c++": "cc cpp cxx hh hpp hxx",
    "text/x-clojure": "clj cljs",
    "text/x-csharp": "cs",
    "text/x-diff": "diff patch",
    "text/x-elixir": "ex exs",
    "text/x-erlang": "erl",
    "text/x-go": "go",
    "text/x-haskell": "hs",
    "text/x-java": "java",
    "text/x-julia": "jl",
    "text/x-kotlin": "kt kts",
    "text/x-lua": "lua",
    "text/x-ocaml": "ml mli",
    "text/x-perl": "pl pm",
    "text/x-php": "php",
    "text/x-protobuf": "proto",
    "text/x-python": "py pyi",
    "text/x-r": "r",
    "text/x-rst": "rst",
    "text/x-ruby": "rb",
    "text/x-rust": "rs",
    "text/x-scala": "scala",
    "text/x-scss": "scss sass",
    "text/x-svelte": "svelte",
    "text/x-swift": "swift",
    "text/x-tex": "tex",
    "text/x-vue": "vue",
    "text/x-zig": "zig",
    "video/mp4": "mp4 m4v",
    "video/ogg": "ogv",
    "video/quicktime": "mov",
    "video/webm": "webm",
    "video/x-matroska": "mkv",
}


@cache
def _by_extension() -> dict[str, str]:
    """MIME type by extension; made when it is first asked for, with the interpreter's table."""
    import mimetypes

    types = mimetypes.MimeTypes(filenames=())
    by_extension = {**types.types_map[0], **types.types_map[1]}
    by_extension.update(
        (f".{extension}", mime_type)
        for mime_type, extensions in _ADDITIONS.items()
        for extension in extensions.split()
    )
    return by_extension


def guess(path: str, kind: Literal["text", "json", "binary"]) -> str:
    """Return the MIME type for a path and a kind of content.

    Args:
        path: Normal path; only what follows the last dot of its name counts, in any case.
        kind: What the content is, for a name that tells nothing.

    Returns:
        The MIME type, without parameters.
    """
    name = path[path.rfind("/") + 1 :]
    _, dot, extension = name.rpartition(".")
    return _by_extension().get(dot + extension.lower(), DEFAULTS[kind]) if dot else DEFAULTS[kind]


_BINARY = re.compile(
    r"(?:image|audio|video|font)/(?!.*\+xml\Z).+"
    r"|application/(?:octet-stream|pdf|zip|gzip|zstd|wasm|epub\+zip|msword|x-tar|x-7z-compressed|vnd\..+)"
).fullmatch


def is_binary(mime_type: str) -> bool:
    """Tell whether content of a MIME type is never text; of a type that says nothing of that it is False."""
    return _BINARY(mime_type.partition(";")[0].strip().lower()) is not None
