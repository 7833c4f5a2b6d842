"""Contracts that stores implement, and the in-memory reference stores."""
