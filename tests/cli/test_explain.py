"""`tertium explain` with texts and files; recorded transcripts have more of its output."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.conftest import Run

import tertium
from tertium.core.errors import UsageError
from tertium.evaluation import explaining
from tertium.metrics.base.explanation import Explanation, FeatureAttribution, Link, TextComparison

REFERENCE, TRANSLATION = "The blue car stopped in front of the shop.", "The red car stopped."
BLUE = f"-r '{REFERENCE}' -t '{TRANSLATION}'"


def make_comparison(similarities: list[float]) -> TextComparison:
    pieces = tuple("abcde"[: len(similarities)])
    links = tuple(
        Link(hypothesis=n, other=n, similarity=s, weight=0.2, direction=direction)
        for direction in ("recall", "precision")
        for n, s in enumerate(similarities)
    )
    return TextComparison(
        side="reference",
        text="",
        values={},
        hypothesis_pieces=tuple(piece.upper() for piece in pieces),
        other_pieces=pieces,
        links=links,
    )


@pytest.mark.parametrize(
    ("similarities", "translation", "reference"),
    [([0.9, 0.95, 0.4, 0.92], ["c"], ["C"]), ([0.9, 0.88, 0.92], [], []), ([], [], [])],
)
def test_pieces_with_low_similarity_are_unmatched(
    similarities: list[float], translation: list[str], reference: list[str]
) -> None:
    expected = {"translation": translation, "reference": reference}
    assert make_comparison(similarities).unmatched_pieces() == expected


def test_unmatched_words_are_named(run: Run) -> None:
    pytest.importorskip("torch")
    printed = run(f"explain --text -m bertr {BLUE}").out
    missing = next(line for line in printed.splitlines() if "in the translation" in line)
    assert "front" in missing
    [comparison] = run(f"explain --text -m bertr {BLUE} -f json").json["comparisons"]
    assert comparison["hypothesis_pieces"] == ["the", "red", "car", "stopped", "."]
    assert "percentile" in run(f"explain --text -m tertium-small {BLUE}").out
    assert "tertium-small" in run("explain --text -m tertium-small -r 'Hello world' -t ''").out


def test_empty_tables_are_not_printed() -> None:
    nothing = FeatureAttribution(
        hypothesis="", reference="", perfect=0.0, groups={}, contributions=()
    )
    assert "─" not in str(Explanation(metric="Mine", score=0.0, attribution=nothing))


def test_long_texts_are_abbreviated(run: Run) -> None:
    pytest.importorskip("torch")
    reference = " ".join(f"w{n}" for n in range(900))
    translation = " ".join(f"{'v' if n % 30 == 0 else 'w'}{n}" for n in range(900))
    texts = f"-r '{reference}' -t '{translation}'"
    printed = run(f"explain --text -m bertscore:encoder=toy {texts}").out
    assert max(map(len, printed.splitlines())) < 400
    assert ", and 15 more" in printed  # of 30
    assert " … " in printed
    compared = run(f"explain --text -m chrf {texts} -t w0").out
    assert max(map(len, compared.splitlines())) < 400


def test_the_default_metric_fits_the_texts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    printed = run("explain --text -s 'Das blaue Auto hielt an.' -t 'The red car stopped.'").out
    assert printed.startswith("tertium-multi: ")
    assert "suspected errors" in printed
    assert "compared with the source 'Das blaue Auto hielt an.'" in printed
    russian = "explain --text -r 'Синяя машина остановилась.' -t 'Красная машина остановилась.'"
    assert run(russian).out.startswith("tertium-multi: ")
    monkeypatch.setattr(explaining, "has_bundled_models", lambda: False)
    assert run(russian).out.startswith("sentsim: ")


@pytest.mark.usefixtures("workspace")
def test_one_segment_of_files_is_explained_like_its_texts(run: Run) -> None:
    from_files = run("explain -m ter-r -f json -t a.txt -r r1.txt --segment 2")
    ours, reference = (
        Path(name).read_text("utf-8").splitlines()[1] for name in ("a.txt", "r1.txt")
    )
    assert run(f'explain -m ter-r -f json --text -t "{ours}" -r "{reference}"') == from_files


@pytest.mark.parametrize("metric", ["bleu-r", "bertscore:encoder=toy"])
def test_library_returns_the_printed_explanation(metric: str, run: Run) -> None:
    pytest.importorskip("torch")
    segment = tertium.Segment(TRANSLATION, references=(REFERENCE,))
    explained = tertium.explain(segment, metric=metric)
    assert isinstance(explained, tertium.Explanation)
    printed = run(f"explain --text -m {metric} {BLUE} -f json").json
    assert printed == json.loads(json.dumps(explained.as_dict()))
    assert explained == tertium.load_metric(metric).explain(segment)
    assert tertium.load_metric(explained.metric) == tertium.load_metric(metric)


def test_invalid_metric_and_count_are_errors() -> None:
    with pytest.raises(UsageError, match="expected a metric or a spec such as 'chrf', got 3"):
        tertium.explain(tertium.Segment("a", references=("b",)), metric=3)  # type: ignore[arg-type]
    small = tertium.TestSet(systems={"a": ["x"]}, references=[["x"]])
    with pytest.raises(UsageError, match="--explain all: expected zero or more segments"):
        tertium.report(small, "chrf", explain="all")  # type: ignore[arg-type]


def test_figures_have_as_many_decimals_as_the_score() -> None:
    part = replace(make_comparison([0.9]), values={"f1": 0.25, "recall": float("nan")})
    printed = str(Explanation(metric="x", score=0.25, comparisons=(part,)))
    assert printed.startswith("x: 0.2500\n")
    assert "f1 0.2500, recall –\n" in printed
