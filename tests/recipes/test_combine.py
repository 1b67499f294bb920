"""How the network of tertium-multi is corrected: the search over shares, against plain arrays."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from recipes.multi import combine
from recipes.multi.columns import RIDGE, Readouts, kind_of
from recipes.multi.combine import (
    COLUMNS,
    LETTERS,
    PLAIN,
    READINGS,
    bound,
    climb,
    moments,
    notice,
    only,
    put_corrections,
    readings,
    value,
)
from recipes.multi.e5 import Pieces
from safetensors.numpy import load_file

from tertium.cache.files import hash_of
from tertium.metrics.flagship.combination import FAIR, Correction, strange_words
from tertium.metrics.flagship.multi import READOUT, VIEWS
from tertium.models.checkpoint import shipped_models


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of 400 rows that chrF and the reading of all kinds tell about, the score does not."""
    rng = np.random.default_rng(1)
    human, letters, read = rng.normal(size=400), rng.random(400), rng.normal(size=(400, 3))
    strange = np.tile([0.0, 0.5], 200)
    read[:, READINGS.index("all")] += human
    letters += 0.3 * human
    said = rng.normal(size=400) * 4
    np.savez(
        tmp_path / "dev.npz",
        names=np.array(["dev:wmt15/cs-en"]),
        set=np.zeros(400, int),
        human=human,
        letters=np.column_stack([np.full(400, np.nan), letters]),
        strange=strange,
        said_reference=said,
        read_reference=read,
    )
    return tmp_path


def test_moments_give_the_correlation_of_any_shares(folder: Path) -> None:
    [one] = moments(folder, "dev", "reference", 2.0)
    shares = np.array([0.3, 0.1, 0.7, 0.4, 1.5, 0.8, 0.2, 0.0])
    with np.load(folder / "dev.npz") as stored:
        total = (
            (0.3 - 0.2 * stored["strange"]) * bound(stored["said_reference"], 2.0)
            + stored["read_reference"] @ [0.1, 0.7, 0.4]
            + 1.5 * stored["letters"][:, 1]
            + 0.8 * stored["strange"] * (stored["letters"][:, 1] - FAIR)
        )
        human = stored["human"]
    assert one.r(shares) == pytest.approx(np.corrcoef(total, human)[0, 1])
    assert one.slope(shares) == pytest.approx(np.polyfit(total, human, 1)[0])


def test_the_search_takes_what_tells_and_leaves_what_does_not(folder: Path) -> None:
    best, shares = climb(moments(folder, "dev", "reference", 2.0))
    assert shares.min() >= 0
    every, letters = shares[COLUMNS.index("all")], shares[LETTERS]
    assert min(every, letters) > 0.4
    assert shares[0] < 0.3 * every
    assert best > 0.75


def test_what_is_behind_chrf_or_behind_fewer_texts_costs(folder: Path) -> None:
    sets = moments(folder, "dev", "reference", 2.0)
    shares, poor = only(COLUMNS.index("all")) + only(LETTERS), only(0)
    r, chrf, own = (sets[0].r(weights) for weights in (shares, only(LETTERS), poor))
    assert r > chrf > own
    assert value(sets, shares) == pytest.approx(r)
    assert value(sets, shares, {"dev/dev:wmt15": r + 0.1}) == pytest.approx(r - 0.1)
    assert value(sets, poor) == pytest.approx(own - (chrf - own))


def test_damage_is_noticed_where_the_correction_scores_it_lower(tmp_path: Path) -> None:
    """By two kinds: of copies the network's own score counts whole, whatever its share."""
    np.savez(
        tmp_path / "damage.npz",
        names=np.array(["dropped", "copy"]),
        set=np.array([0, 0, 1, 1]),
        human=np.zeros(4),
        letters=np.array([[0.1, 0.5], [0.1, 0.5], [0.1, 0.5], [1.0, 0.7]]),
        strange=np.zeros(4),
        said_both=np.array([0.5, -1.0, 0.4, -0.6]),
        said_reference=np.array([0.5, -1.0, 0.4, -0.6]),
        read_both=np.zeros((4, len(READINGS))),
        read_reference=np.zeros((4, len(READINGS))),
    )
    weights = 0.1 * only(0) + only(LETTERS)
    assert notice(tmp_path, "both", 2.0, weights) == {"dropped": 1.0, "copy": 1.0}
    assert notice(tmp_path, "reference", 2.0, weights) == {"dropped": 1.0, "copy": 0.0}


def test_readings_are_ridge_regressions_on_features_of_one_variance(tmp_path: Path) -> None:
    """One feature never changes, and those of another scale pay no less for their weights."""
    import torch
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(2)
    found = rng.normal(size=(600, 5)) * [1, 10, 0.1, 0, 1] + [0, 5, 0, 3, 0]
    human = np.clip(found @ [1.0, -0.1, 3, 0, 0.5] + 0.01 * rng.normal(size=600), -4, 3)
    often = rng.random(600) + 0.5
    readouts, kinds = Readouts("cpu"), ["da"] * 300 + ["esa"] * 300
    sums = readouts.learn(
        torch.from_numpy(found), human.astype(np.float32), kinds, often.astype(np.float32)
    )
    readouts.solve("source", sums)
    readouts.save(tmp_path / "readouts.npz")
    crowds, every, taught = readings(tmp_path, "source")
    assert not taught.any()
    for weights, some in ((crowds, slice(0, 300)), (every, slice(0, 600))):
        mean = np.average(found[some], axis=0, weights=often[some])
        spread = np.sqrt(np.average((found[some] - mean) ** 2, axis=0, weights=often[some]))
        scaled = (found[some] - mean) / np.where(spread > 0, spread, 1)
        plain = Ridge(alpha=RIDGE * often[some].sum())
        plain.fit(scaled, human[some], sample_weight=often[some])
        said = found[some] @ weights[:-1] + weights[-1]
        np.testing.assert_allclose(said, plain.predict(scaled), atol=1e-4)
        assert weights[3] == 0


def test_kinds_of_sets_are_told_apart() -> None:
    assert [kind_of(n) for n in ("wmt16/x", "wmt22/x", "wmt24/x", "bio21/x", "mlqe-train/x")] == [
        "old",
        "da",
        "esa",
        "mqm",
        "qe",
    ]


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that ships, of which nothing is known yet."""
    monkeypatch.setattr(combine, "shipped_models", lambda: tmp_path)
    folder = tmp_path / "tertium-multi"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


def test_a_new_network_is_left_as_it_is_until_something_corrects_it(shipped: Path) -> None:
    put_corrections(dict.fromkeys(VIEWS, PLAIN), dict.fromkeys(VIEWS, np.zeros(513)))
    config = json.loads((shipped / "config.json").read_text())
    assert config["parts"] == {READOUT: hash_of(shipped / READOUT)}
    said = np.array([-12.0, 0.3, 5.0])
    for view in VIEWS:
        correct = Correction(**config["corrections"][view])
        row = (
            "ein Wort",
            None if view == "reference" else "a word",
            None if view == "source" else "x",
        )
        found = correct([row] * 3, said, np.zeros(3), np.ones(3))
        np.testing.assert_allclose(found, said, rtol=1e-9)


def test_a_view_that_is_not_put_stays_as_it_is(shipped: Path) -> None:
    rng = np.random.default_rng(3)
    first = {view: rng.normal(size=5) for view in VIEWS}
    put_corrections(dict.fromkeys(VIEWS, PLAIN), first)
    put_corrections({"both": {**PLAIN, "share": 0.5}}, {"both": np.ones(5)})
    config = json.loads((shipped / "config.json").read_text())
    assert [config["corrections"][view]["share"] for view in VIEWS] == [1.0, 1.0, 0.5]
    readout = load_file(shipped / READOUT)
    weight, bias = readout["network.readout.weight"], readout["network.readout.bias"]
    expected = np.array([first["source"], first["reference"], np.ones(5)])
    np.testing.assert_allclose(weight, expected[:, :-1], rtol=1e-6)
    np.testing.assert_allclose(bias, expected[:, -1], rtol=1e-6)


def test_strange_words_are_those_of_hypothesis_and_reference() -> None:
    """The pieces that ship cut Livonian, and Chinese has no words to cut."""
    pieces = Pieces(shipped_models() / "tertium-multi/encoder/tokenizer.json")
    livonian = "Līvõd rānda um ilzõ nīžtõd"
    rows = [("a cat sat", livonian, "a cat sat"), (livonian, None, livonian)]
    rows += [(livonian, None, "a cat sat"), (livonian, "a cat", None), ("火车不开。", None, "今天")]
    assert strange_words(rows, pieces.encode).tolist() == [0.0, 1.0, 0.5, 0.0, 0.0]
