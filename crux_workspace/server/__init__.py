"""A workspace as an HTTP service; needs the extra ``server``. What is sent and answered is in docs/http.md."""

from __future__ import annotations

from crux_workspace.model.extras import need_extra

for _package in ("starlette", "uvicorn", "httptools"):
    need_extra(_package, "server")

# ruff: noqa: E402 - without these packages the import says which extra brings them
from crux_workspace.server.app import service_app
from crux_workspace.server.limits import ServiceLimits
from crux_workspace.server.serving import serve
from crux_workspace.server.tokens import Token, hash_token, load_tokens, new_token

__all__ = [
    "ServiceLimits",
    "Token",
    "hash_token",
    "load_tokens",
    "new_token",
    "serve",
    "service_app",
]
