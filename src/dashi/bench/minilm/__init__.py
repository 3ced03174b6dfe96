"""all-MiniLM-L6-v2, a sentence transformer, as a graph: real weights, a tokeniser, and what a run takes."""
