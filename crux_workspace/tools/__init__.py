"""Tools for language models: what one is, what it answers, and sets of them."""

from __future__ import annotations

from crux_workspace.tools.toolset import Tool, ToolError, ToolResult, ToolSet

__all__ = ["Tool", "ToolError", "ToolResult", "ToolSet"]
