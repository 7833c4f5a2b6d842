"""Gated tools in agent frameworks: a run pauses on the gate with the framework's own human-in-the-loop mechanism."""
