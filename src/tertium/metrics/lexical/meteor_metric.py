"""METEOR 1.5: weighted precision and recall of aligned words, with a fragmentation penalty.

Denkowski and Lavie 2014, Meteor Universal: Language Specific Translation Evaluation for Any Target
Language. The alignment is computed by `tertium.text.meteor_alignment`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, islice
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import MissingResourceError, UsageError
from tertium.core.fields import Range, normalize_number
from tertium.core.segment import Segment
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.paraphrase_table import ParaphraseTable, load_paraphrases
from tertium.metrics.base.text_warnings import (
    Flags,
    as_flags,
    drop_tokenized_flags,
    flag_not_english,
)
from tertium.metrics.base.wordnet import DETACHMENTS, POS, WordNet, load_wordnet
from tertium.text import length_limits
from tertium.text.language_codes import LANGUAGE_CODES
from tertium.text.meteor_alignment import STAGES, MeteorAlignment, align, find_matches
from tertium.text.meteor_tokens import function_words, has_stemmer, stemmer, tokenize_meteor

ALIASES = {"cz": "cs", "se": "sv"}  # language codes of METEOR 1.5
LANGUAGES = frozenset({*LANGUAGE_CODES, *ALIASES, "other"})


class Parameters(NamedTuple):
    """Parameters tuned on human rankings, and match weights by stage."""

    alpha: float
    beta: float
    gamma: float
    delta: float
    exact: float = 1.0
    stem: float = 0.5
    synonym: float = 0.5
    paraphrase: float = 0.5


RANKING: Mapping[str, Parameters] = {
    "en": Parameters(0.85, 0.2, 0.6, 0.75, stem=0.6, synonym=0.8, paraphrase=0.6),
    "cs": Parameters(0.95, 0.2, 0.6, 0.8, paraphrase=0.4),
    "de": Parameters(0.95, 1.0, 0.55, 0.55, stem=0.8, paraphrase=0.2),
    "es": Parameters(0.65, 1.3, 0.5, 0.8, stem=0.8, paraphrase=0.6),
    "fr": Parameters(0.9, 1.4, 0.6, 0.65, stem=0.2, paraphrase=0.4),
}
ANY_LANGUAGE = Parameters(0.75, 1.4, 0.7, 0.5)

# Up to this many word pairs, two texts cannot have too many paraphrases.
FEW_WORD_PAIRS = 200 * 200

SIDES = ("hypothesis", "reference")
KINDS = ("content", "function")
GROUPS = [f"{side}_{kind}" for side in SIDES for kind in KINDS]  # of words
COLUMNS = (
    *(f"{group}_words" for group in GROUPS),
    *(f"{group}_{stage}" for group in GROUPS for stage in STAGES),
    "chunks",
)


class Parts(NamedTuple):
    """Components of a METEOR score, each of the shape of the scores."""

    precision: FloatArray
    recall: FloatArray
    f_mean: FloatArray
    fragmentation: FloatArray
    penalty: FloatArray


@dataclass(frozen=True, kw_only=True)
class METEOR(Metric):
    """Harmonic mean of weighted precision and recall of aligned words, minus a penalty, 0 to 1.

        P = sum_s w_s (delta m_s(content) + (1 - delta) m_s(function)) over hypothesis words,
            divided by delta |content words| + (1 - delta) |function words|; R over reference words
        F = P R / (alpha P + (1 - alpha) R)
        METEOR = F (1 - gamma (chunks / mean matched words)^beta)

    m_s is the number of words matched in stage s. An identical hypothesis scores 1: a single chunk
    that covers both texts carries no penalty. With several references, the best one counts.

    Settings:

    - `language`: a code such as `en`, `de` or `cs`, or `other`. English has the stages exact, stem,
      synonym (WordNet) and paraphrase (if a table is given). Other languages have no synonyms, and
      stems only where Snowball supports them. Parameters are METEOR's published ones for en, cs,
      de, es and fr, and its universal ones otherwise.
    - `synonyms`: use WordNet. `paraphrases`: a table in METEOR's format, or an installed package
      that contains METEOR's own (`pycocoevalcap`).
    - `normalise`: tokenize and lowercase like METEOR's `-norm`; otherwise split at white space.
      `lowercase`: ignore case.
    - `alpha`, `beta`, `gamma`, `delta`: override the published parameters.
    - `beam`: beam width of the alignment search.

    Scores equal those of METEOR 1.5 with `-l en -norm` (and `-m 'exact stem synonym'` without a
    table), except that:

    - stems come from current Snowball, which differs for about two words in a thousand;
    - words are compared as strings, not by a 32-bit hash that has collisions;
    - all Unicode spaces separate words;
    - other languages use their own function words, as METEOR does only with `-s`;
    - languages that METEOR cannot normalize are tokenized into runs of letters and single
      ideographs.

    See also: chrF and BLEU match surface strings; BERTScore aligns by vectors.

    >>> meteor = METEOR(synonyms=False)
    >>> round(meteor.sentence_score("The cats sat on a mat.", ["The cat sat on the mat."]), 4)
    0.4306
    """

    name: ClassVar[str] = "meteor"
    title: ClassVar[str] = "METEOR"
    citation: ClassVar[str] = """\
@inproceedings{denkowski-lavie-2014-meteor,
    title = "Meteor Universal: Language Specific Translation Evaluation for Any Target Language",
    author = "Denkowski, Michael and Lavie, Alon",
    booktitle = "Proceedings of the Ninth Workshop on Statistical Machine Translation",
    year = "2014", pages = "376--380"
}"""

    language: str = "en"
    synonyms: bool = True
    paraphrases: str | None = None
    normalise: bool = True
    lowercase: bool = True
    alpha: Annotated[float | None, Range(0, 1)] = None
    beta: Annotated[float | None, Range(0)] = None
    gamma: Annotated[float | None, Range(0, 1)] = None
    delta: Annotated[float | None, Range(0, 1)] = None
    beam: Annotated[int, Range(1)] = 40

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise UsageError(
                f"language={self.language} is not supported: expected a two-letter code (en, de, "
                "cs ...), or language=other for any other language"
            )

    @property
    def code(self) -> str:
        """The ISO 639 code of the language."""
        return ALIASES.get(self.language, self.language)

    @property
    def stages(self) -> tuple[str, ...]:
        """The matching stages in use: exact, stem, synonym, paraphrase."""
        is_used = {
            "exact": True,
            "stem": has_stemmer(self.code),
            "synonym": self.synonyms and self.code == "en",
            "paraphrase": self.paraphrases is not None,
        }
        return tuple(stage for stage in STAGES if is_used[stage])

    @property
    def parameters(self) -> Parameters:
        """The published parameters of the language, overridden by the fields that are set."""
        own = {"alpha": self.alpha, "beta": self.beta, "gamma": self.gamma, "delta": self.delta}
        published = RANKING.get(self.code, ANY_LANGUAGE)
        return published._replace(**{key: value for key, value in own.items() if value is not None})

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS

    def tokens(self, text: str) -> tuple[str, ...]:
        """Return the normalized words of a text."""
        if self.normalise:
            return tokenize_meteor(text, self.code)
        return tuple((text.lower() if self.lowercase else text).split())

    def alignment(self, hypothesis: str, reference: str) -> MeteorAlignment:
        """Align the words of a hypothesis with those of a reference.

        >>> a = METEOR(synonyms=False).alignment("Two cats sat.", "A cat sat.")
        >>> [(m.stage, a.hypothesis[m.hypothesis_start]) for m in a.matches]
        [('stem', 'cats'), ('exact', 'sat'), ('exact', '.')]
        """
        left = self.tokens(hypothesis)
        right = self.tokens(reference)
        table = self._paraphrase_table()
        if table is not None and _has_too_many_paraphrases(table, left, right):
            table = None
        return align(
            left,
            right,
            stem=self._stem,
            senses=self._senses,
            paraphrases=table.find_matches if table is not None else None,
            beam=self.beam,
        )

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        function = function_words(self.code)

        @cache
        def row(hypothesis: str, reference: str) -> FloatArray:
            return meteor_statistics(self.alignment(hypothesis, reference), function)

        rows = np.empty((len(segments), len(COLUMNS)))
        for number, segment in enumerate(segments):
            options = np.stack([row(segment.hypothesis, r) for r in segment.references])
            best = int(np.argmax(self.reduce(options))) if len(options) > 1 else 0
            rows[number] = options[best]
        return rows

    def reduce(self, totals: FloatArray) -> FloatArray:
        parts = self.parts(totals)
        return parts.f_mean * np.maximum(1 - parts.penalty, 0)

    def parts(self, totals: FloatArray) -> Parts:
        """Compute precision, recall, their mean, fragmentation and penalty from statistics."""
        alpha, beta, gamma, delta, *weights = self.parameters
        lengths = totals[..., :4].reshape(*totals.shape[:-1], 2, 2)  # (..., side, kind)
        matches = totals[..., 4:-1].reshape(*totals.shape[:-1], 2, 2, len(STAGES))
        kinds = np.array([delta, 1 - delta])
        ratio = _divide(matches @ np.array(weights) @ kinds, lengths @ kinds)  # (..., side)
        precision = ratio[..., 0]
        recall = ratio[..., 1]
        f_mean = _divide(precision * recall, alpha * precision + (1 - alpha) * recall)
        words = matches.sum(axis=(-3, -2, -1)) / 2  # mean of both sides
        fragmentation = _divide(totals[..., -1], words)
        return Parts(precision, recall, f_mean, fragmentation, gamma * fragmentation**beta)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        p = self.parameters
        case = "lc" if self.normalise or self.lowercase else "mixed"
        fields = {
            "lang": self.code,
            "case": case,
            "tok": "meteor" if self.normalise else "none",
            "stages": "+".join(self.stages),
            "params": "/".join(str(normalize_number(value, int | float)) for value in p[:4]),
            "beam": str(self.beam),
        }
        if self.paraphrases is not None:
            fields["paraphrases"] = load_paraphrases(self.paraphrases).digest
        return fields

    def verbose(self, totals: FloatArray) -> str:
        p = self.parts(totals)
        return (
            f"P = {float(p.precision):.3f} R = {float(p.recall):.3f} F = {float(p.f_mean):.3f} "
            f"penalty = {float(p.penalty):.3f} chunks = {totals[-1]:.0f}"
        )

    def flags(self, segments: Sequence[Segment]) -> Flags:
        flags = super().flags(segments)
        table = self._paraphrase_table()
        if not self.normalise:
            flags = drop_tokenized_flags(flags)
        if self.language == "en":
            flags["reference not English"] = flag_not_english(segments)
        is_limited = as_flags(self._has_too_many_matches(segment) for segment in segments)
        flags["long text, frequent words matched nearby only"] = is_limited
        if table is not None:
            flags["too many paraphrases, left out"] = as_flags(
                any(
                    _has_too_many_paraphrases(table, self.tokens(s.hypothesis), self.tokens(text))
                    for text in s.references
                )
                for s in segments
            )
        return flags

    def _has_too_many_matches(self, segment: Segment) -> bool:
        """Return whether some matches of a long text are no candidates for its alignment."""
        limit = length_limits.MAX_WORD_MATCHES
        length = len(segment.hypothesis)
        long_references = [r for r in segment.references if len(r) * length > limit]
        if not long_references:
            return False
        words = self.tokens(segment.hypothesis)
        return any(
            find_matches(words, self.tokens(text), self._stem, self._senses)[1]
            for text in long_references
        )

    @property
    def _stem(self) -> Callable[[str], str] | None:
        return stemmer(self.code) if "stem" in self.stages else None

    @property
    def _senses(self) -> Callable[[str], frozenset[str]] | None:
        return _load_senses() if "synonym" in self.stages else None

    def _paraphrase_table(self) -> ParaphraseTable | None:
        return load_paraphrases(self.paraphrases) if self.paraphrases is not None else None


def meteor_statistics(alignment: MeteorAlignment, function: frozenset[str]) -> FloatArray:
    """Return the statistics of one alignment, (21,); a chunk that covers both texts counts as 0."""
    sides = alignment.hypothesis, alignment.reference
    is_function = [[word.lower() in function for word in words] for words in sides]
    counts = [[0] * len(STAGES) for _ in GROUPS]
    for stage, start, length, at, extent in alignment.matches:
        column = STAGES.index(stage)
        for j in range(start, start + length):
            counts[is_function[0][j]][column] += 1
        for i in range(at, at + extent):
            counts[2 + is_function[1][i]][column] += 1
    lengths = [n for flags in is_function for n in (len(flags) - sum(flags), sum(flags))]
    matched = [*chain.from_iterable(counts)]
    is_complete = alignment.chunks == 1 and sum(matched) == sum(lengths)
    return np.array([*lengths, *matched, 0 if is_complete else alignment.chunks], dtype=np.float64)


def _has_too_many_paraphrases(
    table: ParaphraseTable, hypothesis: tuple[str, ...], reference: tuple[str, ...]
) -> bool:
    """Return whether two texts have too many paraphrase matches for the alignment search."""
    limit = length_limits.MAX_PARAPHRASE_PAIRS
    # Counting costs as much as a lookup, and short texts cannot have too many.
    if len(hypothesis) * len(reference) <= FEW_WORD_PAIRS:
        return False
    matches = islice(table.find_matches(hypothesis, reference), limit + 1)
    return sum(1 for _ in matches) > limit


def _divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    zero = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    return np.divide(numerator, denominator, out=zero, where=denominator > 0)


def _load_senses() -> Callable[[str], frozenset[str]]:
    try:
        load_wordnet()
    except MissingResourceError as error:
        raise MissingResourceError(
            f"{error}; or score without synonyms: meteor:synonyms=false"
        ) from None
    return word_senses


@lru_cache(maxsize=1 << 16)
def word_senses(word: str) -> frozenset[str]:
    """Return the synset offsets of a word; METEOR matches words that share an offset.

    Covers the word and its base forms in all parts of speech. Base forms are the irregular ones, or
    else the first that WordNet's rules for nouns, verbs and adjectives give. As in METEOR, synsets
    of different parts of speech with the same offset are not distinguished.
    """
    wordnet = load_wordnet()
    forms = {word, *_base_forms(wordnet, word)}
    offsets: set[str] = set()
    for form in forms:
        for pos in POS:
            offsets.update(synset[1:] for synset in wordnet.lemma_synsets(form, pos))
    return frozenset(offsets)


def _base_forms(wordnet: WordNet, word: str) -> tuple[str, ...]:
    irregular = [base for pos in POS for base in wordnet.exceptions.get((word, pos), ())]
    if irregular or word.endswith("ss") or len(word) <= 2:
        return tuple(irregular)
    for pos in ("n", "v", "a"):
        for ending, base in DETACHMENTS[pos]:
            form = word[: len(word) - len(ending)] + base
            if word.endswith(ending) and form in wordnet:
                return (form,)
    return ()
