"""Attention: weighted means of values, with weights that queries and keys give."""
