"""What was seen of a run, what became of it, and pictures of it."""
