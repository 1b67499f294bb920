"""Corpora of any size: read in parts, scored by any number of workers, each part exactly once."""
