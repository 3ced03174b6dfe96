"""Kernels from compact states back to fields: draws, smoothing, majorities, counts."""
