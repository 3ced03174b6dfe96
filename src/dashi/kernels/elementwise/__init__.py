"""Kernels that compute every value from the values at its index."""
