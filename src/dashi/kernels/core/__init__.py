"""Kernels of compact states: observers, band operators, steps and rollouts of lists."""
