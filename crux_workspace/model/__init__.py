"""Values of the workspace: paths, files, contents, versions, changes; no I/O."""
