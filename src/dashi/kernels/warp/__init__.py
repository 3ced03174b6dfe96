"""Warps of images and fields."""
