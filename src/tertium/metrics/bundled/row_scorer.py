"""Run the network of tertium-multi on rows of texts.

A row is a hypothesis with a source, a reference or both. Texts longer than the network's positions
are split into windows. Each distinct text passes the lower layers once, each row
the upper ones. Batches hold many texts or rows, each on one thread. Neither the order, the rest of
a batch nor the number of threads changes a bit of the result.

Surface features of a row: what the network of tertium-multi cannot see in subword vectors.

The head of the network reads them next to its own states (`joint_network.JointHead`). Features of a
text that is missing are 0.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray, IntArray
from tertium.core.fields import Sha256
from tertium.core.runtime import Precision, current_runtime, progress_task, resolve_device
from tertium.core.segment import Against, Segment
from tertium.encoders.batching import plan_batches
from tertium.encoders.tokenizer import TokenizedText, Tokenizer, find_longer
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import score_segments
from tertium.metrics.bundled.bundled_model import BundledModel, BundledModelSettings
from tertium.metrics.bundled.input_rows import (
    REFERENCE,
    SOURCE,
    SPECIALS,
    RoleIds,
    Row,
    RowNetwork,
    Window,
    align_windows,
    distinct_texts,
    group_rows,
    reference_or_source,
)
from tertium.metrics.bundled.scales import (
    ERROR_COLUMNS,
    HumanScale,
    MqmScale,
    NoErrorProbability,
    Thresholds,
    error_probabilities,
)
from tertium.text.language_identification import has_translatable_words
from tertium.text.length_limits import MAX_JOINT_PIECES
from tertium.text.scripts import UNSPACED_SCRIPTS, is_unspaced_script, script_share

if TYPE_CHECKING:
    from tertium.metrics.bundled.joint_network import JointNetwork, LayerStates, RowOutput


NETWORK, WORDS = "network.", "words."  # prefixes of weight names
# Parts of the network that compute in int8; activations of fine parts have 15 bits.
FINE_PARTS = ("comparisons.", "head.", "tagger.")
INT8_PARTS = ("layers.", *FINE_PARTS)
WindowInput = tuple[Window, Float32Array]  # with the surface features of its row
PIECES_IN_MEMORY = 24_000  # whose lower states are kept, 3 kB each
PIECES_PER_BATCH, MIN_PIECES_PER_BATCH = 2_048, 128  # for one thread, about
# The same on a GPU, including padding, and the overhead of a batch in pieces.
GPU_PIECES_IN_MEMORY = 100_000
GPU_PIECES_PER_BATCH = 16_384
GPU_BATCH_OVERHEAD = 2_048
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class MultiSettings(BundledModelSettings):
    """The `config.json` of tertium-multi.

    `encoder_files` maps files to their sha256. `shape` has the sizes of the network; the first
    `apart` layers read each text separately.
    """

    encoder_files: Mapping[str, Sha256]
    shape: Mapping[str, int]
    languages: tuple[str, ...]
    scales: Mapping[Against, HumanScale]
    experts: Mapping[Against, MqmScale]
    clean: Mapping[Against, NoErrorProbability]
    spans: Thresholds


class RowScorer(RowNetwork):
    """The network and its tokenizer: rows of texts in, raw outputs out."""

    def __init__(self, model: BundledModel, precision: Precision, device: str) -> None:
        super().__init__(model, precision, device)
        self._settings = model.settings(MultiSettings)
        self.max_length = self._settings.shape["positions"]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(self._model.encoder_weights(self._settings.encoder_files).folder)

    @property
    def max_pieces(self) -> int:
        return MAX_JOINT_PIECES

    @property
    def window_size(self) -> int:
        """The number of pieces of a window."""
        return self.max_length - SPECIALS

    @cached_property
    def _network(self) -> JointNetwork:
        from tertium.encoders.transformer_layer import check_precision, convert_linear_layers
        from tertium.metrics.bundled.joint_network import JointNetwork

        device = resolve_device(self._device)
        check_precision(self._precision, device)
        shape = dict(self._settings.shape)
        shape["lower_layers"] = shape.pop("apart")
        network = self._model.restore_network(
            lambda: JointNetwork(**shape),
            NETWORK,
            int8_parts=INT8_PARTS if self._precision == "int8" else (),
            fine_parts=FINE_PARTS,
            unprefixed=(WORDS,),
        )
        if self._precision != "int8":
            convert_linear_layers(network.layers, self._precision, device)
        network.padded = device != "cpu"
        return network.to(device)

    def find_windowed(self, texts: Sequence[str]) -> set[str]:
        """Return the texts that need several windows, and are not truncated."""
        return find_longer(texts, self.window_size, self.tokenizer) - self.find_truncated(texts)

    def count_pieces(self, rows: Sequence[Row]) -> FloatArray:
        """Count the pieces read of each reference, or else source, with special tokens, (rows,)."""
        pieces = self._tokenize(rows)
        lengths = np.array([len(pieces[reference_or_source(row)]) for row in rows], np.float64)
        return np.minimum(lengths, MAX_JOINT_PIECES) + SPECIALS

    def __call__(self, rows: Sequence[Row]) -> list[Float32Array]:
        """Return each row's raw output: its score, then error probabilities of its pieces."""

        def read(outputs: Sequence[RowOutput], sizes: Sequence[int]) -> Float32Array:
            score = _average([output.score.numpy() for output in outputs], sizes)
            # the tag of an empty text is that of its </s>
            tags = [part.tags[:size].numpy() for part, size in zip(outputs, sizes, strict=True)]
            errors = error_probabilities(np.concatenate(tags))
            return np.concatenate([score[None], errors.ravel()])

        return self._read_rows(rows, read)

    def head_values(self, rows: Sequence[Row]) -> list[Float32Array]:
        """Return the values that the last layer of the head reads, (values,) for each row."""

        def read(outputs: Sequence[RowOutput], sizes: Sequence[int]) -> Float32Array:
            return _average([output.values.numpy() for output in outputs], sizes)

        return self._read_rows(rows, read)

    def last_layer(self, mode: int) -> tuple[Float32Array, float]:
        """Return the weights of the last layer of the head in an input mode, and its bias."""
        last = self._network.head.last
        return last.weight[mode].detach().cpu().numpy(), float(last.bias[mode])

    def _read_rows(
        self,
        rows: Sequence[Row],
        read: Callable[[Sequence[RowOutput], Sequence[int]], Float32Array],
    ) -> list[Float32Array]:
        """Run the network on rows; `read` merges the outputs of a row's windows, given sizes."""
        pieces = self._tokenize(rows)
        windows = [self._split_windows(row, pieces) for row in rows]
        counts = {text: len(tokenized) for text, tokenized in pieces.items()}
        features = row_features(rows, mean_fragmentation(rows, counts)).astype(np.float32)
        results: dict[int, Float32Array] = {}
        max_pieces = GPU_PIECES_IN_MEMORY if self._network.padded else PIECES_IN_MEMORY
        with progress_task("scoring translations", total=len(rows)) as advance:
            for block in group_rows(rows, windows, max_pieces):
                inputs = [(window, features[n]) for n in block for window in windows[n]]
                outputs = iter(self._run_network(inputs))
                for n in block:
                    sizes = [len(window[0][1]) for window in windows[n]]
                    results[n] = read([next(outputs) for _ in sizes], sizes)
                advance(len(block))
        return [results[n] for n in range(len(rows))]

    def _tokenize(self, rows: Sequence[Row]) -> dict[str, TokenizedText]:
        texts = distinct_texts(rows)
        return dict(zip(texts, self.tokenizer(texts), strict=True))

    def _split_windows(self, row: Row, pieces: Mapping[str, TokenizedText]) -> list[Window]:
        """Return the windows of a row, nearly always one."""
        texts = [(role, pieces[text]) for role, text in enumerate(row) if text is not None]
        cuts = align_windows([text.tokens for _, text in texts], self.window_size)
        windows = []
        for cut in cuts:
            parts = zip(texts, cut, strict=True)
            windows.append(tuple((role, text.ids[place]) for (role, text), place in parts))
        return windows

    def _add_specials(self, key: RoleIds) -> RoleIds:
        return key[0], (*self.tokenizer.prefix_ids, *key[1], *self.tokenizer.suffix_ids)

    def _run_network(self, inputs: Sequence[WindowInput]) -> list[RowOutput]:
        """Run each distinct text through the lower layers, each window through the upper ones."""
        network = self._network
        windows = [window for window, _ in inputs]

        def encode(keys: Sequence[RoleIds]) -> Sequence[LayerStates]:
            return network.encode_texts([self._add_specials(key) for key in keys])

        texts = list(dict.fromkeys(key for window in windows for key in window))
        sizes = [len(ids) + SPECIALS for _, ids in texts]
        lower = dict(zip(texts, self._map_batches(encode, texts, sizes), strict=True))
        rows = [({key[0]: lower[key] for key in window}, values) for window, values in inputs]
        sizes = [sum(len(ids) + SPECIALS for _, ids in window) for window in windows]
        return self._map_batches(network.score_rows, rows, sizes)

    def _map_batches(
        self,
        function: Callable[[Sequence[T]], Sequence[R]],
        items: Sequence[T],
        sizes: Sequence[int],
    ) -> list[R]:
        """Apply a function to batches of items, on a CPU by thread."""
        import torch

        from tertium.encoders.batching import map_on_threads

        def run(batch: IntArray) -> Sequence[R]:
            with torch.inference_mode():
                return function([items[n] for n in batch])

        settings = current_runtime()
        is_padded = self._network.padded
        budget = GPU_PIECES_PER_BATCH
        overhead = GPU_BATCH_OVERHEAD
        if not is_padded:
            pieces_per_thread = -(-sum(sizes) // (settings.threads or torch.get_num_threads()))
            budget = min(PIECES_PER_BATCH, max(MIN_PIECES_PER_BATCH, pieces_per_thread))
            overhead = budget  # nothing is padded, so texts of all lengths may share a batch
        batches = plan_batches(
            sizes,
            budget=settings.token_budget or budget,
            overhead=overhead,
            limit=settings.batch_size,
        )
        apply = map if is_padded else map_on_threads
        results = list(chain.from_iterable(apply(run, batches)))
        return [results[place] for place in np.argsort(np.concatenate(batches))]


def _average(values: Sequence[Float32Array], sizes: Sequence[int]) -> Float32Array:
    """Average the values of windows by the number of their hypothesis pieces."""
    means = np.average(np.stack(values), axis=0, weights=np.maximum(sizes, 1))
    return means.astype(np.float32)


def piece_errors(output: Float32Array) -> Float32Array:
    """Return the error probabilities of hypothesis pieces, (pieces, ERROR_COLUMNS)."""
    return output[1:].reshape(-1, ERROR_COLUMNS)


ROW_FEATURES = (
    "chrF",
    "chrF of fragmented words",
    "copied",
    "length against reference",
    "length against source",
    "numbers",
    "placeholders",
    "repetition",
)
FAMILIAR_PIECES_PER_WORD = 1.6  # typical of languages that the vocabulary covers well
NEUTRAL_CHRF = 0.55  # chrF of an average translation
MAX_LOG_RATIO = 2.0
_NUMBER = re.compile(r"\d+")
_PLACEHOLDER = re.compile(
    r"\$\{[^{}]*\}|\{\{[^{}]*\}\}|\{[^{}\s]*\}|%(?:\d+\$)?[sdif@]|</?[A-Za-z][^<>]*>"
)


def row_features(rows: Sequence[Row], fragmentation: FloatArray) -> FloatArray:
    """Return the features of each row, (rows, features); `fragmentation` is (rows,).

    >>> row_features([("{n} cats", "{n} Katzen", None)], np.zeros(1)).round(2).tolist()
    [[0.0, 0.0, 0.0, 0.0, -0.2, 1.0, 1.0, 0.0]]
    """
    chrf = _chrf(rows, REFERENCE)
    has_reference = [row[REFERENCE] is not None for row in rows]
    deviation = np.where(np.array(has_reference, dtype=np.bool_), chrf - NEUTRAL_CHRF, 0.0)
    has_words = np.array([has_translatable_words(row[SOURCE] or "") for row in rows], dtype=float)
    columns = [
        chrf,
        fragmentation * deviation,
        np.maximum(2 * _chrf(rows, SOURCE) - 1, 0) * has_words,  # copied from the source
        *([_log_ratio(row[0], row[side]) for row in rows] for side in (REFERENCE, SOURCE)),
        [_kept_share(_NUMBER, row) for row in rows],
        [_kept_share(_PLACEHOLDER, row) for row in rows],
        [_repetition(row) for row in rows],
    ]
    return np.array(columns, dtype=np.float64).T.reshape(len(rows), len(ROW_FEATURES))


def subword_fragmentation(text: str, pieces: int) -> float:
    """Return how much the words of a text are split into pieces, 0 to 1; 0 in unspaced scripts.

    >>> subword_fragmentation("a cat sat", 3), subword_fragmentation("um kaţki rõvst", 9)
    (0.0, 1.0)
    >>> subword_fragmentation("火车不开。", 4)
    0.0
    """
    words = len(text.split())
    if not words or script_share(text, UNSPACED_SCRIPTS) > 0.5:
        return 0.0
    return min(max(pieces / words - FAMILIAR_PIECES_PER_WORD, 0.0), 1.0)


def mean_fragmentation(rows: Sequence[Row], pieces: Mapping[str, int]) -> FloatArray:
    """Return the mean fragmentation of hypothesis and reference, (rows,); 0 without a reference.

    `pieces` are the numbers of pieces of texts.

    >>> rows = [("a cat", None, "a dog"), ("a cat", "ein Hund", None)]
    >>> mean_fragmentation(rows, {"a cat": 5, "a dog": 5})
    array([0.9, 0. ])
    """
    means = np.zeros(len(rows))
    for number, (hypothesis, _, reference) in enumerate(rows):
        if reference is not None:
            texts = hypothesis, reference
            means[number] = sum(subword_fragmentation(text, pieces[text]) for text in texts) / 2
    return means


def _chrf(rows: Sequence[Row], role: int) -> FloatArray:
    """Return the chrF of hypotheses against their source or reference, 0 to 1; 0 if missing."""
    scores = np.zeros(len(rows))
    numbers = [n for n, row in enumerate(rows) if row[role] is not None]
    if numbers:
        segments = [Segment(rows[n][0], None, (rows[n][role] or "",)) for n in numbers]
        scores[numbers] = score_segments(load_metric("chrf"), segments) / 100
    return scores


def _log_ratio(hypothesis: str, other: str | None) -> float:
    if other is None:
        return 0.0
    ratio = math.log((len(hypothesis) + 1) / (len(other) + 1))
    return min(max(ratio, -MAX_LOG_RATIO), MAX_LOG_RATIO)


def _kept_share(pattern: re.Pattern[str], row: Row) -> float:
    """Return the F1 of the matches in the hypothesis and in the other text; 1 without matches.

    >>> _kept_share(_NUMBER, ("7 of 10", None, "10 of 8"))
    0.5
    """
    texts = row[0], reference_or_source(row)
    own, other = (Counter(pattern.findall(text)) for text in texts)
    total = own.total() + other.total()
    return 2 * (own & other).total() / total if total else 1.0


def _repetition(row: Row) -> float:
    """Return by how much the share of repeated phrases exceeds that of the other text.

    >>> round(_repetition(("no no no no", None, "no it is not")), 2)
    0.67
    """
    return max(_repeated_share(row[0]) - _repeated_share(reference_or_source(row)), 0.0)


def _repeated_share(text: str) -> float:
    """Return the share of repeated word pairs, or of four characters in scripts without spaces."""
    unspaced = is_unspaced_script(text)
    units, size = (text, 4) if unspaced else (text.split(), 2)
    count = len(units) - size + 1
    return 1 - len({tuple(units[n : n + size]) for n in range(count)}) / count if count > 0 else 0.0
