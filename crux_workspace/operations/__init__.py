"""The verbs as plain async functions that read a tree and plan changes."""
