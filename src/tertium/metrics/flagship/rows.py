"""Rows of texts through the network of tertium-multi: what its folder declares, and how it is run.

A row is a hypothesis with a source, a reference or both. Rows that share texts go together: each
distinct text passes the lower layers once, each row the upper ones. A text or row is computed on
its own, on one thread, so that neither order nor neighbours nor threads change a bit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, TypeVar

import numpy as np

from tertium import progress
from tertium.arrays import FloatArray
from tertium.encoders.pieces import UNKNOWN_PIECES, Pieces, Tokenizer, surely_fits, surely_known
from tertium.extras import require
from tertium.metrics.base.explanation import TextComparison
from tertium.metrics.base.links import compare_pieces
from tertium.metrics.flagship.packaged import HumanScale, Packaged, PackagedSettings
from tertium.runtime import Precision
from tertium.schema import POSITIVE, Rule, Sha256

if TYPE_CHECKING:
    from tertium.metrics.flagship.joint import JointNetwork, Lower

NETWORK, WORDS = "network.", "words."  # what the names of weights begin with
Row = tuple[str, str | None, str | None]  # hypothesis, source, reference, as far as they are read
RoleText = tuple[int, str]
SPECIALS = 2  # <s> and </s> around every text
PIECES_AT_ONCE = 24_000  # of lower states that are held, 3 kB each
DEALT = 8  # texts or rows that a thread is given at a time
LINKED = 6  # the layer whose vectors an explanation compares
TRUE_TEXT = Rule(lambda n: n > 2, "more than 2")
IN_BLOCKS = Rule(lambda n: n > 0 and n % 32 == 0, "a multiple of 32")
TWELVE = Rule(lambda n: n == 12, "12, the layers that the head looks at being among them")
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


@dataclass(frozen=True, kw_only=True)
class ViewScales:
    """What raw scores mean in each view: with less to go by, they stay nearer to the middle."""

    source: HumanScale
    reference: HumanScale
    both: HumanScale


@dataclass(frozen=True, kw_only=True)
class Logistic:
    """From the network's logit of no error to a chance that was seen to hold."""

    slope: Annotated[float, POSITIVE]
    shift: float


@dataclass(frozen=True, kw_only=True)
class MultiSettings(PackagedSettings):
    """What the `config.json` of such a model declares; `encoder_files` by their sha256."""

    encoder_files: Mapping[str, Sha256]
    shape: JointShape
    languages: tuple[str, ...]
    scales: ViewScales
    clean: Logistic


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
        from tertium.encoders.network import choose_device
        from tertium.encoders.precision import check_precision, lower_precision
        from tertium.metrics.flagship.joint import JointNetwork
        from tertium.models.loading import load_into

        device = choose_device(self._device)
        check_precision(self._precision, device)
        table = {n: w for n, w in self._model.weights.items() if n.startswith(WORDS)}
        tensors = {**self._model.restored(NETWORK), **table}
        shape = dataclasses.asdict(self._settings.shape)
        network = load_into(lambda: JointNetwork(**shape), tensors, self._model.folder)
        lower_precision(network.layers, self._precision, device)  # the head needs more than 8 bits
        return network.to(device)

    @property
    def _room(self) -> int:
        """How many pieces of a text are read."""
        return self._settings.shape.positions - SPECIALS

    def count_truncated(self, texts: Sequence[str]) -> int:
        """How many texts have more pieces than are read."""
        doubtful = [text for text in texts if not surely_fits(text, self._room)]
        return sum(len(pieces) > self._room for pieces in self._tokenizer(doubtful))

    def opaque(self, texts: Sequence[str]) -> int:
        """How many texts are not blank and have no known piece."""
        doubtful = [text for text in texts if not surely_known(text)]
        return sum({*text.pieces} <= UNKNOWN_PIECES for text in self._tokenizer(doubtful))

    def __call__(self, rows: Sequence[Row]) -> FloatArray:
        """The raw score and the logit of no error of each row, (rows, 2)."""
        pieces = self._pieces(rows)
        result = np.zeros((len(rows), 2))
        with progress.task("judging translations", total=len(rows)) as advance:
            for block in _blocks(rows, pieces):
                result[block] = self._run([rows[n] for n in block], pieces)
                advance(len(block))
        return result

    def comparisons(self, row: Row, values: Mapping[str, float]) -> Iterator[TextComparison]:
        """The hypothesis beside each other text of a row, by vectors that were read together."""
        import torch

        from tertium.metrics.flagship.joint import HYPOTHESIS, SOURCE, inside

        pieces, network = self._pieces([row]), self._network
        with torch.inference_mode():
            lower = {role: self._read((role, text), pieces) for role, text in _texts([row])}
            states, places = network.read_together(lower)
        vectors = {r: states[LINKED][inside(at)].cpu().numpy() for r, at in places.items()}
        names = dict(zip(places, (pieces[key].pieces for key in _texts([row])), strict=True))
        for role, text in _texts([row]):
            if role != HYPOTHESIS:
                both = (HYPOTHESIS, role)
                yield compare_pieces(
                    text,
                    values,
                    (names[both[0]], names[role]),
                    (vectors[both[0]], vectors[role]),
                    "source" if role == SOURCE else "reference",
                )

    def _pieces(self, rows: Sequence[Row]) -> dict[RoleText, Pieces]:
        texts = list(dict.fromkeys(_texts(rows)))
        found = self._tokenizer([text for _, text in texts])
        return {key: one.first(self._room) for key, one in zip(texts, found, strict=True)}

    def _read(self, key: RoleText, pieces: Mapping[RoleText, Pieces]) -> Lower:
        around = self._tokenizer
        return self._network.read((*around.prefix, *pieces[key].ids, *around.suffix), key[0])

    def _run(self, rows: Sequence[Row], pieces: Mapping[RoleText, Pieces]) -> FloatArray:
        """Every distinct text once through the lower layers, every row through the upper ones."""
        texts, network = list(dict.fromkeys(_texts(rows))), self._network
        read = self._each(lambda key: self._read(key, pieces), texts)
        lower = dict(zip(texts, read, strict=True))
        said = self._each(lambda row: network.judge({k[0]: lower[k] for k in _texts([row])}), rows)
        return np.array([one.cpu().numpy() for one in said], dtype=np.float64)

    def _each(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """The work on each item; on a CPU by several threads, each item on one."""
        import torch

        from tertium.encoders.apart import each_on_one_thread

        def run(some: Sequence[T]) -> list[R]:
            with torch.inference_mode():
                return [work(item) for item in some]

        shares = [items[start : start + DEALT] for start in range(0, len(items), DEALT)]
        on_cpu = self._network.mix.device.type == "cpu"
        parts: Iterable[list[R]] = (each_on_one_thread if on_cpu else map)(run, shares)
        return [result for part in parts for result in part]


def _texts(rows: Sequence[Row]) -> list[RoleText]:
    """The texts of rows with their roles, which are their places in a row."""
    return [(role, text) for row in rows for role, text in enumerate(row) if text is not None]


def _blocks(rows: Sequence[Row], pieces: Mapping[RoleText, Pieces]) -> Iterator[list[int]]:
    """Places of rows that share sources and references, as many as memory is meant to hold."""
    order = sorted(range(len(rows)), key=lambda n: [text or "" for text in rows[n][::-1]])
    block: list[int] = []
    held: set[RoleText] = set()
    size = 0
    for n in order:
        fresh = set(_texts([rows[n]])) - held
        size += sum(len(pieces[key]) + SPECIALS for key in fresh)
        if block and size > PIECES_AT_ONCE:
            yield block
            block, held, fresh = [], set(), set(_texts([rows[n]]))
            size = sum(len(pieces[key]) + SPECIALS for key in fresh)
        block.append(n)
        held |= fresh
    if block:
        yield block


@lru_cache(maxsize=2)
def load_judge(model: Packaged, precision: Precision, device: str) -> RowJudge:
    """The judge of a model, kept for the next call."""
    return RowJudge(model, precision, device)
