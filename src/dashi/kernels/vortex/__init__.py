"""Kernels over vortex atoms: the velocity that they induce on each other."""
