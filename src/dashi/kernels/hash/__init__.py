"""The BLAKE3 hash of states, on devices and on the host."""
