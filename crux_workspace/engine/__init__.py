"""The versioned tree of one namespace, and the committer."""
