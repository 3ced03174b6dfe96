"""Kernels of the learner: normal equations, triangular factors, clamps."""
