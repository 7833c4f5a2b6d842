"""What a command line runs, read with the shell's own grammar."""
