"""A workspace over HTTP: the same methods, results and errors, on the other side of ``crux-workspace serve``.

Needs the extra ``http``; importing this loads no HTTP library.
"""

from __future__ import annotations

from crux_workspace.http.transaction import HttpTransaction
from crux_workspace.http.view import HttpView
from crux_workspace.http.watching import HttpWatchHandle
from crux_workspace.http.workspace import HttpWorkspace

__all__ = ["HttpTransaction", "HttpView", "HttpWatchHandle", "HttpWorkspace"]
