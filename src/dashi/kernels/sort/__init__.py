"""Sorting: stable, by radix, of keys of 32 and 64 bits; what it means in NumPy, and its passes."""
