"""Test sets under metrics: scores, comparisons of systems, resampling."""
