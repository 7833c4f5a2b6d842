"""A workspace as an MCP server; needs the extra ``mcp``."""
