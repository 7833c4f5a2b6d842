"""Tools for language models: what one is, what it answers, sets of them, and prompts built with them."""

from __future__ import annotations

from crux_workspace.tools.names import WorkspaceToolNames, workspace_tool_names
from crux_workspace.tools.prompting import Injection, Prompt, ResolvedPrompt, prompt
from crux_workspace.tools.toolset import (
    Media,
    Tool,
    ToolAnnotations,
    ToolError,
    ToolResult,
    ToolSet,
)

__all__ = [
    "Injection",
    "Media",
    "Prompt",
    "ResolvedPrompt",
    "Tool",
    "ToolAnnotations",
    "ToolError",
    "ToolResult",
    "ToolSet",
    "WorkspaceToolNames",
    "prompt",
    "workspace_tool_names",
]
