"""Curves over the layers of an encoder: one forward pass for all layers, and a chart."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from papers.charts import write_chart
from papers.experiments import Segments
from papers.song2021 import LayerCurve
from papers.table import measure

from papers import find_table
from tertium.core.runtime import runtime
from tertium.data.dataset_folder import DatasetFolder
from tertium.encoders.transformer_encoder import TransformerEncoder
from tertium.encoders.vector_cache import clear_memory
from tertium.metrics import load_metric


@pytest.fixture
def datasets(tmp_path: Path) -> DatasetFolder:
    """da/wmt17 de-en with twelve synthetic judgments."""
    folder = tmp_path / "data" / "da" / "wmt17"
    folder.mkdir(parents=True)
    rng = random.Random(7)
    words = "the cat sat on a mat and looked at us".split()
    rows = []
    for n in range(12):
        subset = [word for word in words if rng.random() < 0.8] or ["cat"]
        rows.append(
            {
                "system": "A",
                "segment": str(n),
                "mt": " ".join(subset),
                "ref": " ".join(words),
                "score": len(subset) + rng.random(),
            }
        )
    (folder / "de-en.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return DatasetFolder(tmp_path / "data")


def test_all_layers_share_one_forward_pass(
    datasets: DatasetFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []
    run = TransformerEncoder._run_pass

    def count_passes(self: TransformerEncoder, texts: Any, layers: Any, sentences: bool) -> Any:
        passes.append(len(layers))
        return run(self, texts, layers, sentences)

    monkeypatch.setattr(TransformerEncoder, "_run_pass", count_passes)
    curve = LayerCurve(set="da/wmt17", columns=("de-en",), depths=(("minilm", 6),))
    table = find_table("song2021", "figure-4")
    rows = [row for row in table.rows if row.label.startswith("minilm")]
    table = replace(table, experiment=curve, rows=rows)
    with runtime(cache=False):
        clear_memory()
        result = measure(table, datasets)
        assert passes == [7]
        segments = Segments(set="da/wmt17", columns=("de-en",))
        expected = segments.measure(
            datasets, load_metric("wmd:encoder=minilm@3,against=reference"), "de-en"
        )
    assert result.rows[3].measured_values[0] == pytest.approx(expected.value, abs=1e-6)
    assert len({row.measured_values[0] for row in result.rows}) == 7
    assert write_chart(result, tmp_path / "curve.svg")
    assert "minilm" in (tmp_path / "curve.svg").read_text()
