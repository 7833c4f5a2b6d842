"""What users hold: factory, runner, facades."""
