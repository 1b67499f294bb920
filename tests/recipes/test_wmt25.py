"""Agreement on WMT25: figures have their definitions, and pages show the stored figures."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from recipes.multi.evaluate import pair_accuracy, system_accuracy

from recipes import wmt25
from tertium.core.segment import Judgment, Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet


def make_set(seed: int = 0) -> tuple[JudgmentSet, np.ndarray]:
    """Return human scores with ties and a missing translation, and two metrics, one with ties."""
    rng = np.random.default_rng(seed)
    judgments = [
        Judgment(
            Segment("text"),
            float(rng.integers(0, 20)) * 5,
            item=f"doc{item // 3}:{item}",
            system=system,
            lp="en-it",
            document=f"doc{item // 3}",
        )
        for item in range(24)
        for system in "ABCDE"
        if (item, system) != (3, "C")
    ]
    one = JudgmentSet(name=wmt25.SET, lp="en-it", judgments=tuple(judgments))
    noisy = one.scores + rng.normal(0, 40, len(one))
    return one, np.array([noisy, np.round(noisy, -1)])


def test_figures_have_their_definitions() -> None:
    one, scores = make_set()
    documents = sorted({j.document for j in one.judgments})
    sums = wmt25.sum_by_document(one, scores, documents)
    figures = sums.figures(np.ones((1, len(documents))))[0]
    items = np.unique([j.item for j in one.judgments], return_inverse=True)[1]
    systems = np.array([j.system for j in one.judgments])
    for own, expected in zip(figures, scores, strict=True):
        assert own[0] == pytest.approx(np.corrcoef(one.scores, expected)[0, 1])
        assert own[1] == pytest.approx(pair_accuracy(one.scores, expected, items))
        assert own[2] == pytest.approx(system_accuracy(one.scores, expected, systems, items))


def test_a_weight_counts_a_document_as_often() -> None:
    one, scores = make_set()
    documents = sorted({j.document for j in one.judgments})
    weights = np.array([[2.0, 0.0, *np.ones(len(documents) - 2)]])
    figures = wmt25.sum_by_document(one, scores, documents).figures(weights)[0]
    rows = [n for n, j in enumerate(one.judgments) if j.document != documents[1]]
    rows += [n for n in rows if one.judgments[n].document == documents[0]]
    expected = np.corrcoef(one.scores[rows], scores[0][rows])[0, 1]
    assert figures[0, 0] == pytest.approx(expected)


def test_pages_show_the_stored_figures() -> None:
    result = wmt25.load_result()
    pages = list(wmt25.pages())
    assert wmt25.ROOT / "README.md" in pages
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert wmt25.fill_tables(text, result) == text, f"run `python -m recipes.wmt25`: {page}"


def test_figures_in_the_text_are_stored() -> None:
    result = wmt25.load_result()
    tables = [make_table(result) for make_table in wmt25.TABLES.values()]
    stored = set(re.findall(r"-?\.\d{3}\b", "".join(tables)))
    page = (wmt25.RESULTS.with_suffix(".md")).read_text(encoding="utf-8")
    figures = re.findall(r"-?\.\d{3}\b", wmt25.MARKED.sub("", page))
    assert len(figures) > 10
    assert set(figures) <= stored


def test_stored_figures_come_from_a_commit() -> None:
    code = wmt25.load_result()["code"]
    assert "commit" in code
    assert "with changes" not in code


def test_stored_figures_of_published_scores(human_data: Path) -> None:
    one = DatasetFolder(human_data).judgments(wmt25.SET, "en-uk").drop_without_references()
    names = ("gemba_gpt41", "metricx24xl")
    scores = np.array([one.metric_scores()[name] for name in names])
    documents = sorted({j.document for j in one.judgments})
    sums = wmt25.sum_by_document(one, scores, documents)
    figures = sums.figures(np.ones((1, len(documents))))[0]
    for name, values in zip(names, figures, strict=True):
        stored = wmt25.load_result()["figures"][name]["en-uk"]
        assert values == pytest.approx([stored[key][0] for key in wmt25.FIGURES], abs=1e-4)
