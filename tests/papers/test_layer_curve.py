"""Curves over the layers of an encoder: one pass for all of them, and a picture."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from papers.experiments import Segments
from papers.pictures import write_picture
from papers.song2021 import TABLES, LayerCurve
from papers.table import measure

from tertium.cache.memory import forget
from tertium.data.collection import Collection
from tertium.encoders.body import Body
from tertium.metrics import load_metric
from tertium.runtime import runtime


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    """da/wmt17 de-en with a dozen made-up judgments."""
    folder = tmp_path / "data" / "da" / "wmt17"
    folder.mkdir(parents=True)
    rng = random.Random(7)
    words = "the cat sat on a mat and looked at us".split()
    rows = []
    for n in range(12):
        kept = [word for word in words if rng.random() < 0.8] or ["cat"]
        rows.append(
            {
                "system": "A",
                "segment": str(n),
                "mt": " ".join(kept),
                "ref": " ".join(words),
                "score": len(kept) + rng.random(),
            }
        )
    (folder / "de-en.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Collection(tmp_path / "data")


def test_all_layers_come_from_one_pass(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []
    encode = Body.encode

    def counted(self: Body, texts: Any, **options: Any) -> Any:
        passes.append(len(options["layers"]))
        return encode(self, texts, **options)

    monkeypatch.setattr(Body, "encode", counted)
    curve = LayerCurve(set="da/wmt17", columns=("de-en",), depths=(("minilm", 6),))
    (table,) = (table for table in TABLES if table.number == "figure-4")
    table = replace(table, experiment=curve, rows=curve.rows("reference"))
    with runtime(cache=False):
        forget()
        outcome = measure(table, collection)
        assert passes == [7]
        alone = Segments(set="da/wmt17", columns=("de-en",))
        expected = alone.measure(
            collection, load_metric("wmd:encoder=minilm@3,against=reference"), "de-en"
        )
    assert outcome.rows[3].measured[0] == pytest.approx(expected.value, abs=1e-6)
    assert len({row.measured[0] for row in outcome.rows}) == 7
    assert write_picture(outcome, tmp_path / "curve.svg")
    assert "minilm" in (tmp_path / "curve.svg").read_text()
