"""Where an agent's files are: backends, what wraps them, and the handle that code uses."""
