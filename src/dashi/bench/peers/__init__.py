"""The benches' work by other libraries (torch, JAX, NumPy, SciPy), timed between CUDA events and from CUDA graphs."""
