"""What binds an approval to one call: its place, and a digest of all that it says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from crux_workspace.agent.permissions.requests import (
    CommandRequest,
    MemoryRequest,
    PathRequest,
    Request,
    SubagentRequest,
)

__all__ = ["digest", "is_text", "slot"]


def slot(request: Request, thread: str, call_id: str | None) -> str:
    """Name the place of a call: its id, else what it is about."""
    about = [request.kind, thread]
    about += ["call", call_id] if call_id is not None else ["about", _subject(request)]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:40]


def is_text(text: str) -> bool:
    """Tell whether a text can be written as UTF-8."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _subject(request: Request) -> str:
    if isinstance(request, CommandRequest):
        return request.command
    if isinstance(request, PathRequest):
        return f"{request.operation} {request.path}"
    if isinstance(request, SubagentRequest):
        return request.edge
    if isinstance(request, MemoryRequest):
        return f"{request.candidate}{request.identity}"
    return request.name


def digest(request: Request, call_id: str | None) -> str:
    """Bind an approval to everything the request says."""
    said: dict[str, Any] = {"kind": request.kind, "call": call_id}
    for name, about in request.__dataclass_fields__.items():
        if not about.init:
            continue
        value = getattr(request, name)
        said[name] = dict(value) if isinstance(value, Mapping) else value
    try:
        text = json.dumps(said, sort_keys=True, default=repr, ensure_ascii=True)
    except (TypeError, ValueError):
        text = repr(said)
    return hashlib.sha256(text.encode()).hexdigest()
