"""A workspace as an HTTP service; needs the extra ``server``."""

from __future__ import annotations

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
