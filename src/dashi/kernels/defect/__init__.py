"""Kernels that measure how far two states differ."""
