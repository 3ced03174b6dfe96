"""Machine code that vendors' compilers make of kernels: compiled without their hardware, read, and counted."""
