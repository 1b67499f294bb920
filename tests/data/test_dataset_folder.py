"""Datasets in a folder are recognized by their layout."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tests.builders import write_file, write_files

from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.data.dataset_folder import DatasetFolder, describe_dataset, summarize_dataset


@pytest.fixture
def datasets(tmp_path: Path) -> DatasetFolder:
    scored = {"system": "A", "segment": "1", "hypothesis": "x", "reference": "r", "score": 1.5}
    rated = {"source": "s", "mt": "h", "score": 1}
    comparisons = "segment\tjudge\tsystem_a\tsystem_b\tpreference\n1\tj\tA\tB\ttie\n1\tj\tA\tB\ta\n"
    texts = {"segment": "1", "source": "s", "reference": "r", "outputs": {"A": "x", "B": "y"}}
    contents = {
        "da/mine/cs-en.jsonl": [scored, {**scored, "system": "B", "score": 2}],
        "qe/mine/ro-en.dev.jsonl": [rated],
        "qe/mine/ro-en.test.jsonl": [{**rated, "score": 2}],
        "rankings/mine/cs-en.texts.jsonl": [texts],
        "rankings/mine/cs-en.judgements.tsv": comparisons,
        "rankings/mine/cs-en.systems.tsv": "system\tscore\nA\t0.5\nB\t-0.5\n",
        "README.md": "not a set\n",
    }
    return DatasetFolder.open(write_files(tmp_path, contents))


def test_sets_are_found_and_read_by_name(datasets):
    assert [(s.name, s.kind, s.lps) for s in datasets.sets] == [
        ("da/mine", "scores", ("cs-en",)),
        ("qe/mine", "scores", ("ro-en",)),
        ("rankings/mine", "rankings", ("cs-en",)),
    ]
    assert datasets.judgments("da/mine", "cs-en").scores.tolist() == [1.5, 2.0]
    assert datasets.judgments("qe/mine", "ro-en", "test").scores.tolist() == [2.0]
    assert datasets.rankings("rankings/mine", "cs-en").verdicts.tolist() == [0.5, 1.0]
    assert datasets.system_scores("rankings/mine", "cs-en").system_scores == {"A": 0.5, "B": -0.5}


def test_item_and_system_names_match_those_of_comparisons(datasets):
    ranked = datasets.root / "rankings" / "mine"
    texts = {"segment": 1.0, "outputs": {"A ": "x", "B": "y"}}
    write_file(ranked / "cs-en.texts.jsonl", [texts])
    assert len(datasets.rankings("rankings/mine", "cs-en")) == 2
    (ranked / "cs-en.systems.tsv").write_text("system\tscore\n A\t0.5\n0\t-0.5\n")
    scores = datasets.system_scores("rankings/mine", "cs-en").system_scores
    assert scores == {"A": 0.5, "0": -0.5}


def test_unknown_names_raise(datasets):
    with pytest.raises(UnknownNameError, match="did you mean 'da/mine'"):
        datasets.judgments("da/min", "cs-en")
    with pytest.raises(UnknownNameError, match="language pair of da/mine 'de-en'"):
        datasets.judgments("da/mine", "de-en")
    with pytest.raises(UnknownNameError, match=r"part of qe/mine ro-en ''.*known: dev, test"):
        datasets.judgments("qe/mine", "ro-en")
    with pytest.raises(UnknownNameError, match="set of rankings"):
        datasets.rankings("da/mine", "cs-en")


def test_the_folder_comes_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TERTIUM_DATA", str(tmp_path))
    assert DatasetFolder.open().root == tmp_path
    monkeypatch.delenv("TERTIUM_DATA")
    with pytest.raises(UsageError, match="--data DIR or set TERTIUM_DATA"):
        DatasetFolder.open()
    monkeypatch.setenv("TERTIUM_DATA", str(tmp_path / "gone"))
    with pytest.raises(DataError, match=r"gone: no such data folder \(--data or TERTIUM_DATA"):
        DatasetFolder.open()
    with pytest.raises(DataError, match="no such data folder"):
        DatasetFolder.open(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"segment": "1", "outputs": {"A": "x", "B": "y"}}] * 2, "line 2: segment '1' occurs a"),
        ([{"segment": "1"}], "line 1: expected segment and outputs"),
        ([{"segment": "1", "outputs": {"A": "x", "B": None}}], "line 1: text 2 is None"),
    ],
)
def test_duplicate_or_incomplete_texts_raise(datasets, records, message):
    write_file(datasets.root / "rankings" / "mine" / "cs-en.texts.jsonl", records)
    with pytest.raises(DataError, match=message):
        datasets.rankings("rankings/mine", "cs-en")


def test_summaries_count_rows(datasets):
    counts = {s.name: summarize_dataset(s) for s in datasets.sets}
    summary = {name: s["rows"] for name, s in counts.items()}
    assert summary == {"da/mine": 2, "qe/mine": 2, "rankings/mine": 2}
    (ranked,) = describe_dataset(datasets, datasets.find("rankings/mine"))
    assert (ranked["rows"], ranked["ties"]) == (2, 1)
    assert [r["part"] for r in describe_dataset(datasets, datasets.find("qe/mine"))] == [
        "dev",
        "test",
    ]


def test_every_file_has_the_rows_listed_in_counts(human_data):
    """COUNTS.tsv came with the data; every row is read or counted as excluded."""
    datasets = DatasetFolder(human_data)
    with (human_data / "COUNTS.tsv").open() as lines:
        counts = {row["file"]: int(row["rows"]) for row in csv.DictReader(lines, delimiter="\t")}
    file_count = 0
    for entry in datasets.sets:
        if entry.kind != "scores" or entry.name.startswith(("qe", "modern")):
            continue
        for (lp, part), path in entry.files.items():
            result = datasets.judgments(entry.name, lp, part)
            rows = len(result) + sum(result.excluded_counts.values())
            assert rows == counts[str(path.relative_to(human_data))]
            file_count += 1
    assert file_count >= 20


# a sample; `slow` tests run all
MODERN = ["dev/qe/qe22-test"]


@pytest.mark.parametrize("name", [*MODERN, pytest.param("", marks=pytest.mark.slow)])
def test_every_row_and_span_of_modern_sets_is_read(human_data, name):
    """modern/COUNTS.tsv came with the data."""
    datasets = DatasetFolder(human_data)
    with (human_data / "modern" / "COUNTS.tsv").open() as lines:
        counts = list(csv.DictReader(lines, delimiter="\t"))
    listed = [row for row in counts if f"{row['split']}/{row['file']}".startswith(name)]
    for row in listed:
        place, lp = f"modern/{row['split']}/{row['file']}".rsplit("/", 1)
        result = datasets.judgments(place, lp)
        marked = [j.error_annotations for j in result.judgments if j.error_annotations is not None]
        assert (len(result), result.excluded_counts) == (int(row["rows"]), {})
        assert len(marked) == int(row["with_spans"])
        assert sum(len(error_annotations.spans) for error_annotations in marked) == int(
            row["spans"]
        )
        assert len({(j.system, j.item) for j in result.judgments}) >= 0.99 * len(result)
    assert listed


@pytest.mark.parametrize(
    "lp", ["en-de", *(pytest.param(lp, marks=pytest.mark.slow) for lp in ("en-ru", "zh-en"))]
)
def test_span_weights_reproduce_the_published_expert_scores(human_data, lp):
    result = DatasetFolder(human_data).judgments("modern/dev/mqm/ted21", lp)
    computed_scores = [
        j.error_annotations.score() for j in result.judgments if j.error_annotations is not None
    ]
    assert computed_scores == pytest.approx(
        result.scores.tolist(), abs=1e-3
    )  # three decimals are published


@pytest.mark.parametrize(
    "name", ["wmt08", *(pytest.param(name, marks=pytest.mark.slow) for name in ("wmt11", "wmt12"))]
)
def test_every_comparison_of_the_rankings_is_used(human_data, name):
    datasets = DatasetFolder(human_data)
    for lp in datasets.find(f"rankings/{name}").lps:
        assert datasets.rankings(f"rankings/{name}", lp).excluded_counts == {}
