"""Pure functions on strings: distances, edits, n-grams, languages; they know of no metric."""
