"""Files: run folders, safe reading of arrays, metrics."""
