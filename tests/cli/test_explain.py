"""`tertium explain` with texts and files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import tertium
from tertium.cli import main
from tertium.core.errors import UsageError
from tertium.evaluation import explaining
from tertium.metrics.base.explanation import Explanation, FeatureAttribution, Link, TextComparison

BLUE = [
    "-r",
    "The blue car stopped in front of the shop.",
    "-t",
    "The red car stopped.",
]


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
        hypothesis_pieces=pieces.__class__(piece.upper() for piece in pieces),
        other_pieces=pieces,
        links=links,
    )


def test_pieces_with_low_similarity_are_unmatched() -> None:
    assert make_comparison([0.9, 0.95, 0.4, 0.92]).unmatched_pieces() == {
        "translation": ["c"],
        "reference": ["C"],
    }
    assert make_comparison([0.9, 0.88, 0.92]).unmatched_pieces() == {
        "translation": [],
        "reference": [],
    }
    assert make_comparison([]).unmatched_pieces() == {"translation": [], "reference": []}


def test_explanation_names_unmatched_words(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["explain", "--text", "-m", "tertium-small", *BLUE]) == 0
    printed = capsys.readouterr().out
    missing = next(line for line in printed.splitlines() if "in the translation" in line)
    assert "front" in missing
    assert "percentile" in printed


def test_explanation_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["explain", "--text", "-m", "tertium-small", *BLUE, "-f", "json"]) == 0
    [comparison] = json.loads(capsys.readouterr().out)["comparisons"]
    assert comparison["hypothesis_pieces"] == ["the", "red", "car", "stopped", "."]


def test_explanation_prints_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    both = ["-m", "bertscore:encoder=toy", "-r", "", "-t", "a cat"]
    assert main(["explain", "--text", *both]) == 0
    assert capsys.readouterr().err == "tertium: warning: empty reference\n"
    assert main(["explain", "--text", *both, "-f", "json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["warnings"] == ["empty reference"]
    assert printed.err == "tertium: warning: empty reference\n"
    assert (
        main(
            [
                "explain",
                "--text",
                "-m",
                "chrf",
                "-r",
                "a cat",
                "-t",
                "",
                "-t",
                "a",
            ]
        )
        == 0
    )
    assert capsys.readouterr().err == "tertium: warning: empty hypothesis\n"


def test_missing_input_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    sides = (("-s", "reference", "-r"), ("-r", "source", "-s"))
    for option, side, missing in sides:
        metric = f"sss:encoder=toy,against={side}"
        assert main(["explain", "--text", "-m", metric, option, "a", "-t", "a"]) == 2
        assert f" has none: give {missing}, a column" in capsys.readouterr().err


def test_empty_tables_are_not_printed() -> None:
    nothing = FeatureAttribution(
        hypothesis="", reference="", perfect=0.0, groups={}, contributions=()
    )
    assert "─" not in str(Explanation(metric="Mine", score=0.0, attribution=nothing))


def test_long_texts_are_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    words = [f"w{n}" for n in range(900)]
    other_words = [f"{'v' if n % 30 == 0 else 'w'}{n}" for n in range(900)]
    texts = ["-r", " ".join(words), "-t", " ".join(other_words)]
    assert main(["explain", "--text", "-m", "bertscore:encoder=toy", *texts]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) < 400
    assert ", and 15 more" in printed  # of 30
    assert " … " in printed
    assert main(["explain", "--text", "-m", "chrf", *texts, "-t", "w0"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) < 400


def test_transport_plan_is_sorted_by_distance(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert (
        main(
            [
                "explain",
                "--text",
                "-m",
                "wmd",
                "-r",
                "the blue car",
                "-t",
                "the red car",
            ]
        )
        == 0
    )
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "transport" in line]
    assert rows[0][:2] == ["red", "blue"]


def test_source_is_used_without_a_reference(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert (
        main(
            [
                "explain",
                "--text",
                "-s",
                "Das blaue Auto hielt an.",
                "-t",
                "The red car stopped.",
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert printed.startswith("tertium-multi: ")
    assert "suspected errors" in printed
    assert "compared with the source 'Das blaue Auto hielt an.'" in printed


def test_other_languages_use_a_multilingual_metric(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    command = [
        "explain",
        "--text",
        "-r",
        "Синяя машина остановилась.",
        "-t",
        "Красная машина остановилась.",
    ]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("tertium-multi: ")
    monkeypatch.setattr(explaining, "has_bundled_models", lambda: False)
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("sentsim: ")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {"ours": "A dog.\nThe red car stopped.\n", "theirs": "A cat.\nThe car.\n"}
    texts |= {"ref": "A cat.\nThe blue car stopped.\n", "source": "Ein Hund.\nDas Auto hielt.\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: str(tmp_path / name) for name in texts}


def test_one_segment_of_files_is_explained_like_its_texts(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["explain", "-m", "ter-r", "-f", "json", "-t", files["ours"], "-r", files["ref"]]
    assert main([*command, "--segment", "2"]) == 0
    from_files = capsys.readouterr().out
    texts = ["-t", "The red car stopped."]
    texts += ["-r", "The blue car stopped."]
    assert main([*command[:5], "--text", *texts]) == 0
    assert capsys.readouterr().out == from_files


def test_several_files_are_compared(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = ["-t", files["ours"], files["theirs"], "-r", files["ref"], "--segment", "2"]
    assert main(["explain", "-m", "chrf", *inputs, "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["names"] == ["The red car stopped.", "The car."]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["-t", "A cat sat.", "-r", "{ref}"],
            "A cat sat.: no such file; give --text if -t, -s and -r are sentences",
        ),
        (["-t", "{ours}", "-r", "A cat."], "A cat.: no such file; give --text"),
        (["-t", "{ours}", "-s", "Ein"], "Ein: no such file; give --text"),
        (["-t", "{ours}", "-r", "{ref}"], "2 segments: choose one with --segment N"),
        (["-t", "{ours}", "-r", "{ref}", "--segment", "3"], "--segment 3: expected 1 to 2"),
        (["--text", "-r", "x"], "no translation: give it with -t TEXT"),
    ],
)
def test_files_given_as_texts_are_errors_and_vice_versa(
    arguments: list[str], message: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *(word.format(**files) for word in arguments)]) == 2
    assert message in capsys.readouterr().err


def test_nothing_to_compare_with_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--text", "-t", "The red car stopped."]) != 0
    assert "needs references, the source or both" in capsys.readouterr().err


def test_a_metric_that_needs_a_reference_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert (
        main(
            [
                "explain",
                "--text",
                "-m",
                "tertium-small",
                "-s",
                "Halt.",
                "-t",
                "Stop.",
            ]
        )
        != 0
    )
    assert "needs references" in capsys.readouterr().err


def test_argument_that_is_not_utf8_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "explain",
                "--text",
                "-t",
                "x",
                "-r",
                "y",
                "-r",
                "gr\udcfcn",
            ]
        )
        == 2
    )
    assert "reference 2: not UTF-8 (byte 0xfc)" in capsys.readouterr().err


@pytest.mark.parametrize("metric", ["bleu-r", "bertscore:encoder=toy"])
def test_library_returns_the_printed_explanation(
    metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    assert main(["explain", "--text", "-m", metric, *BLUE, "-f", "json"]) == 0
    segment = tertium.Segment(BLUE[3], references=(BLUE[1],))
    explained = tertium.explain(segment, metric=metric)
    assert isinstance(explained, tertium.Explanation)
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(explained.as_dict()))
    assert explained == tertium.load_metric(metric).explain(segment)
    assert tertium.load_metric(explained.metric) == tertium.load_metric(metric)


def test_several_translations_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "explain",
        "--text",
        "-m",
        "chrf",
        "-r",
        "a cat sat",
        "-t",
        "a cat sits",
        "-t",
        "a dog",
    ]
    assert main([*command, "-f", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["names"] == ["a cat sits", "a dog"]
    assert record["chances"] == [[0.5, 1.0], [0.0, 0.5]]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "1: a cat sits" in printed
    assert printed.startswith("chrf: probability that the row is better than the column")


def test_ranker_needs_two_translations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--text", "-m", "pairwise", *BLUE]) == 2
    assert "pairwise compares translations: give two or more" in capsys.readouterr().err


def test_best_reference_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = [
        "explain",
        "--text",
        "-m",
        "bleu-r",
        "-t",
        "the cat sat",
        "-r",
        "the cat sat down",
    ]
    assert main([*command, "-r", "a dog"]) == 0
    assert (
        capsys.readouterr().out.splitlines()[1] == "compared with the reference 'the cat sat down'"
    )


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


def test_an_empty_text_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert (
        main(
            [
                "explain",
                "--text",
                "-r",
                "Hello world",
                "-t",
                "",
                "-m",
                "tertium-small",
            ]
        )
        == 0
    )
    assert "tertium-small" in capsys.readouterr().out
