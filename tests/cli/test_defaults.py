"""The default metric of commands and functions."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.builders import write_jsonl, write_lines
from tests.cli.conftest import Run

import tertium
from tertium.core.errors import MissingInputError
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.evaluation.metric_choice import recommend_metric
from tertium.evaluation.paired_tests import SignificanceTests
from tertium.evaluation.ranking import recommend_ranker
from tertium.models import checkpoint

pytest.importorskip("torch")
ENGLISH = ("The cat is sitting on the mat.", "It has rained for three days in the north.") * 5
GERMAN = ("Die Katze sitzt auf der Matte.", "Im Norden regnet es seit drei Tagen.") * 5
CLEARLY_GERMAN = " ".join(GERMAN[:2])


def make_testset(references: Sequence[str] = (), sources: Sequence[str] = ()) -> TestSet:
    texts = ENGLISH[: len(references) or None]
    return TestSet(systems={"ours": texts}, references=[(r,) for r in references], sources=sources)


@pytest.mark.parametrize(
    ("references", "expected"),
    [
        (ENGLISH, "tertium-small"),
        (GERMAN, "tertium-multi"),
        ((*ENGLISH[:9], CLEARLY_GERMAN), "tertium-small"),
        ((*ENGLISH[:8], CLEARLY_GERMAN, CLEARLY_GERMAN), "tertium-multi"),
        (["我喜欢在公园里散步。"], "tertium-multi"),
        (["Мне нравится гулять."], "tertium-multi"),
        (["Yes."], "tertium-small"),
        (["Nobody came home."], "tertium-small"),
        (["Wind turbines generate electricity."], "tertium-small"),
        # neither clearly English nor clearly another language
        (["Hún fór heim í gær."], "tertium-multi"),
        (["Auf Wiedersehen, mein Freund."], "tertium-multi"),
        (["Wróciłem do domu wczoraj."], "tertium-multi"),
    ],
)
def test_recommended_metric_fits_the_references(references: list[str], expected: str) -> None:
    testset = make_testset(references)
    assert recommend_metric(testset) == expected
    if expected == "tertium-multi" and len(references) == 1:
        assert recommend_ranker(testset.segments("ours")) == "tertium-multi"


def test_recommended_metric_without_references_or_with_a_language() -> None:
    assert recommend_metric(make_testset(sources=GERMAN)) == "tertium-multi"
    assert recommend_metric(make_testset(GERMAN), "en") == "tertium-small"
    assert recommend_metric(make_testset(ENGLISH), "de") == "tertium-multi"
    with pytest.raises(MissingInputError, match="no metric is given, and the default one"):
        recommend_metric(make_testset())


def test_recommended_metric_is_installed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as without_weights:
        without_weights.setattr(checkpoint, "has_bundled_models", lambda: False)
        for references in (ENGLISH, GERMAN):
            assert recommend_metric(make_testset(references)) == "chrf"
        assert recommend_metric(make_testset(sources=GERMAN)) == "sss"
        assert "human agreement needs the package tertium-models (" in caplog.messages[-1]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert recommend_metric(make_testset(ENGLISH)) == "chrf"
    assert caplog.messages[-1] == (
        "no metric is given, so chrf is used: a metric with better human agreement needs torch: "
        'pip install "tertium[neural]"'
    )
    # its error says what to install
    assert recommend_metric(make_testset(sources=GERMAN)) == "tertium-multi"
    assert len(caplog.messages) == 3


def test_recommended_ranker_fits_the_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    for testset, expected in (
        (make_testset(ENGLISH, GERMAN), "pairwise"),
        (make_testset(GERMAN), "tertium-multi"),
        (make_testset(sources=GERMAN), "tertium-multi"),
    ):
        assert recommend_ranker(testset.segments("ours")) == expected
    with pytest.raises(MissingInputError, match="needs references, sources or both"):
        recommend_ranker(make_testset().segments("ours"))
    monkeypatch.setattr(checkpoint, "has_bundled_models", lambda: False)
    assert recommend_ranker(make_testset(ENGLISH).segments("ours")) == "chrf"


def test_commands_and_functions_use_the_recommended_metric(tmp_path: Path, run: Run) -> None:
    ours = write_lines(tmp_path / "ours.txt", ENGLISH)
    reference = write_lines(tmp_path / "ref.txt", ENGLISH[::-1])
    german = write_lines(tmp_path / "de.txt", GERMAN)
    assert "tertium-small" in run(f"score -t {ours} -r {reference}").out
    assert "tertium-multi" in run(f"score -t {german} -r {german}").out
    printed = run(f"compare -t {ours} {german} -r {reference} --paired-bs-n 10").out
    assert all(name in printed for name in ("BLEU", "chrF", "tertium-small"))
    testset = TestSet(
        systems={"a": ENGLISH, "b": ENGLISH[::-1]}, references=[(text,) for text in ENGLISH]
    )
    assert tertium.score(testset).metrics == ("tertium-small",)
    usual = ("bleu", "chrf", "tertium-small")
    assert tertium.compare(testset, resamples=10).metrics == usual
    report = tertium.report(testset, tests=SignificanceTests(resamples=10), explain=0)
    assert {c.name for c in report.grid.columns} == {"BLEU", "chrF", "tertium-small"}


def test_rank_works_with_sources_only(tmp_path: Path, run: Run) -> None:
    """Systems, candidate lists and two translations can be ranked without references."""
    good, bad = ENGLISH[:2], ("A dog eats.", "Nobody came home.")
    source = write_lines(tmp_path / "source", GERMAN[:2])
    systems = [write_lines(tmp_path / "bad", bad), write_lines(tmp_path / "good", good)]
    records = run(f"rank -s {source} -t {' '.join(systems)} -f json").json
    assert [record["system"] for record in records] == ["good", "bad"]
    assert records[0]["name"] == "tertium-multi"
    record = {"source": GERMAN[0], "candidates": [bad[0], good[0]]}
    lists = write_jsonl(tmp_path / "lists.jsonl", [record])
    assert run(f"rank candidates {lists}").json["order"] == [1, 0]
    segments = [Segment(text, GERMAN[0]) for text in (bad[0], good[0])]
    assert tertium.explain(*segments).metric == "tertium-multi"
