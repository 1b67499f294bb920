"""Rows: a translation with the texts that a network compares it with.

These are its source, its reference or both. A segment with several references has a row for each.

Split long texts into aligned windows that fit the positions of a network.

If one text of a row is too long, all its texts are split into the same number of windows. The n-th
window of the translation goes with the n-th window of the source. The translation is split evenly,
the other texts at the same fractions of their length. Cuts move to a nearby sentence or word end.
The score of a row is the mean over its windows, by length.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray, IntArray
from tertium.core.extras import require_modules
from tertium.core.runtime import Precision, progress_task
from tertium.core.segment import Against, Segment
from tertium.encoders.batching import split_by_size
from tertium.encoders.tokenizer import Tokenizer, find_longer, find_out_of_vocabulary
from tertium.metrics.bundled.bundled_model import BundledModel
from tertium.text.length_limits import MAX_JOINT_PIECES

HYPOTHESIS, SOURCE, REFERENCE = range(3)  # roles of texts: their places in a row
Row = tuple[str, str | None, str | None]  # hypothesis, source, reference; None if not used
INPUT_MODES: tuple[Against, ...] = ("source", "reference", "both")


def build_rows(segments: Sequence[Segment], mode: Against) -> tuple[IntArray, list[Row]]:
    """Return the index of the segment of each row, and the rows.

    >>> build_rows([Segment("a", "A", ("x", "y"))], "both")
    (array([0, 0]), [('a', 'A', 'x'), ('a', 'A', 'y')])
    >>> build_rows([Segment("a", "A", ("x", "y"))], "source")[1]
    [('a', 'A', None)]
    """
    owners = []
    rows = []
    for number, segment in enumerate(segments):
        source = None if mode == "reference" else segment.source or ""
        for reference in (None,) if mode == "source" else segment.references:
            owners.append(number)
            rows.append((segment.hypothesis, source, reference))
    return np.array(owners, dtype=np.int64), rows


def distinct_texts(rows: Sequence[Row]) -> list[str]:
    """List the distinct texts of rows, in order of first appearance."""
    return list(dict.fromkeys(text for row in rows for text in row if text is not None))


def reference_or_source(row: Row) -> str:
    """Return the reference of a row, or its source if there is no reference.

    >>> reference_or_source(("a", "A", "b")), reference_or_source(("a", "A", None))
    ('b', 'A')
    """
    return row[1] or "" if row[2] is None else row[2]


def row_key(row: Row) -> str:
    """Return a string that identifies the texts of a row.

    >>> row_key(("a", None, "bc"))
    '1 - 2abc'
    """
    lengths = " ".join("-" if text is None else str(len(text)) for text in row)
    return lengths + "".join(text or "" for text in row)


class RowNetwork(ABC):
    """A network with its tokenizer.

    `max_length` is the number of positions, special tokens included.
    """

    max_length: int

    def __init__(self, model: BundledModel, precision: Precision, device: str) -> None:
        require_modules("torch", "tokenizers", purpose=model.folder.name)
        self._model = model
        self._precision = precision
        self._device = device

    @property
    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of all texts."""

    @property
    @abstractmethod
    def max_pieces(self) -> int:
        """The number of pieces of a text that are read."""

    @abstractmethod
    def __call__(self, rows: Sequence[Row]) -> Iterable[Float32Array | FloatArray]:
        """Compute the raw outputs of rows of one input mode, (k,) each; the first is a score."""

    def find_truncated(self, texts: Sequence[str]) -> set[str]:
        return find_longer(texts, self.max_pieces, self.tokenizer)

    def find_out_of_vocabulary(self, texts: Sequence[str]) -> set[str]:
        return find_out_of_vocabulary(texts, self.tokenizer)


@lru_cache(maxsize=4)
def load_network(
    network: type[RowNetwork], model: BundledModel, precision: Precision, device: str
) -> RowNetwork:
    """Return the network of a model with its tokenizer, cached."""
    return network(model, precision, device)


def collect_scores(parts: Iterable[tuple[IntArray, FloatArray]], count: int) -> FloatArray:
    """Return the scores of pairs in order, (count, 1), given batches of indices with scores."""
    scores = np.zeros((count, 1))
    with progress_task("scoring pairs", total=count) as advance:
        for pairs, values in parts:
            scores[pairs, 0] = values
            advance(len(pairs))
    return scores


RoleIds = tuple[int, tuple[int, ...]]  # role and piece ids of a text
Window = tuple[RoleIds, ...]  # one window of each text of a row, the hypothesis first
SPECIALS = 2  # <s> and </s> around every text
SLACK = 0.05  # how far a cut may move, as a fraction of the window, in either direction
# A window may grow by the slack at both ends, again where it follows a cut of the translation, and
# by rounding.
GROWTH = 1 + 6 * SLACK
WORD_START = "▁"  # prefix of the first piece of a word
SENTENCE_ENDS = tuple(".!?…。！？؟।")


def align_windows(texts: Sequence[Sequence[str]], max_pieces: int) -> list[tuple[slice, ...]]:
    """Return windows of at most `max_pieces` over tokenized texts, the translation first.

    Texts that fit get one window. Pieces after the first `MAX_JOINT_PIECES` of the longest text are
    dropped, and the same fraction of the other texts.

    >>> align_windows([["▁a"] * 4, ["▁b"] * 2], max_pieces=4)
    [(slice(0, 4, None), slice(0, 2, None))]
    >>> align_windows([["▁a"] * 10, ["▁b"] * 5], max_pieces=7)
    [(slice(0, 5, None), slice(0, 2, None)), (slice(5, 10, None), slice(2, 5, None))]
    """
    longest = max(map(len, texts))
    if longest <= max_pieces:
        return [tuple(slice(0, len(text)) for text in texts)]
    share = min(1.0, MAX_JOINT_PIECES / longest)
    sizes = [round(len(text) * share) for text in texts]
    count = math.ceil(max(sizes) * GROWTH / max_pieces)
    shares = [n / count for n in range(1, count)]
    translation = _split_at(texts[0], shares, sizes[0])
    if int(SLACK * sizes[0] / count):  # its cuts moved, and the other texts follow them
        shares = [cut.stop / sizes[0] for cut in translation[:-1]]
    rest = zip(texts[1:], sizes[1:], strict=True)
    return list(
        zip(translation, *(_split_at(text, shares, size) for text, size in rest), strict=True)
    )


def _split_at(pieces: Sequence[str], shares: Sequence[float], size: int) -> list[slice]:
    """Split the first `size` pieces near these fractions."""
    slack = int(SLACK * size / (len(shares) + 1))
    breaks = [_nearest_break(pieces, int(share * size), slack) for share in shares]
    return [slice(start, stop) for start, stop in pairwise([0, *breaks, size])]


def _nearest_break(pieces: Sequence[str], target: int, slack: int) -> int:
    """Return the nearest sentence end within the slack, else word end, else the target."""
    near = sorted(range(target - slack, target + slack + 1), key=lambda place: abs(place - target))
    sentence_ends = (p for p in near if slack and pieces[p - 1].endswith(SENTENCE_ENDS))
    word_ends = (p for p in near if slack and pieces[p].startswith(WORD_START))
    return next(sentence_ends, next(word_ends, target))


def group_rows(
    rows: Sequence[Row], windows: Sequence[Sequence[Window]], max_pieces: int
) -> list[list[int]]:
    """Group the indices of rows, those that share texts together, by at most `max_pieces`."""
    order = sorted(range(len(rows)), key=lambda n: [text or "" for text in rows[n][::-1]])
    sizes = []
    for n in order:
        lengths = [len(ids) + SPECIALS for window in windows[n] for _, ids in window]
        sizes.append(sum(lengths))
    return split_by_size(order, sizes, max_pieces)
