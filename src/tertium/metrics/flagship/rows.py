"""Rows of texts through the network of tertium-multi: what its folder declares, and how it is run.

A row is a hypothesis with a source, a reference or both; where a text is longer than the network's
positions, several windows of them (`windows`). Rows that share texts go together: each distinct
text passes the lower layers once, each row the upper ones. Passes hold many texts or rows, each on
one thread, and neither order nor neighbors nor threads change a bit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, TypeVar

import numpy as np

from tertium.arrays import Float32Array, FloatArray
from tertium.encoders.encoder import deal_evenly
from tertium.encoders.pieces import (
    Places,
    Tokenizer,
    count_opaque,
    plan_batches,
    surely_fits,
)
from tertium.extras import require
from tertium.metrics.base.explanation import TextComparison
from tertium.metrics.base.matching import compare_pieces
from tertium.metrics.base.metric import Side
from tertium.metrics.flagship.combination import Corrections, Row, asked_for, strange_words
from tertium.metrics.flagship.packaged import Packaged, PackagedSettings
from tertium.metrics.flagship.scales import ViewChances, ViewExperts, ViewScales
from tertium.metrics.flagship.tagging import FINDINGS, TAGS, WayThresholds, find_errors
from tertium.metrics.flagship.windows import align_windows
from tertium.runtime import Precision, choose_device, current_runtime, task
from tertium.schema import POSITIVE, Rule, Sha256
from tertium.text.bounds import JUDGED_PIECES

if TYPE_CHECKING:
    from tertium.metrics.flagship.joint import JointNetwork

NETWORK, WORDS = "network.", "words."  # what the names of weights begin with
RoleIds = tuple[int, tuple[int, ...]]  # a text's role and its pieces
Window = tuple[RoleIds, ...]  # of each text of a row, the hypothesis first
SPECIALS = 2  # <s> and </s> around every text
READ = slice(2, 3)  # of what is said of a row what is read a second time: behind the score and the
# logit of no error, which nothing asks for, and before its findings
PIECES_AT_ONCE = 24_000  # of lower states that are held, 3 kB each
PIECES_A_PASS = 2_048  # about, that a thread is given at a time
# The same on a GPU, padding among them, and what starting a pass costs there in pieces.
PADDED_AT_ONCE, PADDED_A_PASS, PADDED_OVERHEAD = 100_000, 16_384, 2_048
LINKED = 6  # the layer whose vectors an explanation compares
TRUE_TEXT = Rule(lambda n: n > 2, "more than 2")
IN_BLOCKS = Rule(lambda n: n > 0 and n % 32 == 0, "a multiple of 32")
TWELVE = Rule(lambda n: n == 12, "12, the layers that the head looks at being among them")
TAGGED = Rule(lambda n: n in (0, TAGS), f"{TAGS}, or 0 of a model that tags no pieces")
UP_TO_TWELVE = Rule(lambda n: 0 <= n <= 12, "from 0 to 12")
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class JointShape:
    """The sizes of the network; `apart` of its layers read each text for itself."""

    words: Annotated[int, POSITIVE]
    positions: Annotated[int, TRUE_TEXT]
    hidden: Annotated[int, IN_BLOCKS]
    layers: Annotated[int, TWELVE]
    heads: Annotated[int, POSITIVE]
    inner: Annotated[int, POSITIVE]
    apart: Annotated[int, UP_TO_TWELVE]
    compared: Annotated[int, POSITIVE]
    judging: Annotated[int, POSITIVE]
    directions: Annotated[int, POSITIVE]
    reading: Annotated[int, POSITIVE]
    tags: Annotated[int, TAGGED] = 0


@dataclass(frozen=True, kw_only=True)
class MultiSettings(PackagedSettings):
    """What the `config.json` of such a model declares; `encoder_files` by their sha256."""

    encoder_files: Mapping[str, Sha256]
    shape: JointShape
    languages: tuple[str, ...]
    corrections: Corrections
    scales: ViewScales
    experts: ViewExperts
    clean: ViewChances
    spans: WayThresholds | None = None


class RowJudge:
    """The network with its tokenizer: rows of texts in, what it says of them out."""

    def __init__(self, model: Packaged, precision: Precision, device: str) -> None:
        require("torch", "tokenizers", purpose=model.folder.name)
        self._model, self._precision, self._device = model, precision, device
        self._settings = model.settings(MultiSettings)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer(self._model.encoder_weights(self._settings.encoder_files).folder)

    @cached_property
    def _network(self) -> JointNetwork:
        from tertium.encoders.products import check_precision, lower_precision, pack_products
        from tertium.metrics.flagship.joint import JointNetwork
        from tertium.models.checkpoint import load_into

        device = choose_device(self._device)
        check_precision(self._precision, device)
        table = {n: w for n, w in self._model.weights.items() if n.startswith(WORDS)}
        tensors = {**self._model.restore_tensors(NETWORK), **table}
        shape = dataclasses.asdict(self._settings.shape)
        network = load_into(lambda: JointNetwork(**shape), tensors, self._model.folder)
        lower_precision(network.layers, self._precision, device)  # the head needs more than 8 bits
        for part in (network.layers, network.comparisons, network.head, network.tagger):
            pack_products(part, device)
        network.padded = device != "cpu"
        if not network.padded:
            network.sizes = network.try_sizes() or network.sizes
        return network.to(device)

    @property
    def _room(self) -> int:
        """How many pieces of a text are read at once."""
        return self._settings.shape.positions - SPECIALS

    @property
    def max_length(self) -> int:
        return self._settings.shape.positions

    def count_truncated(self, texts: Sequence[str]) -> int:
        return self.count_longer(texts)[1]

    def count_longer(self, texts: Sequence[str]) -> tuple[int, int]:
        """How many texts are read in windows, and how many are longer than what is read at all."""
        doubtful = [text for text in texts if not surely_fits(text, self._room)]
        sizes = [len(pieces) for pieces in self._tokenizer(doubtful)]
        return sum(size > self._room for size in sizes), sum(size > JUDGED_PIECES for size in sizes)

    def count_opaque(self, texts: Sequence[str]) -> int:
        return count_opaque(texts, self._tokenizer)

    def places(self, texts: Sequence[str]) -> list[Places]:
        """Where the pieces of texts stand in them, in code points."""
        return self._tokenizer.places(texts)

    def strange_words(self, rows: Sequence[Row]) -> FloatArray:
        """How strange the words of each row are to the vocabulary, (rows,)."""
        return strange_words(rows, self._tokenizer.number)

    def count_pieces(self, rows: Sequence[Row]) -> FloatArray:
        """How many pieces what is asked for has, special ones too, as many as are read at most.

        (rows,)
        """
        texts = list(dict.fromkeys(map(asked_for, rows)))
        counts = (min(len(ids), JUDGED_PIECES) + SPECIALS for ids in self._tokenizer.number(texts))
        each = dict(zip(texts, counts, strict=True))
        return np.array([each[asked_for(row)] for row in rows], dtype=np.float64)

    def __call__(self, rows: Sequence[Row]) -> list[Float32Array]:
        """What is said of each row, all in one array: the score, the logit of no error, what
        is read again, and (pieces, FINDINGS) of the hypothesis where the model tags errors."""
        windows = self._windows(rows)
        said: list[list[Float32Array]] = [[] for _ in rows]
        with task("judging translations", total=len(rows)) as advance:
            most = PADDED_AT_ONCE if self._network.padded else PIECES_AT_ONCE
            for block in _blocks(rows, windows, most):
                read = self._run([window for n in block for window in windows[n]])
                for n in block:
                    said[n] = [next(read) for _ in windows[n]]
                advance(len(block))
        return [join_windows(parts, windows[n]) for n, parts in enumerate(said)]

    def comparisons(self, row: Row, values: Mapping[str, float]) -> Iterator[TextComparison]:
        """The hypothesis beside each other text of a row, by vectors that were read together.

        Beside two texts the values are of both at once, and stand with the reference.
        """
        from tertium.metrics.flagship.meeting import HYPOTHESIS, SOURCE

        texts = [(role, text) for role, text in enumerate(row) if text is not None]
        windows = self._windows([row])[0]
        read = [self._vectors_of(window) for window in windows]
        vectors = {role: np.concatenate([part[role] for part in read]) for role, _ in texts}
        names = {
            role: self._tokenizer([text])[0].first(sum(len(window[n][1]) for window in windows))
            for n, (role, text) in enumerate(texts)
        }
        for role, text in texts[1:]:
            side: Side = "source" if role == SOURCE else "reference"
            yield compare_pieces(
                text,
                values if role == texts[-1][0] else {},
                (names[HYPOTHESIS].pieces, names[role].pieces),
                (vectors[HYPOTHESIS], vectors[role]),
                side,
                beside="source" if side == "reference" and len(texts) > 2 else "",
            )

    def _vectors_of(self, window: Window) -> dict[int, Float32Array]:
        """The vectors of each text's pieces in a window, by its role, (pieces, d)."""
        import torch

        from tertium.metrics.flagship.joint import inside

        network = self._network
        with torch.inference_mode():
            lower = network.read([self._number(key) for key in window])
            both = {role: text for (role, _), text in zip(window, lower, strict=True)}
            together = network.read_together([both], LINKED)
        [places] = together.places
        states = together.seen[LINKED]
        return {role: states[inside(at)].cpu().numpy() for role, at in places.items()}

    def _windows(self, rows: Sequence[Row]) -> list[list[Window]]:
        """The windows of each row, nearly always one."""
        texts = list(dict.fromkeys(text for row in rows for text in row if text is not None))
        pieces = dict(zip(texts, self._tokenizer(texts), strict=True))
        result = []
        for row in rows:
            found = [(role, pieces[text]) for role, text in enumerate(row) if text is not None]
            cuts = align_windows([text.pieces for _, text in found], self._room)
            result.append(
                [
                    tuple((role, text.ids[at]) for (role, text), at in zip(found, cut, strict=True))
                    for cut in cuts
                ]
            )
        return result

    def _number(self, key: RoleIds) -> RoleIds:
        """A text as the network reads it, special pieces around."""
        return key[0], (*self._tokenizer.prefix, *key[1], *self._tokenizer.suffix)

    def _run(self, windows: Sequence[Window]) -> Iterator[Float32Array]:
        """Every distinct text once through the lower layers, every window through the upper."""
        network = self._network
        texts = list(dict.fromkeys(key for window in windows for key in window))
        sizes = [len(ids) + SPECIALS for _, ids in texts]
        read = self._each(lambda some: network.read([self._number(k) for k in some]), texts, sizes)
        lower = dict(zip(texts, read, strict=True))
        rows = [{key[0]: lower[key] for key in window} for window in windows]
        sizes = [sum(len(text.states) for text in row.values()) for row in rows]
        found = self._each(network.judge, rows, sizes)
        pieces = [len(window[0][1]) for window in windows]
        logits = [  # an empty text has one of a </s>
            one.tags[:count].numpy() for one, count in zip(found, pieces, strict=True)
        ]
        errors = np.split(find_errors(np.concatenate(logits)), np.cumsum(pieces)[:-1])
        for one, own in zip(found, errors, strict=True):
            yield np.concatenate([one.scores.numpy(), own.ravel()])

    def _each(
        self, work: Callable[[Sequence[T]], list[R]], items: Sequence[T], sizes: Sequence[int]
    ) -> list[R]:
        """The work on items of so many pieces; on a CPU by several threads, each share on one."""
        import torch

        from tertium.encoders.apart import BLOCK_ROWS, each_on_one_thread

        def run(some: Sequence[T]) -> list[R]:
            with torch.inference_mode():
                return work(some)

        settings = current_runtime()
        if self._network.padded:
            results: dict[int, R] = {}
            for batch in plan_batches(
                sizes,
                budget=settings.token_budget or PADDED_A_PASS,
                overhead=PADDED_OVERHEAD,
                limit=settings.batch_size,
            ):
                results.update(zip(batch.tolist(), run([items[n] for n in batch]), strict=True))
            return [results[n] for n in range(len(items))]
        threads = settings.threads or torch.get_num_threads()
        turns = -(-sum(sizes) // (threads * PIECES_A_PASS))  # in which every thread has a share
        count = max(1, min(turns * threads, sum(sizes) // BLOCK_ROWS))
        shares = [[one] for one in items] if self._alone else deal_evenly(items, sizes, count)
        return [result for part in each_on_one_thread(run, shares) for result in part]

    @cached_property
    def _alone(self) -> bool:
        """Whether rows must not share a pass on this CPU: tried, they changed each other."""
        import torch

        from tertium.encoders.apart import each_on_one_thread

        with torch.inference_mode():
            [apart] = each_on_one_thread(lambda network: network.keeps_apart(), [self._network])
        return not apart


def join_windows(said: Sequence[Float32Array], windows: Sequence[Window]) -> Float32Array:
    """What is said of a row, of what is said of its windows.

    The score and what is read are means by the length of the translation; there is no error where
    none is in the window that has one most likely.
    """
    if len(said) == 1:
        return said[0]
    sizes = np.array([max(1, len(window[0][1])) for window in windows], dtype=np.float64)
    heads = [part[: READ.stop].astype(np.float64) for part in said]
    head = sum(size * part for size, part in zip(sizes, heads, strict=True)) / sizes.sum()
    head[1] = min(part[1] for part in said)
    return np.concatenate([head.astype(np.float32), *(part[READ.stop :] for part in said)])


def findings_of(said: Float32Array) -> Float32Array:
    """What is said of each piece of a hypothesis, (pieces, FINDINGS)."""
    return said[READ.stop :].reshape(-1, FINDINGS)


def _blocks(
    rows: Sequence[Row], windows: Sequence[Sequence[Window]], most: int
) -> Iterator[list[int]]:
    """Places of rows that share sources and references, whose texts have at most so many pieces."""
    order = sorted(range(len(rows)), key=lambda n: [text or "" for text in rows[n][::-1]])
    block: list[int] = []
    held: set[RoleIds] = set()
    size = 0
    for n in order:
        fresh = {key for window in windows[n] for key in window} - held
        size += sum(len(ids) + SPECIALS for _, ids in fresh)
        if block and size > most:
            yield block
            block, held = [], set()
            fresh = {key for window in windows[n] for key in window}
            size = sum(len(ids) + SPECIALS for _, ids in fresh)
        block.append(n)
        held |= fresh
    if block:
        yield block


@lru_cache(maxsize=2)
def load_judge(model: Packaged, precision: Precision, device: str) -> RowJudge:
    """The judge of a model, kept for the next call."""
    return RowJudge(model, precision, device)
