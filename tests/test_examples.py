"""The bundled example matches its README: parallel, consistent, and of known quality."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tertium
from tertium.data.formats.preferences import read_preferences
from tertium.data.judgments import read_judgments
from tertium.data.tables import read_table
from tertium.data.testset import TestSet

EXAMPLES = Path(__file__).parent.parent / "examples"
ERROR_KINDS = {
    "addition",
    "date",
    "empty",
    "name",
    "negation",
    "number",
    "omission",
    "source-copy",
    "untranslated",
    "word-salad",
    "wrong-word",
}


def error_rows() -> list[dict[str, str]]:
    return [row for _, row in read_table(EXAMPLES / "damage.tsv")]


def rows_of(kind: str) -> list[dict[str, str]]:
    return [row for row in error_rows() if row["kind"] == kind]


def damaged_line(example: TestSet, row: dict[str, str]) -> str:
    return example.systems[row["system"]][int(row["segment"]) - 1]


@pytest.mark.parametrize("name", ["examples.jsonl", "examples.tsv"])
def test_records_equal_the_text_files(example, name):
    assert TestSet.from_records(EXAMPLES / name) == example


def test_every_error_is_where_the_table_lists_it(example):
    assert {row["kind"] for row in error_rows()} == ERROR_KINDS
    for row in error_rows():
        assert damaged_line(example, row) != row["repaired"], row
        assert row["note"], row
    for row in rows_of("source-copy"):
        assert damaged_line(example, row) == example.sources[int(row["segment"]) - 1]
    for row in rows_of("empty"):
        assert damaged_line(example, row) == ""


def test_system_scores_match_the_readme(example):
    # sacrebleu 2.6.0: corpus_score of BLEU, CHRF and TER, default options, both references
    expected = {"good": (63.6, 70.8, 37.1), "fair": (33.9, 59.0, 50.2), "poor": (8.1, 37.9, 71.7)}
    scores = tertium.score(example, ["bleu", "chrf", "ter"]).scores
    for system, values in expected.items():
        rounded = [scores[system][metric].system for metric in ("bleu", "chrf", "ter")]
        assert [round(value, 1) for value in rounded] == list(values)
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for system in expected:
        (row,) = re.findall(rf"^ system-{system}\.en\.txt +(.+)$", page, re.MULTILINE)
        printed = [scores[system][metric].system for metric in ("bleu", "chrf", "ter")]
        assert row.split() == [f"{value:.2f}" for value in printed]


def test_bleu_rewards_most_corrections(example):
    # 65 of 69: counted with sacrebleu 2.6.0, BLEU(effective_order=True).sentence_score
    bleu = tertium.load_metric("bleu")
    better = 0
    for row in error_rows():
        references = example.references[int(row["segment"]) - 1]
        before = bleu.sentence_score(damaged_line(example, row), references)
        better += bleu.sentence_score(row["repaired"], references) > before + 1e-9
    assert (better, len(error_rows())) == (65, 69)


def test_ratings_and_preferences_cover_every_translation():
    ratings = read_judgments(EXAMPLES / "ratings.csv")
    assert not ratings.excluded_counts
    assert len(ratings) == 3 * (48 + 48 + 40)  # the third annotator skipped two documents
    assert all(0 <= judgment.score <= 100 for judgment in ratings.judgments)
    means = ratings.matrix()
    ordered = [float(means[name].mean()) for name in ("good", "fair", "poor")]
    assert ordered == sorted(ordered, reverse=True)
    preferences = read_preferences(EXAMPLES / "preferences.tsv")
    assert len(preferences) == 48 * 3 * 2
    assert 0 < preferences.ties < 48


def test_every_file_is_in_the_readme():
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    names = {f"{p.name}/" if p.is_dir() else p.name for p in EXAMPLES.iterdir()} - {"README.md"}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []
