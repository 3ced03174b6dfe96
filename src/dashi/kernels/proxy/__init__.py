"""Stages and rollouts of Galerkin models, and the way between modes and compact states."""
