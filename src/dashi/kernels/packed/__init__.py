"""Products with weights in the block formats of GGUF files, which are never widened in memory."""
