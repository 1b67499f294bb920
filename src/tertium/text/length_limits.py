"""Limits on the length of a text, where cost grows faster than length.

All such limits are here, except those of a publication or model (the window of a transformer, the
shifts that TER tries). Text above a limit is cut or handled approximately, and the metric counts it
in the `warnings` of its scores. Texts of 400 words are below all limits.
"""

from __future__ import annotations

MAX_PARSED_CHARACTERS = 20_000
MAX_PARSED_WORDS = 1_500  # including punctuation; aligning two parses is quadratic
MAX_ENCODED_TOKENS = 2_048  # for encoders without a limit; all tokens of two texts are compared
MAX_JOINT_PIECES = 2_048  # of a text that a joint network reads in windows
MAX_WORD_MATCHES = 400 * 400  # in one stage; above, METEOR matches frequent words only nearby
MAX_PARAPHRASE_PAIRS = 1 << 16  # phrase pairs among which METEOR searches
