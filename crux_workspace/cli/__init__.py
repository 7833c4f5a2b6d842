"""The command line: parses arguments, calls one verb, prints its result; it decides nothing else."""
