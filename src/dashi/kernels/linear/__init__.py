"""Dense and sparse products, and rollouts of linear operators."""
