"""A durable file workspace: every change versioned, every group of changes one commit."""
