"""Certificates of rollouts: their inputs, their repetition, and checkpoints to go on from."""
