"""Published formats of human data: one module each."""
