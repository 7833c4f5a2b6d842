"""A browser application that looks at a workspace through its HTTP service.

The files below ``static/`` are served as they are; nothing is built and nothing comes from outside. All data comes from the service's own
requests, so the inspector shows what its session may see and no more.
"""

from crux_workspace.inspector.app import inspector_app
from crux_workspace.inspector.pages import CONTENT_SECURITY_POLICY

__all__ = ["CONTENT_SECURITY_POLICY", "inspector_app"]
