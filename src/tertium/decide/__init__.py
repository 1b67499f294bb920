"""Decisions from scores, with their error probability."""
