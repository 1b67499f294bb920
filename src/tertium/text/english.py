"""Is this English? Answered by the small words that every English text is full of."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"[^\W\d_]+")
SMALL_WORDS = frozenset(
    "the of and to a in that is was he for it with as his on be at by i this had not are but from "
    "or have an they which one you were her all she there would their we him been has when who "
    "will more no if out so said what up its about into than them can only other new some could "
    "time these two may then do first any my now such like our over man me even most made after "
    "also did many before must through years where much your way well down should because each "
    "just those people mr how too little good very make world still own see men work long get "
    "here between both life being under never day same another know while last might us great "
    "old year off come since against go came right used take three".split()
)
ENGLISH_SHARE = 0.15
ENOUGH_WORDS = 40


def small_word_share(texts: Iterable[str]) -> tuple[float, int]:
    """The share of English small words among all words, and the number of words.

    >>> small_word_share(["the cat sat on the mat"])
    (0.5, 6)
    """
    words = [word.lower() for text in texts for word in _WORD.findall(text)]
    return (sum(word in SMALL_WORDS for word in words) / max(len(words), 1), len(words))


def looks_english(texts: Iterable[str]) -> bool:
    """Whether texts may be English; too few words to tell are given the benefit of the doubt.

    >>> looks_english(["Die Katze sitzt auf der Matte, und der Hund liegt daneben."] * 5)
    False
    """
    share, count = small_word_share(texts)
    return count < ENOUGH_WORDS or share >= ENGLISH_SHARE
