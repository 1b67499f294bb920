"""Fixtures: a headless browser and an example report page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.output import chromium

from tertium.core.scores import ScoreMatrix
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import compare
from tertium.metrics.base.loading import load_metric
from tertium.output.page.report import report_results
from tertium.output.page.segment_browser import SegmentExplanation, render_explanation


@pytest.fixture(scope="session")
def running_browser() -> Iterator[chromium.Browser]:
    if os.name != "posix":
        pytest.skip("needs Linux or macOS: the browser is driven over inherited descriptors")
    program = chromium.find_browser()
    if program is None:
        pytest.skip("needs Chromium: install it, or name its program in CHROMIUM")
    with chromium.browsing(program) as browser_process:
        yield browser_process


@pytest.fixture
def browser(running_browser: chromium.Browser) -> chromium.Browser:
    """A browser with a standard window size and a light theme."""
    running_browser.resize(1280, 900)
    running_browser.media(scheme="light")
    return running_browser


@pytest.fixture(scope="session")
def human_scores(example: TestSet) -> ScoreMatrix:
    """Invented human scores of the example, a few of them missing."""
    values = np.random.default_rng(7).normal([[80.0], [60.0], [30.0]], 12, (3, len(example)))
    values[:, 40:] = np.nan
    return ScoreMatrix("human", tuple(example.systems), values)


@pytest.fixture(scope="session")
def page(
    running_browser: chromium.Browser,  # first: without a browser, the page is not needed
    example: TestSet,
    human_scores: ScoreMatrix,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A report of the example: three metrics, human scores, two kinds of explanations."""
    results = compare(example, ["bleu", "chrf", "ter"], resamples=100)
    explanations = []
    for name in ("bertscore:encoder=toy", "wmd:encoder=toy"):
        metric = load_metric(name)
        html = render_explanation(metric.explain(example.segments("fair")[3]))
        explanations.append(SegmentExplanation(item=3, system=1, title=metric.label, html=html))
    path = tmp_path_factory.mktemp("report") / "page.html"
    report = report_results(results, human=human_scores, title="Example")
    replace(report, explained=tuple(explanations)).write(path)
    return path
