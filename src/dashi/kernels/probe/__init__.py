"""Kernels that find out what a device does: loops, maths, residence."""
