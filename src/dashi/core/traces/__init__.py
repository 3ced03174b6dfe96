"""Traces of a run: written, read, and taken from a device's queue."""
