"""Run the network of tertium-multi on rows of texts.

A row is a hypothesis with a source, a reference or both. Texts longer than the network's positions
are split into windows (`text_windows`). Each distinct text passes the lower layers once, each row
the upper ones. Batches hold many texts or rows, each on one thread. Neither the order, the rest of
a batch nor the number of threads changes a bit of the result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, TypeVar

import numpy as np

from tertium.arrays import Float32Array, FloatArray
from tertium.encoders.batching import plan_batches, split_evenly
from tertium.encoders.model_settings import ROW_SCALE
from tertium.encoders.tokenizer import (
    Tokenizer,
    TokenOffsets,
    certainly_fits,
    find_out_of_vocabulary,
)
from tertium.execution import Precision, current_runtime, progress_task, resolve_device
from tertium.extras import require_modules
from tertium.metrics.base.explanation import TextComparison
from tertium.metrics.base.greedy_matching import compare_pieces
from tertium.metrics.base.metric import Side
from tertium.metrics.flagship.bundled_model import BundledModel, BundledModelSettings
from tertium.metrics.flagship.error_spans import (
    ERROR_COLUMNS,
    TAGS,
    SchemeThresholds,
    error_probabilities,
)
from tertium.metrics.flagship.row_features import (
    ROW_FEATURES,
    Row,
    mean_fragmentation,
    reference_or_source,
    row_features,
)
from tertium.metrics.flagship.scales import ModeMqmScales, ModeNoErrorProbabilities, ModeScales
from tertium.metrics.flagship.text_windows import (
    SPECIALS,
    RoleIds,
    Window,
    align_windows,
    average_windows,
    group_rows,
    window_sizes,
)
from tertium.schema import POSITIVE, Rule, Sha256
from tertium.text.length_limits import MAX_JOINT_PIECES

if TYPE_CHECKING:
    from tertium.metrics.flagship.joint_network import JointNetwork, LowerStates, RowOutput

NETWORK, WORDS = "network.", "words."  # prefixes of weight names
# Parts of the network that compute in int8; activations of fine parts have 15 bits.
FINE_PARTS = ("comparisons.", "head.", "tagger.")
INT8_PARTS = ("layers.", *FINE_PARTS)
WindowInput = tuple[Window, Float32Array]  # with the surface features of its row
PIECES_IN_MEMORY = 24_000  # whose lower states are kept, 3 kB each
PIECES_PER_BATCH, MIN_PIECES_PER_BATCH = 2_048, 128  # for one thread, about
# The same on a GPU, including padding, and the overhead of a batch in pieces.
GPU_PIECES_IN_MEMORY, GPU_PIECES_PER_BATCH, GPU_BATCH_OVERHEAD = 100_000, 16_384, 2_048
EXPLAINED_LAYER = 6  # whose vectors an explanation compares
MORE_THAN_SPECIALS = Rule(lambda n: n > 2, "more than 2")
MULTIPLE_OF_32 = Rule(lambda n: n > 0 and n % 32 == 0, "a multiple of 32")
DEPTH = 12  # layers of the network
TWELVE = Rule(lambda n: n == DEPTH, f"{DEPTH}, since the head reads layers up to {DEPTH}")
ALL_TAGS_OR_NONE = Rule(lambda n: n in (0, TAGS), f"{TAGS}, or 0 for a model without tags")
ALL_FEATURES = Rule(lambda n: n == len(ROW_FEATURES), f"{len(ROW_FEATURES)}")
UP_TO_TWELVE = Rule(lambda n: 0 <= n <= DEPTH, f"from 0 to {DEPTH}")
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class JointShape:
    """Sizes of the network; the first `apart` layers read each text separately."""

    words: Annotated[int, POSITIVE]
    positions: Annotated[int, MORE_THAN_SPECIALS]
    hidden: Annotated[int, MULTIPLE_OF_32]
    layers: Annotated[int, TWELVE]
    heads: Annotated[int, POSITIVE]
    inner: Annotated[int, POSITIVE]
    apart: Annotated[int, UP_TO_TWELVE]
    compared: Annotated[int, POSITIVE]
    judging: Annotated[int, POSITIVE]
    features: Annotated[int, ALL_FEATURES]
    tags: Annotated[int, ALL_TAGS_OR_NONE] = 0


@dataclass(frozen=True, kw_only=True)
class MultiSettings(BundledModelSettings):
    """The `config.json` of tertium-multi; `encoder_files` maps files to their sha256."""

    encoder_files: Mapping[str, Sha256]
    shape: JointShape
    languages: tuple[str, ...]
    scales: ModeScales
    experts: ModeMqmScales
    clean: ModeNoErrorProbabilities
    spans: SchemeThresholds | None = None


class RowScorer:
    """The network and its tokenizer: rows of texts in, raw outputs out."""

    def __init__(self, model: BundledModel, precision: Precision, device: str) -> None:
        require_modules("torch", "tokenizers", purpose=model.folder.name)
        self._model, self._precision, self._device = model, precision, device
        self._settings = model.settings(MultiSettings)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer(self._model.encoder_weights(self._settings.encoder_files).folder)

    @cached_property
    def _network(self) -> JointNetwork:
        from tertium.encoders.int8_linear import allocate_int8_layers
        from tertium.encoders.linear_layers import check_precision, convert_linear_layers
        from tertium.metrics.flagship.joint_network import JointNetwork
        from tertium.models.checkpoint import build_network

        device = resolve_device(self._device)
        check_precision(self._precision, device)
        shape = dataclasses.asdict(self._settings.shape)
        shape["lower_layers"] = shape.pop("apart")
        stored = self._model.stored_tensors(NETWORK)
        suffix = f".weight{ROW_SCALE}"
        int8_layers: list[str] = []
        if self._precision == "int8":  # embeddings are not in these parts
            names = (name.removesuffix(suffix) for name in stored if name.endswith(suffix))
            int8_layers += (name for name in names if name.startswith(INT8_PARTS))

        def make() -> JointNetwork:
            network = JointNetwork(**shape)
            allocate_int8_layers(
                network, int8_layers.__contains__, fine=lambda name: name.startswith(FINE_PARTS)
            )
            return network

        table = {n: w for n, w in self._model.weights.items() if n.startswith(WORDS)}
        tensors = self._model.restore_tensors(NETWORK, int8_layers)
        network = build_network(make, {**tensors, **table}, self._model.folder)
        if self._precision != "int8":
            convert_linear_layers(network.layers, self._precision, device)
        network.padded = device != "cpu"
        return network.to(device)

    @property
    def _max_pieces(self) -> int:
        return self._settings.shape.positions - SPECIALS

    @property
    def max_length(self) -> int:
        return self._settings.shape.positions

    def find_truncated(self, texts: Sequence[str]) -> set[str]:
        return self._find_longer(texts, MAX_JOINT_PIECES)

    def find_windowed(self, texts: Sequence[str]) -> set[str]:
        """Return the texts that need several windows, and are not truncated."""
        return self._find_longer(texts, self._max_pieces) - self.find_truncated(texts)

    def _find_longer(self, texts: Sequence[str], limit: int) -> set[str]:
        long_texts = [text for text in texts if not certainly_fits(text, limit)]
        tokenized = zip(long_texts, self._tokenizer(long_texts), strict=True)
        return {text for text, pieces in tokenized if len(pieces) > limit}

    def find_out_of_vocabulary(self, texts: Sequence[str]) -> set[str]:
        return find_out_of_vocabulary(texts, self._tokenizer)

    def piece_offsets(self, texts: Sequence[str]) -> list[TokenOffsets]:
        """Return the start and end of each piece of texts, in code points."""
        return self._tokenizer.token_offsets(texts)

    def count_pieces(self, rows: Sequence[Row]) -> FloatArray:
        """Count the pieces read of each reference, or else source, with special tokens, (rows,)."""
        texts = list(dict.fromkeys(map(reference_or_source, rows)))
        ids = self._tokenizer.encode_ids(texts)
        counts = (min(len(numbers), MAX_JOINT_PIECES) + SPECIALS for numbers in ids)
        count_by_text = dict(zip(texts, counts, strict=True))
        return np.array([count_by_text[reference_or_source(row)] for row in rows], dtype=np.float64)

    def __call__(self, rows: Sequence[Row]) -> list[Float32Array]:
        """Return each row's raw output: its score, then error probabilities of its pieces."""
        windows, outputs = self._score_windows(rows, self._run)
        return [average_windows(parts, windows[n]) for n, parts in enumerate(outputs)]

    def head_values(self, rows: Sequence[Row]) -> list[Float32Array]:
        """Return the values that the last layer of the head reads, (values,) for each row."""

        def run(inputs: Sequence[WindowInput]) -> Iterator[Float32Array]:
            return (output.values.numpy() for output in self._run_network(inputs))

        windows, outputs = self._score_windows(rows, run)
        return [
            parts[0]
            if len(parts) == 1
            else np.average(parts, axis=0, weights=window_sizes(own)).astype(np.float32)
            for parts, own in zip(outputs, windows, strict=True)
        ]

    def last_layer(self, mode: int) -> tuple[Float32Array, float]:
        """Return the weights of the last layer of the head in an input mode, and its bias."""
        last = self._network.head.last
        return last.weight[mode].detach().cpu().numpy(), float(last.bias[mode])

    def _score_windows(
        self,
        rows: Sequence[Row],
        run: Callable[[Sequence[WindowInput]], Iterator[Float32Array]],
    ) -> tuple[list[list[Window]], list[list[Float32Array]]]:
        """Return the windows of each row and their outputs."""
        windows = self._split_windows(rows)
        fragmentation = mean_fragmentation(rows, self._tokenizer.encode_ids)
        features = row_features(rows, fragmentation).astype(np.float32)
        outputs: list[list[Float32Array]] = [[] for _ in rows]
        with progress_task("scoring translations", total=len(rows)) as advance:
            max_pieces = GPU_PIECES_IN_MEMORY if self._network.padded else PIECES_IN_MEMORY
            for block in group_rows(rows, windows, max_pieces):
                results = run([(window, features[n]) for n in block for window in windows[n]])
                for n in block:
                    outputs[n] = [next(results) for _ in windows[n]]
                advance(len(block))
        return windows, outputs

    def comparisons(self, row: Row, values: Mapping[str, float]) -> Iterator[TextComparison]:
        """Compare the hypothesis with each other text of a row; `values` go with the reference."""
        from tertium.metrics.flagship.row_alignment import HYPOTHESIS, SOURCE

        texts = [(role, text) for role, text in enumerate(row) if text is not None]
        windows = self._split_windows([row])[0]
        parts = [self._piece_vectors(window) for window in windows]
        vectors = {role: np.concatenate([part[role] for part in parts]) for role, _ in texts}
        names = {
            role: self._tokenizer([text])[0].truncate(sum(len(window[n][1]) for window in windows))
            for n, (role, text) in enumerate(texts)
        }
        for role, text in texts[1:]:
            side: Side = "source" if role == SOURCE else "reference"
            yield compare_pieces(
                text,
                values if role == texts[-1][0] else {},
                (names[HYPOTHESIS].tokens, names[role].tokens),
                (vectors[HYPOTHESIS], vectors[role]),
                side,
                combined_with="source" if side == "reference" and len(texts) > 2 else "",
            )

    def _piece_vectors(self, window: Window) -> dict[int, Float32Array]:
        """Return the vectors of the pieces of each text in a window, by role, (pieces, d)."""
        import torch

        from tertium.metrics.flagship.joint_network import without_specials

        network = self._network
        with torch.inference_mode():
            lower = network.encode_texts([self._add_specials(key) for key in window])
            row = {role: text for (role, _), text in zip(window, lower, strict=True)}
            states = network.encode_rows([row], EXPLAINED_LAYER)
        [places] = states.places
        vectors = states.layers[EXPLAINED_LAYER]
        return {role: vectors[without_specials(at)].cpu().numpy() for role, at in places.items()}

    def _split_windows(self, rows: Sequence[Row]) -> list[list[Window]]:
        """Return the windows of each row, nearly always one."""
        texts = list(dict.fromkeys(text for row in rows for text in row if text is not None))
        pieces = dict(zip(texts, self._tokenizer(texts), strict=True))
        windows = []
        for row in rows:
            parts = [(role, pieces[text]) for role, text in enumerate(row) if text is not None]
            cuts = align_windows([text.tokens for _, text in parts], self._max_pieces)
            windows.append(
                [
                    tuple((role, text.ids[at]) for (role, text), at in zip(parts, cut, strict=True))
                    for cut in cuts
                ]
            )
        return windows

    def _add_specials(self, key: RoleIds) -> RoleIds:
        return key[0], (*self._tokenizer.prefix_ids, *key[1], *self._tokenizer.suffix_ids)

    def _run(self, inputs: Sequence[WindowInput]) -> Iterator[Float32Array]:
        """Return the raw outputs of windows, with the surface features of their rows."""
        outputs = self._run_network(inputs)
        pieces = [len(window[0][1]) for window, _ in inputs]
        logits = [  # an empty text has one, of its </s>, which is dropped
            output.tags[:size].numpy() for output, size in zip(outputs, pieces, strict=True)
        ]
        errors = np.split(error_probabilities(np.concatenate(logits)), np.cumsum(pieces)[:-1])
        for output, own in zip(outputs, errors, strict=True):
            yield np.concatenate([output.score.numpy()[None], own.ravel()])

    def _run_network(self, inputs: Sequence[WindowInput]) -> list[RowOutput]:
        """Run each distinct text through the lower layers, each window through the upper ones."""
        network, windows = self._network, [window for window, _ in inputs]

        def encode(keys: Sequence[RoleIds]) -> list[LowerStates]:
            return network.encode_texts([self._add_specials(key) for key in keys])

        texts = list(dict.fromkeys(key for window in windows for key in window))
        sizes = [len(ids) + SPECIALS for _, ids in texts]
        lower = dict(zip(texts, self._map_batches(encode, texts, sizes), strict=True))
        rows = [({key[0]: lower[key] for key in window}, own) for window, own in inputs]
        sizes = [sum(len(text.states) for text in row.values()) for row, _ in rows]
        return self._map_batches(network.score_rows, rows, sizes)

    def _map_batches(
        self, function: Callable[[Sequence[T]], list[R]], items: Sequence[T], sizes: Sequence[int]
    ) -> list[R]:
        """Apply a function to batches of items; on a CPU several threads, one batch on each."""
        import torch

        from tertium.encoders.parallel import map_on_threads

        def run(batch: Sequence[T]) -> list[R]:
            with torch.inference_mode():
                return function(batch)

        settings = current_runtime()
        if self._network.padded:
            results: dict[int, R] = {}
            for batch in plan_batches(
                sizes,
                budget=settings.token_budget or GPU_PIECES_PER_BATCH,
                overhead=GPU_BATCH_OVERHEAD,
                limit=settings.batch_size,
            ):
                results.update(zip(batch.tolist(), run([items[n] for n in batch]), strict=True))
            return [results[n] for n in range(len(items))]
        threads = settings.threads or torch.get_num_threads()
        rounds = -(-sum(sizes) // (threads * PIECES_PER_BATCH))
        count = max(1, min(rounds * threads, sum(sizes) // MIN_PIECES_PER_BATCH))
        batches = split_evenly(items, sizes, count)
        return [result for part in map_on_threads(run, batches) for result in part]


def piece_errors(output: Float32Array) -> Float32Array:
    """Return the error probabilities of hypothesis pieces, (pieces, ERROR_COLUMNS)."""
    return output[1:].reshape(-1, ERROR_COLUMNS)


@lru_cache(maxsize=2)
def load_row_scorer(model: BundledModel, precision: Precision, device: str) -> RowScorer:
    """Return the scorer of a model, cached."""
    return RowScorer(model, precision, device)
