"""Kernels over the last axis of arrays: softmax and norms."""
