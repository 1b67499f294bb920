"""The default metric of commands and functions."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import tertium
from tertium.cli import main
from tertium.core.errors import MissingInputError
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.evaluation.metric_choice import recommend_metric
from tertium.evaluation.ranking import recommend_ranker
from tertium.evaluation.significance_options import SignificanceTests
from tertium.models import checkpoint

pytest.importorskip("torch")
ENGLISH = ("The cat is sitting on the mat.", "It has rained for three days in the north.") * 5
GERMAN = ("Die Katze sitzt auf der Matte.", "Im Norden regnet es seit drei Tagen.") * 5


def make_testset(references: tuple[str, ...] = (), sources: tuple[str, ...] = ()) -> TestSet:
    return TestSet(
        systems={"ours": ENGLISH}, references=[(r,) for r in references], sources=sources
    )


def test_recommended_metric_fits_the_inputs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert recommend_metric(make_testset(ENGLISH)) == "tertium-small"
    assert recommend_metric(make_testset(GERMAN)) == "tertium-multi"
    clearly = " ".join(GERMAN[:2])
    assert recommend_metric(make_testset((*ENGLISH[:8], clearly, clearly))) == "tertium-multi"
    assert recommend_metric(make_testset((*ENGLISH[:9], clearly))) == "tertium-small"
    assert recommend_metric(make_testset(sources=GERMAN)) == "tertium-multi"
    for few in ("我喜欢在公园里散步。", "Мне нравится гулять.", " ".join(GERMAN[:2])):
        one = TestSet(systems={"ours": ENGLISH[:1]}, references=[(few,)])
        assert recommend_metric(one) == "tertium-multi"
    for few in ("Yes.", "Nobody came home.", "Wind turbines generate electricity."):
        one = TestSet(systems={"a": ["Ok."]}, references=[(few,)])
        assert recommend_metric(one) == "tertium-small"
    # neither clearly English nor clearly another language
    for few in (
        "Hún fór heim í gær.",
        "Auf Wiedersehen, mein Freund.",
        "Wróciłem do domu wczoraj.",
    ):
        one = TestSet(systems={"a": ["Ok."]}, references=[(few,)])
        assert recommend_metric(one) == "tertium-multi"
        assert recommend_ranker(one.segments("a")) == "tertium-multi"
    with pytest.raises(MissingInputError, match="no metric is given, and the default one"):
        recommend_metric(make_testset())
    with monkeypatch.context() as without_weights:
        without_weights.setattr(checkpoint, "has_bundled_models", lambda: False)
        assert (
            recommend_metric(make_testset(ENGLISH))
            == recommend_metric(make_testset(GERMAN))
            == "chrf"
        )
        assert recommend_metric(make_testset(sources=GERMAN)) == "sss"
        assert "human agreement needs the package tertium-models (" in caplog.messages[-1]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert recommend_metric(make_testset(ENGLISH)) == "chrf"
    assert caplog.messages[-1] == (
        "no metric is given, so chrf is used: a metric with better human agreement needs torch: "
        'pip install "tertium[neural]"'
    )
    assert (
        recommend_metric(make_testset(sources=GERMAN)) == "tertium-multi"
    )  # its error says what to install
    assert len(caplog.messages) == 3


def test_score_uses_the_recommended_metric_by_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, texts in (("ours.txt", ENGLISH), ("ref.txt", ENGLISH[::-1]), ("de.txt", GERMAN)):
        (tmp_path / name).write_text("\n".join(texts) + "\n", encoding="utf-8")
    ours, reference, german = (str(tmp_path / n) for n in ("ours.txt", "ref.txt", "de.txt"))
    assert main(["score", "-t", ours, "-r", reference]) == 0
    assert "tertium-small" in capsys.readouterr().out
    assert main(["score", "-t", german, "-r", german]) == 0
    assert "tertium-multi" in capsys.readouterr().out
    assert main(["compare", "-t", ours, german, "-r", reference, "--paired-bs-n", "10"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("BLEU", "chrF", "tertium-small"))


def test_library_and_command_have_the_same_default_metrics() -> None:
    testset = TestSet(
        systems={"a": ENGLISH, "b": ENGLISH[::-1]}, references=[(text,) for text in ENGLISH]
    )
    assert tertium.score(testset).metrics == ("tertium-small",)
    usual = ("bleu", "chrf", "tertium-small")
    assert tertium.compare(testset, resamples=10).metrics == usual
    assert {
        c.name
        for c in tertium.report(
            testset, tests=SignificanceTests(resamples=10), explain=0
        ).grid.columns
    } == {
        "BLEU",
        "chrF",
        "tertium-small",
    }


def test_recommended_ranker_fits_the_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert recommend_ranker(make_testset(ENGLISH, GERMAN).segments("ours")) == "pairwise"
    assert recommend_ranker(make_testset(GERMAN).segments("ours")) == "tertium-multi"
    assert recommend_ranker(make_testset(sources=GERMAN).segments("ours")) == "tertium-multi"
    with pytest.raises(MissingInputError, match="needs references, sources or both"):
        recommend_ranker(make_testset().segments("ours"))
    monkeypatch.setattr(checkpoint, "has_bundled_models", lambda: False)
    assert recommend_ranker(make_testset(ENGLISH).segments("ours")) == "chrf"


def test_rank_works_with_sources_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Systems, candidate lists and two translations can be ranked without references."""
    sources = ["Die Katze sitzt auf der Matte.", "Im Norden regnet es seit drei Tagen."]
    good, bad = list(ENGLISH[:2]), ["A dog eats.", "Nobody came home."]
    for name, texts in (("source", sources), ("bad", bad), ("good", good)):
        (tmp_path / name).write_text("\n".join(texts) + "\n", encoding="utf-8")
    names = ("source", "bad", "good")
    source, *systems = (str(tmp_path / name) for name in names)
    assert main(["rank", "-s", source, "-t", *systems, "-f", "json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [record["system"] for record in records] == ["good", "bad"]
    assert records[0]["name"] == "tertium-multi"
    lists = tmp_path / "lists.jsonl"
    record = {"source": sources[0], "candidates": [bad[0], good[0]]}
    lists.write_text(json.dumps(record) + "\n")
    assert main(["rank", "candidates", str(lists)]) == 0
    assert json.loads(capsys.readouterr().out)["order"] == [1, 0]
    segments = [Segment(text, sources[0]) for text in record["candidates"]]
    assert tertium.explain(*segments).metric == "tertium-multi"


def test_stated_language_chooses_the_default_metric() -> None:
    assert recommend_metric(make_testset(GERMAN), "en") == "tertium-small"
    assert recommend_metric(make_testset(ENGLISH), "de") == "tertium-multi"


def test_missing_texts_are_explained_without_a_metric_that_nobody_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_text("A cat.\n")
    assert main(["score", "-t", str(tmp_path / "a")]) == 2
    message = capsys.readouterr().err
    assert "chrf" not in message
    assert "tertium-multi) needs references, sources or both: give -r" in message
