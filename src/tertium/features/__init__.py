"""Segments to named columns of numbers, for regressions and other learned metrics."""
