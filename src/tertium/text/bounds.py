"""How much of one line is read where cost would grow faster than its length.

Every bound on the length of a text stands here but those that a publication or a model sets itself:
a transformer sees so many pieces at a time, and TER tries the shifts that sacrebleu tries. Beyond
a bound something is left out, which a metric counts among the `warnings` of its scores; texts of
some 500 words lie below all of them.
"""

from __future__ import annotations

PARSED_CHARACTERS = 20_000
PARSED_WORDS = 1_500  # words and marks; aligning two parses grows with the square of them
ENCODED_PIECES = 2_048  # of encoders without a length of their own; all meet all of another text
JUDGED_PIECES = 2_048  # of a text that a joint network reads, in windows
PARAPHRASES = 1 << 16  # pairs of phrases that METEOR's search may choose from
