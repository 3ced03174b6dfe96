"""Operators over states: their kinds, their checks, and how one comes back from a file's arrays."""
