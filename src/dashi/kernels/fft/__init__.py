"""Fourier transforms: lengths, radices and roots, layouts on workgroups, passes, the NumPy reference."""
