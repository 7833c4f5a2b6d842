"""Settings of a workspace; bad values are refused when they are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.options import MOST, needed_number, refused_option, shown, whole_number
from crux_workspace.model.sources import SOURCE_HOOKS, MountSource

__all__ = [
    "CONTEXT_PRIORITY",
    "EXTRA_TOOLS",
    "ContentOptions",
    "Limits",
    "Mount",
    "NamespaceRequest",
    "NamespaceSetting",
    "Retention",
    "ToolOptions",
    "Versioning",
]

CONTEXT_PRIORITY = 65
"""Where a workspace's description stands among the contexts of a prompt; higher comes first."""
_MAX_DESCRIPTION_BYTES = 4_000
_MAX_KIND = 60


def _check_number(owner: str, name: str, value: object, *, least: int = 0) -> None:
    """Refuse a setting that is no whole number that every store and every wire can hold; None does not pass."""
    needed_number(f"{owner}.{name}", value, least=least, most=MOST)


def _check_ceiling(owner: str, name: str, value: object, *, least: int = 0) -> None:
    """Refuse a setting that is neither None nor such a number."""
    whole_number(f"{owner}.{name}", value, least=least, most=MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings; None means unlimited. They count live files, never history."""

    max_file_bytes: int | None = None
    """Bytes of one file."""
    max_namespace_bytes: int | None = None
    """Bytes of all live files of a namespace."""
    max_files: int | None = None
    """Live files of a namespace."""
    max_history_bytes: int | None = None
    """Bytes of kept old versions of a namespace; it collects the touched file's oldest versions and never refuses."""

    def __post_init__(self) -> None:
        for name in ("max_file_bytes", "max_namespace_bytes", "max_files", "max_history_bytes"):
            _check_ceiling("Limits", name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long things stay."""

    ttl_ms: int | None = None
    """A file expires this long after its last content change; None means never."""
    log_ms: int | None = None
    """How long commits stay in the log; None means for ever."""
    asset_grace_ms: int = 3_600_000
    """How long released or orphaned assets stay before `gc` may delete them.

    A released asset keeps the time that it was given when it was released, also when this is shorter or longer later; orphans are
    judged by the setting of the workspace that collects.
    """

    def __post_init__(self) -> None:
        _check_ceiling("Retention", "ttl_ms", self.ttl_ms, least=1)
        _check_ceiling("Retention", "log_ms", self.log_ms)
        _check_number("Retention", "asset_grace_ms", self.asset_grace_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Versioning:
    """How much history each file keeps."""

    max_versions: int | None = None
    """Versions kept per file, head and tombstones included; None keeps all. Pinned versions always stay."""

    def __post_init__(self) -> None:
        _check_ceiling("Versioning", "max_versions", self.max_versions, least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentOptions:
    """Where content lives."""

    inline_text_below_bytes: int = 64_000
    """Text and JSON up to this size (inclusive) live in the record store, everything else in the asset store."""

    def __post_init__(self) -> None:
        _check_number("ContentOptions", "inline_text_below_bytes", self.inline_text_below_bytes)


@dataclass(frozen=True, slots=True)
class Mount:
    """A part of the tree and what may be done there."""

    path: str
    access: Literal["read", "readwrite"] = "readwrite"
    description: str | None = None
    """One line for people and models."""
    source: MountSource | None = field(default=None, repr=False, compare=False)
    """Who holds the files; None keeps them in the workspace's own storage."""
    timeout_ms: int = 30_000
    """How long one call of the source may take."""

    def __post_init__(self) -> None:
        path: object = self.path
        if not isinstance(path, str | PurePosixPath):
            raise refused_option("Mount.path", "an absolute path", path)
        object.__setattr__(self, "path", str(path))
        if self.access not in ("read", "readwrite"):
            raise InvalidInputError(
                f"Mount access must be 'read' or 'readwrite', got {shown(self.access)}.",
                details={"option": "access"},
            )
        if self.description is not None:
            _check_description(self.description)
        _check_number("Mount", "timeout_ms", self.timeout_ms, least=1)
        if self.source is not None:
            self._check_hooks()

    def _check_hooks(self) -> None:
        for hook in SOURCE_HOOKS:
            found = getattr(self.source, hook, None)
            if found is not None and not callable(found):
                raise InvalidInputError(
                    f"The {hook} of the source of the mount {self.path} is no method, but {type(found).__name__}.",
                    details={"option": "source", "mount": self.path},
                )
            if found is None and hook in ("list", "read"):
                raise InvalidInputError(
                    f"The source of the mount {self.path} has no method {hook!r}: "
                    f"{type(self.source).__name__} is no mount source.",
                    details={"option": "source", "mount": self.path},
                    hint="A source needs list(path, options) and read(path, options).",
                )

    @property
    def source_kind(self) -> str | None:
        """What sort of source it is, e.g. ``retriever`` or ``custom``; None without one."""
        if self.source is None:
            return None
        kind = getattr(self.source, "kind", "custom")
        is_label = isinstance(kind, str) and kind.isprintable() and 0 < len(kind) <= _MAX_KIND
        return kind if is_label else "custom"


def _check_description(description: object) -> None:
    if not isinstance(description, str):
        raise refused_option("Mount.description", "a str or None", description)
    try:
        size = len(description.encode())
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            "Mount.description has a lone surrogate, which UTF-8 cannot write.",
            details={"option": "description"},
        ) from error
    if size > _MAX_DESCRIPTION_BYTES:
        raise InvalidInputError(
            f"Mount.description has {size} bytes, more than {_MAX_DESCRIPTION_BYTES:,}; it goes into every prompt.",
            details={"option": "description"},
        )


EXTRA_TOOLS = ("stat", "append", "copy", "history", "diff", "finalize")
"""What `ToolOptions.extra` may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """Which tools a workspace makes for models, and how much they may answer."""

    prefix: str | None = None
    """Put into every name: ``research`` makes ``readResearchWorkspaceFile``."""
    delete: bool = False
    """Offer a tool that deletes files."""
    undo: bool = False
    """Offer a tool that takes back the latest change of a file."""
    extra: tuple[str, ...] = ()
    """Further tools: ``stat``, ``append``, ``copy``, ``history``, ``diff``, ``finalize``."""
    read_before_write: bool = False
    """Refuse to change a file that was not read by these tools at the version it is at."""
    max_result_bytes: int = 32_000
    """Most bytes of content, in the JSON form it is sent in, that one result shows; the rest is read on."""
    max_entries: int = 200
    """Most entries of one listing, and most matches of one search."""
    max_image_bytes: int = 3_500_000
    """Largest image that is handed to frameworks whose models can look at one; 0 hands over none."""

    def __post_init__(self) -> None:
        given: object = self.extra
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InvalidInputError(
                "ToolOptions.extra must be a list of names.", details={"option": "extra"}
            )
        object.__setattr__(self, "extra", tuple(self.extra))
        unknown = [name for name in self.extra if name not in EXTRA_TOOLS]
        if unknown:
            raise InvalidInputError(
                f"There are no extra tools {shown(unknown)}.",
                details={"option": "extra"},
                hint=f"Choose from: {', '.join(EXTRA_TOOLS)}.",
            )
        prefix: object = self.prefix
        if prefix is not None and not isinstance(prefix, str):
            raise InvalidInputError(
                "ToolOptions.prefix must be a str or None.", details={"option": "prefix"}
            )
        for name in ("delete", "undo", "read_before_write"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInputError(
                    f"ToolOptions.{name} must be True or False.", details={"option": name}
                )
        for name, least in (
            ("max_result_bytes", 1_000),
            ("max_entries", 1),
            ("max_image_bytes", 0),
        ):
            _check_number("ToolOptions", name, getattr(self, name), least=least)


@dataclass(frozen=True, slots=True)
class NamespaceRequest:
    """What a namespace callable is told; both are None on direct calls."""

    input: Any = None
    prompt_id: str | None = None


NamespaceSetting: TypeAlias = "str | Callable[[NamespaceRequest], str | Awaitable[str]] | None"
