"""multilingual-e5: a file of four-bit weights read and written as an ordinary model folder."""
