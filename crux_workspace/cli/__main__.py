"""``python -m crux_workspace.cli``."""

from crux_workspace.cli.main import main

main()
