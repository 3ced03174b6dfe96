"""Kernels on the modes of real periodic fields, and the stages of the vorticity solver."""
