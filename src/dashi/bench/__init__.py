"""Measuring: kernels, transforms, flow steps, rollouts, identifiability; the peers beside them.

Each module times one thing on a device, checked first, and gives frozen rows; `peers` times the same work by other
libraries in the same process. The command line prints and saves what these return.
"""
