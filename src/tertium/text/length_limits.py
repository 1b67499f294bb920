"""How much of one line is read where cost would grow faster than its length.

Every bound on the length of a text stands here but those that a publication or a model sets itself:
a transformer sees so many pieces at a time, and TER tries the shifts that sacrebleu tries. Beyond
a bound something is left out, which a metric counts among the `warnings` of its scores; texts of
some 500 words lie below all of them.
"""

from __future__ import annotations

MAX_PARSED_CHARACTERS = 20_000
MAX_PARSED_WORDS = 1_500  # words and marks; aligning two parses grows with the square of them
MAX_ENCODED_TOKENS = (
    2_048  # of encoders without a length of their own; all meet all of another text
)
MAX_JOINT_PIECES = 2_048  # of a text that a joint network reads, in windows
MAX_PARAPHRASE_PAIRS = 1 << 16  # pairs of phrases that METEOR's search may choose from
