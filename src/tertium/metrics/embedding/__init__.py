"""Untrained metrics that compare the vectors of an encoder."""
