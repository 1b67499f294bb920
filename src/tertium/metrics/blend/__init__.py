"""Blends: weighted sums of the scores of other metrics."""
