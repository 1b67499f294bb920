"""Pairwise ranking of translations given the reference (Guzmán et al. 2015)."""
