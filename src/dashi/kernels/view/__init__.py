"""Kernels that make images of fields."""
