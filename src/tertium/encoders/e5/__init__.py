"""multilingual-e5: convert its 4-bit checkpoint into a model folder."""
