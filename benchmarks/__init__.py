"""Side-by-side runs against what a user would pick instead, on the same texts, in one process."""
