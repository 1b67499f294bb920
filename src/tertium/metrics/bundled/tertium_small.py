"""tertium-small: fast calibrated metric for translations into English.

Trained on human scores, on scores of a larger teacher and on synthetic errors. A fine-tuned
six-layer encoder encodes hypothesis and reference separately; `LateInteraction` compares them.
Pairs of one reference are in one batch, in which it is encoded once.

Surface features of a pair: case, spacing, numbers, pronouns, negation, word order, length.

An uncased encoder cannot see these. They let a network on contextual vectors distinguish a changed
number or a lost capital letter from a paraphrase.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.fields import Sha256
from tertium.core.runtime import Precision
from tertium.core.segment import Against
from tertium.encoders.encoder import EncoderName
from tertium.encoders.tokenizer import Tokenizer
from tertium.encoders.transformer_encoder import build_encoder
from tertium.metrics.bundled.bundled_model import BundledModel
from tertium.metrics.bundled.calibrated_metric import (
    EnglishCalibratedMetric,
    EnglishModelSettings,
    PreparedRows,
)
from tertium.metrics.bundled.input_rows import (
    HYPOTHESIS,
    REFERENCE,
    Row,
    RowNetwork,
    collect_scores,
    distinct_texts,
)
from tertium.metrics.bundled.scales import HumanScale, LengthPenalty

if TYPE_CHECKING:
    from torch import Tensor

    from tertium.metrics.bundled.row_alignment import LateInteraction


MODEL = "tertium-small"
INT8_LAYERS = ("compare.0", "head.1")  # of the head, with fine activations
PAIRS_PER_REFERENCE = 8  # pairs of one reference in a batch, so that it is encoded once for them
Length = Literal["costs", "free"]


@dataclass(frozen=True, kw_only=True)
class HeadShape:
    """Sizes of the head: encoder layers, their width and the number of surface features."""

    layers: int
    dim: int
    surface: int
    dropout: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SmallSettings(EnglishModelSettings):
    """The `config.json` of tertium-small; `free` is the scale of raw scores without `length`."""

    layers: tuple[int, ...]
    head: HeadShape
    encoder_files: Mapping[str, Sha256]
    length: LengthPenalty
    free: HumanScale


class LateScorer(RowNetwork):
    """The encoder and the head that compares two encoded texts."""

    def __init__(self, model: BundledModel, precision: Precision, device: str) -> None:
        super().__init__(model, precision, device)
        self._settings = settings = model.settings(SmallSettings)
        self._encoder = build_encoder(
            EncoderName(MODEL, layer="+".join(map(str, settings.layers))),
            model.encoder_weights(settings.encoder_files),
            precision=precision,
            device=device,
        )
        self.max_length = self._encoder.max_length

    @property
    def tokenizer(self) -> Tokenizer:
        return self._encoder.tokenizer

    @property
    def max_pieces(self) -> int:
        return self._encoder.max_tokens

    @cached_property
    def _head(self) -> LateInteraction:
        from tertium.metrics.bundled.row_alignment import LateInteraction

        head = self._model.restore_network(
            lambda: LateInteraction(**asdict(self._settings.head)),
            "head.",
            int8_parts=INT8_LAYERS if self._precision == "int8" else (),
            fine_parts=INT8_LAYERS,
        )
        return head.to(self._encoder.network.device)

    def __call__(self, rows: Sequence[Row]) -> FloatArray:
        """Compute the raw score of each row, (rows, 1)."""
        encoder = self._encoder
        texts = distinct_texts(rows)
        ids = dict(zip(texts, encoder.encode_ids(texts), strict=True))
        groups = _group_by_reference(rows)
        sizes = []
        for group in groups:
            lengths = [len(ids[text]) for text in distinct_texts([rows[n] for n in group])]
            sizes.append(sum(lengths) + len(lengths) * encoder.tokenizer.special_count)

        def run(numbers: IntArray) -> tuple[IntArray, FloatArray]:
            batch = np.concatenate([groups[number] for number in numbers])
            scores = self._score_batch([rows[n] for n in batch], ids)
            return batch, scores.numpy()

        return collect_scores(encoder.network.map_batches(run, sizes), len(rows))

    def _score_batch(self, rows: Sequence[Row], ids: Mapping[str, list[int]]) -> Tensor:
        """Compute the raw scores of rows whose texts have these ids, (rows,)."""
        import torch

        from tertium.metrics.bundled.row_alignment import RowAlignment

        encoder = self._encoder
        texts = distinct_texts(rows)
        texts.sort(key=lambda text: len(ids[text]))  # texts of one length share a pass
        states = encoder.hidden_states([ids[text] for text in texts])
        places = {}
        for number, text in enumerate(texts):
            start = number * states.shape[2] + len(encoder.tokenizer.prefix_ids)
            places[text] = slice(start, start + len(ids[text]))
        slices = [{HYPOTHESIS: places[row[0]], REFERENCE: places[row[2] or ""]} for row in rows]
        features = surface_features([row[0] for row in rows], [row[2] or "" for row in rows])
        alignment = RowAlignment(slices, states.device, padded=encoder.network.device != "cpu")
        with torch.inference_mode():
            surface = torch.tensor(features).float().to(states.device)
            scores: Tensor = self._head(states.flatten(1, 2), alignment, surface)
        return scores.cpu()


@dataclass(frozen=True, kw_only=True, eq=False)
class TertiumSmall(EnglishCalibratedMetric):
    """Expected human score of a translation into English, 0 to 1.

        score = calibrate(network(hypothesis, reference) + length_penalty(reference))

    `calibrate` is a monotone map to standardized human scores. Only a hypothesis equal to its
    reference scores exactly 1. `uncertainty` is the standard deviation of held-out human scores
    around a score, `percentile` the percentage of WMT system outputs that score lower.

    Inputs: English references. References in other languages raise an error with alternatives.

    Settings:

    - `references`: `best` or `mean` score over several references.
    - `scale`: `da` for direct assessment, `mqm` for 1 - penalty / 25 under MQM.
    - `length`: `costs` penalizes longer references slightly, as MQM annotators find more errors in
      longer segments; `free` does not. The ranking of translations of one segment is the same.

    See also: `tertium-base` is larger, slower and agrees better with humans; BERTScore needs no
    training data; SentSim needs no references.

    >>> TertiumSmall().sentence_score("The train is late.", ["The train is late."])
    1.0
    """

    name: ClassVar[str] = MODEL
    title: ClassVar[str] = "tertium-small"
    network: ClassVar[type[RowNetwork]] = LateScorer

    length: Length = "costs"

    @property
    def settings(self) -> SmallSettings:
        return self.model.settings(SmallSettings)

    @property
    def calibration_suffix(self) -> str:
        # error sums depend on the length themselves
        is_shifted = self.scale == "da" and self.length == "costs"
        return f"+{self.settings.length}" if is_shifted else ""

    def da_scale(self, mode: Against) -> HumanScale:
        return self.settings.free if self.length == "free" else self.settings

    def da_raw_scores(self, prepared: PreparedRows) -> FloatArray:
        if self.length == "free":
            return prepared.raw
        return prepared.raw + self.settings.length.shift([row[2] or "" for row in prepared.rows])


def _group_by_reference(rows: Sequence[Row]) -> list[list[int]]:
    """Group the indices of rows with the same reference, a few at a time.

    >>> _group_by_reference([("x", None, "a"), ("x", None, "b"), ("y", None, "a")])
    [[0, 2], [1]]
    """
    groups: dict[str | None, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(row[2], []).append(number)
    return [
        numbers[start : start + PAIRS_PER_REFERENCE]
        for numbers in groups.values()
        for start in range(0, len(numbers), PAIRS_PER_REFERENCE)
    ]


FEATURE_NAMES = (
    "word recall",
    "word precision",
    "cased recall",
    "cased precision",
    "case agreement",
    "capital share difference",
    "bigram recall",
    "bigram precision",
    "trigram recall",
    "trigram precision",
    "longest run",
    "order",
    "length log ratio",
    "character log ratio",
    "space share difference",
    "number recall",
    "number precision",
    "name recall",
    "name precision",
    "gender difference",
    "negation difference",
    "repetition",
    "punctuation recall",
    "punctuation precision",
    "content recall",
    "content precision",
    "letters outside ASCII",
    "empty",
    "identical",
    "reference length",
)

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|\w+(?:['’]\w+)?|[^\w\s]")
_MALE = frozenset("he him his himself man boy mr".split())
_FEMALE = frozenset("she her hers herself woman girl mrs ms".split())
_NEGATIONS = frozenset("not no never none nothing nobody neither nor without cannot".split())
_COMMON = frozenset(
    "the a an of to in and is that for on with as was by at be it this are from or have has had "
    "but not he she they we you i his her their its our which who will would been were all".split()
)
_NUMBER_WORDS = frozenset(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion".split()
)


NUMBER, PUNCTUATION, CONTENT, MALE, FEMALE, NEGATION = (1 << n for n in range(6))


class TextCounts(NamedTuple):
    """Counts of one text, computed once for all its pairs."""

    text: str
    words: tuple[str, ...]  # lowercased tokens
    bigrams: Counter[tuple[str, str]]
    kinds: tuple[Counter[Any], ...]  # what recall and precision compare, in the order of the names
    gender: int  # more male than female words
    negations: int
    capitals: float
    spaces: float
    non_ascii: float


def surface_features(hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
    """Return the surface features of each pair of texts, (n, len(FEATURE_NAMES)).

    >>> row = surface_features(["he paid 30 euros"], ["she paid 20 euros"])[0]
    >>> dict(zip(FEATURE_NAMES, row.tolist()))["number recall"]
    0.0
    """
    rows = [
        _compare(analyze_text(hypothesis), analyze_text(reference))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(FEATURE_NAMES))


@lru_cache(maxsize=256)  # 20 KB each; pairs of one reference are adjacent
def analyze_text(text: str) -> TextCounts:
    """Count words, n-grams and word classes of a text."""
    tokens = _TOKEN.findall(text)
    words = tuple([token.lower() for token in tokens])
    classes = [_word_classes(word) for word in words]
    capitals, non_ascii = _letter_shares(text)

    def words_of(word_class: int) -> list[str]:
        return [word for word, own in zip(words, classes, strict=True) if own & word_class]

    bigrams = Counter(pairwise(words))
    kinds = (
        Counter(words),
        Counter(tokens),
        bigrams,
        Counter(zip(words, words[1:], words[2:], strict=False)),
        Counter(words_of(NUMBER)),
        Counter([token for token in tokens[1:] if token[0].isupper()]),  # names
        Counter(words_of(PUNCTUATION)),
        Counter(words_of(CONTENT)),
    )
    return TextCounts(
        text=text,
        words=words,
        bigrams=bigrams,
        kinds=kinds,
        gender=len(words_of(MALE)) - len(words_of(FEMALE)),
        negations=len(words_of(NEGATION)),
        capitals=capitals,
        spaces=text.count(" ") / max(len(text), 1),
        non_ascii=non_ascii,
    )


@lru_cache(maxsize=1 << 14)
def _word_classes(word: str) -> int:
    """Return the bit mask of the classes of a lowercased word."""
    is_word = word[0].isalnum()
    return (
        NUMBER * (word[0].isdigit() or word in _NUMBER_WORDS)
        + PUNCTUATION * (not is_word)
        + CONTENT * (is_word and word not in _COMMON)
        + MALE * (word in _MALE)
        + FEMALE * (word in _FEMALE)
        + NEGATION * (word in _NEGATIONS or word.endswith(("n't", "n’t")))
    )


def _letter_shares(text: str) -> tuple[float, float]:
    """Return the fractions of letters that are capitals, and that are outside ASCII."""
    alphabetic = [c for c in text if c.isalpha()]
    count = max(len(alphabetic), 1)
    capitals = sum([c.isupper() for c in alphabetic])
    return capitals / count, sum([c > "\x7f" for c in alphabetic]) / count


def _compare(h: TextCounts, r: TextCounts) -> list[float]:
    overlaps, shares = list[int](), list[float]()  # shares: recall and precision of each kind
    for left, right in zip(h.kinds, r.kinds, strict=True):
        common = sum([min(left[key], right[key]) for key in left.keys() & right.keys()])
        overlaps.append(common)
        shares += [_ratio(common, right.total()), _ratio(common, left.total())]
    return [
        *shares[:4],
        _ratio(overlaps[1], overlaps[0]),  # cased words among words
        h.capitals - r.capitals,
        *shares[4:8],
        longest_run(h.words, r.words) / max(len(r.words), 1),
        order_agreement(h.words, r.words),
        _log_ratio(len(h.words), len(r.words)),
        _log_ratio(len(h.text), len(r.text)),
        20 * (h.spaces - r.spaces),
        *shares[8:12],
        float(h.gender != r.gender),
        float((h.negations > 0) != (r.negations > 0)) + 0.5 * float(h.negations != r.negations),
        _repetition(h) - _repetition(r),
        *shares[12:],
        h.non_ascii - r.non_ascii,
        float(not h.words),
        float(h.text == r.text),
        math.log1p(len(r.words)) / 4,
    ]


def longest_run(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest sequence of words that both texts share.

    >>> longest_run("a b c d".split(), "x b c y".split())
    2
    """
    codes = {word: n for n, word in enumerate(dict.fromkeys(right))}
    target = np.array([codes[word] for word in right])
    best = 0
    runs = np.zeros(len(right) + 1, dtype=np.int64)
    for word in left:
        runs[1:] = (runs[:-1] + 1) * (target == codes.get(word, -1))
        best = max(best, int(runs.max()))
    return best


def order_agreement(left: Sequence[str], right: Sequence[str]) -> float:
    """Return the fraction of pairs of words, unique in both texts, that are in the same order.

    The result is 1 if there is no such pair.

    >>> order_agreement("a b c".split(), "c b a".split())
    0.0
    """
    position = {word: n for n, word in enumerate(right)}
    repeated = {w for w, n in Counter(left).items() if n > 1}
    repeated |= {w for w, n in Counter(right).items() if n > 1}
    earlier: list[int] = []  # sorted positions in the right text of the words visited so far
    ordered = 0
    for word in left:
        if word in position and word not in repeated:
            ordered += bisect_left(earlier, position[word])
            insort(earlier, position[word])
    return ordered / (len(earlier) * (len(earlier) - 1) / 2) if len(earlier) > 1 else 1.0


def _ratio(part: float, total: float) -> float:
    return part / total if total else 1.0


def _log_ratio(a: int, b: int) -> float:
    return math.log((a + 1) / (b + 1))


def _repetition(s: TextCounts) -> float:
    total = s.bigrams.total()
    adjacent = sum([a == b for a, b in pairwise(s.words)])
    return (1 - len(s.bigrams) / total if total else 0.0) + 0.5 * adjacent
