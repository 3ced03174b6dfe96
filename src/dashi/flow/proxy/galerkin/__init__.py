"""Galerkin models: the truncated flow and its closures by an eddy viscosity."""
