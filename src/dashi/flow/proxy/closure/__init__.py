"""The slaved closure: Galerkin with the band beyond z made from z, trained through rollouts."""
