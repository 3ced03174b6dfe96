"""The ternary carrier, and the checker of kernels on it."""
