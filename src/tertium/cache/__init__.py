"""What is kept on disk: vectors, arrays made once, rows of numbers, and where all that lies."""
