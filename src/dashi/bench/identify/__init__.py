"""The identifiability benchmark: which operators learners can recover from which observations."""
