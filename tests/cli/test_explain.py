"""`tertium explain` with metrics that explain themselves by pieces."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import tertium
from tertium.cli import main
from tertium.cli.explain import show
from tertium.errors import UsageError
from tertium.evaluation import explaining
from tertium.metrics.base.explanation import Explanation, Link, Reasons, TextComparison

BLUE = ["-r", "The blue car stopped in front of the house.", "-t", "The red car stopped."]


def made(similarities: list[float]) -> TextComparison:
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
        hypothesis_pieces=pieces.__class__(piece.upper() for piece in pieces),
        other_pieces=pieces,
        links=links,
    )


def test_pieces_far_below_the_usual_have_no_partner() -> None:
    assert made([0.9, 0.95, 0.4, 0.92]).partnerless() == {"translation": ["c"], "reference": ["C"]}
    assert made([0.9, 0.88, 0.92]).partnerless() == {"translation": [], "reference": []}
    assert made([]).partnerless() == {"translation": [], "reference": []}


def test_it_says_which_words_found_no_partner(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["explain", "-m", "tertium-small", *BLUE]) == 0
    shown = capsys.readouterr().out
    missing = next(line for line in shown.splitlines() if "in the translation" in line)
    assert "front" in missing
    assert "percentile" in shown


def test_for_machines_it_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["explain", "-m", "tertium-small", *BLUE, "--json"]) == 0
    [comparison] = json.loads(capsys.readouterr().out)["comparisons"]
    assert comparison["hypothesis_pieces"] == ["the", "red", "car", "stopped", "."]


def test_what_a_reader_should_know_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    both = ["-m", "bertscore:encoder=toy", "-r", "", "-t", "a cat"]
    assert main(["explain", *both]) == 0
    assert capsys.readouterr().err == "tertium: warning: empty reference\n"
    assert main(["explain", *both, "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["warnings"] == ["empty reference"]
    assert printed.err == "tertium: warning: empty reference\n"
    assert main(["explain", "-m", "chrf", "-r", "a cat", "-t", "", "-t", "a"]) == 0
    assert capsys.readouterr().err == "tertium: warning: empty hypothesis\n"


def test_what_is_missing_is_asked_for_as_it_can_be_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for given, missing in (("-s", "-r"), ("-r", "-s")):
        metric = f"sss:encoder=toy,against={'reference' if missing == '-r' else 'source'}"
        assert main(["explain", "-m", metric, given, "a", "-t", "a"]) == 2
        assert f" has none: give {missing}, a column" in capsys.readouterr().err  # no file


def test_tables_of_nothing_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = Reasons(hypothesis="", reference="", perfect=0.0, groups={}, contributions=())
    show(Explanation(metric="Mine", score=0.0, reasons=nothing), 10)
    assert "─" not in capsys.readouterr().out


def test_long_texts_are_shown_by_their_ends(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    words = [f"w{n}" for n in range(900)]
    others = [f"{'v' if n % 30 == 0 else 'w'}{n}" for n in range(900)]
    texts = ["-r", " ".join(words), "-t", " ".join(others)]
    assert main(["explain", "-m", "bertscore:encoder=toy", *texts]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) < 400
    assert " and 15 more" in shown  # of 30
    assert " … " in shown
    assert main(["explain", "-m", "chrf", *texts, "-t", "w0"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) < 400


def test_a_plan_is_shown_by_what_moves_furthest(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["explain", "-m", "wmd", "-r", "the blue car", "-t", "the red car"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "transport" in line]
    assert rows[0][:2] == ["red", "blue"]


def test_against_the_source_where_there_is_no_reference(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["explain", "-s", "Das blaue Auto hielt an.", "-t", "The red car stopped."]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("tertium-multi: ")
    assert "errors it suspects" in shown
    assert "against the source 'Das blaue Auto hielt an.'" in shown


def test_other_languages_are_explained_by_what_reads_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    given = ["explain", "-r", "Синяя машина остановилась.", "-t", "Красная машина остановилась."]
    assert main(given) == 0
    assert capsys.readouterr().out.startswith("tertium-multi: ")
    monkeypatch.setattr(explaining, "are_installed", lambda: False)
    assert main(given) == 0
    assert capsys.readouterr().out.startswith("sentsim: ")


def test_the_name_of_a_file_is_no_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ours.txt"
    path.write_text("A cat.\n", encoding="utf-8")
    assert main(["explain", "-r", "A cat.", "-t", str(path)]) == 2
    assert f"-t takes the sentence itself, and {path} is a file" in capsys.readouterr().err
    assert main(["explain", "-m", "ter-r", "-r", "A cat.", "-t", "gone.txt"]) == 0


def test_nothing_to_compare_with_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-t", "The red car stopped."]) != 0
    assert "give -r TEXT, or -s TEXT" in capsys.readouterr().err


def test_a_metric_that_needs_a_reference_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["explain", "-m", "tertium-small", "-s", "Halt.", "-t", "Stop."]) != 0
    assert "needs references" in capsys.readouterr().err


def test_an_argument_that_is_not_utf8_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-t", "x", "-r", "y", "-r", "gr\udcfcn"]) == 2
    assert "error: -r: not UTF-8 (byte 0xfc)" in capsys.readouterr().err


@pytest.mark.parametrize("metric", ["bleu-r", "bertscore:encoder=toy"])
def test_the_library_says_what_the_command_prints(
    metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    assert main(["explain", "-m", metric, *BLUE, "-f", "json"]) == 0
    segment = tertium.Segment(BLUE[3], references=(BLUE[1],))
    explained = tertium.explain(segment, metric=metric)
    assert isinstance(explained, tertium.Explanation)
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(explained.as_dict()))
    assert explained == tertium.load_metric(metric).explain(segment)
    assert tertium.load_metric(explained.metric) == tertium.load_metric(metric)


def test_several_translations_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", "-m", "chrf", "-r", "a cat sat", "-t", "a cat sits", "-t", "a dog"]
    assert main([*command, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["names"] == ["a cat sits", "a dog"]
    assert said["chances"] == [[0.5, 1.0], [0.0, 0.5]]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "1: a cat sits" in shown
    assert shown.startswith("chrf: the chance that the row's translation is better")


def test_a_ranker_of_one_translation_asks_for_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-m", "pairwise", *BLUE]) == 2
    assert "pairwise compares translations: give it two or more" in capsys.readouterr().err


def test_of_several_references_the_one_that_counts_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["explain", "-m", "bleu-r", "-t", "the cat sat", "-r", "the cat sat down"]
    assert main([*command, "-r", "a dog"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "against the reference 'the cat sat down'"


def test_what_is_no_metric_is_told() -> None:
    with pytest.raises(UsageError, match="a metric is named by a text such as 'chrf', not by 3"):
        tertium.explain(tertium.Segment("a", references=("b",)), metric=3)  # type: ignore[arg-type]
    small = tertium.TestSet(systems={"a": ["x"]}, references=[["x"]])
    with pytest.raises(UsageError, match="--explain all: expected zero or more segments"):
        tertium.report(small, "chrf", explain="all")  # type: ignore[arg-type]


def test_figures_have_as_many_decimals_as_the_score(capsys: pytest.CaptureFixture[str]) -> None:
    part = replace(made([0.9]), values={"f1": 0.25, "recall": float("nan")})
    show(Explanation(metric="x", score=0.25, comparisons=(part,)), 1)
    shown = capsys.readouterr().out
    assert shown.startswith("x: 0.2500\n")
    assert "f1 0.2500, recall –\n" in shown


def test_an_empty_text_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["explain", "-r", "Hello world", "-t", "", "-m", "tertium-small"]) == 0
    assert "tertium-small" in capsys.readouterr().out
