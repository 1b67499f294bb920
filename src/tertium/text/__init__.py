"""Pure functions on strings and word lists: distances, edits, n-grams; they know of no metric."""
