"""Reductions and scans in one fixed order."""
