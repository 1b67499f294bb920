"""Metrics that count: n-grams, edits, aligned words."""
