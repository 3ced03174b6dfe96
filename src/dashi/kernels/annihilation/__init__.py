"""Kernels that look at fields scale by scale: what is active at a scale, and how it lies on the next coarser one."""
