"""Cursors of the event log."""
