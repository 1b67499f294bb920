"""Is this English? A cheap answer, for a warning: common English words and letters of its script.

A text is doubted only when it is long enough to tell: most of its letters are not Latin, or of its
words hardly any is among the commonest of English and few are in WordNet.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from tertium.linguistics.wordnet import load_wordnet
from tertium.text.english import SMALL_WORDS

ENOUGH = 5  # words below which a text is not judged by its words

_COMMON = SMALL_WORDS | set("back does told state i'm can't we're don't it's".split())
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


@lru_cache(maxsize=1 << 13)
def may_be_english(text: str) -> bool:
    """Whether nothing speaks against a text being English.

    >>> may_be_english("The cat sat on the mat."), may_be_english("Die Katze sitzt auf der Matte.")
    (True, False)
    >>> may_be_english("Кошка сидит"), may_be_english("Angela Merkel"), may_be_english("")
    (False, True, True)
    """
    letters = [c for c in text if c.isalpha()]
    if not letters:
        return True
    latin = sum(c.isascii() or "LATIN" in unicodedata.name(c, "") for c in letters)
    if latin < 0.7 * len(letters):
        return False
    words = [word.lower().replace("’", "'") for word in _WORD.findall(text)]
    if len(words) < ENOUGH:
        return True
    common = sum(word in _COMMON for word in words) / len(words)
    if common >= 0.2:
        return True
    wordnet = load_wordnet()
    listed = sum(word in _COMMON or bool(wordnet.rows(word)) for word in words) / len(words)
    return listed >= (0.5 if common >= 0.1 else 0.7)
