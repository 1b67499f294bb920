"""Lexical metrics: n-gram matches, edits and word alignments."""
