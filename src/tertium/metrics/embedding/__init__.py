"""Metrics over an encoder's vectors that were not trained on judgments."""
