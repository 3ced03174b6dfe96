"""Kernels that gather, scatter and tile by index."""
