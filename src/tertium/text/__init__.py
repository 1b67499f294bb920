"""Pure functions on strings: edit distances, n-grams, METEOR alignment, languages and scripts."""
