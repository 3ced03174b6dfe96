"""Ternary fields: thresholds, majorities, annihilation, packing."""
