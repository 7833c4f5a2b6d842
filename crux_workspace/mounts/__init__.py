"""Which mount a path belongs to, and what may be done there."""
