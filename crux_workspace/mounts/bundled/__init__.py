"""Sources that ship: a local folder, a git repository at a revision, an HTTP JSON API, another workspace. All read-only."""
