"""The bundled example is what its README says: parallel, consistent, and of known quality."""

from __future__ import annotations

from pathlib import Path

import pytest

import tertium
from tertium.data.formats import read_lines, read_table
from tertium.data.judgments import read_judgments
from tertium.data.preferences import read_preferences
from tertium.data.testset import TestSet

EXAMPLES = Path(__file__).parent.parent / "examples"
KINDS = {
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


def damage() -> list[dict[str, str]]:
    return [row for _, row in read_table(EXAMPLES / "damage.tsv")]


def rows_of(kind: str) -> list[dict[str, str]]:
    return [row for row in damage() if row["kind"] == kind]


def damaged_line(example: TestSet, row: dict[str, str]) -> str:
    return example.systems[row["system"]][int(row["segment"]) - 1]


def test_files_are_clean_text() -> None:
    files = [path for path in EXAMPLES.iterdir() if path.is_file()]
    for path in files:
        data = path.read_bytes()
        assert b"\r" not in data, path
        assert data.endswith(b"\n"), path
        assert not data.startswith(b"\xef\xbb\xbf"), path


def test_there_are_48_segments_in_12_documents(example: TestSet) -> None:
    sizes = [example.documents.count(name) for name in dict.fromkeys(example.documents)]
    assert (len(example), len(sizes)) == (48, 12)
    assert set(sizes) == {3, 4, 5}
    assert all(a != b for a, b in example.references)


@pytest.mark.parametrize("name", ["examples.jsonl", "examples.tsv"])
def test_records_hold_what_the_text_files_hold(example: TestSet, name: str) -> None:
    assert TestSet.from_records(EXAMPLES / name) == example


def test_every_damage_is_where_the_table_says(example: TestSet) -> None:
    assert {row["kind"] for row in damage()} == KINDS
    for row in damage():
        assert damaged_line(example, row) != row["repaired"], row
        assert row["note"], row


def test_fair_has_one_damage_a_segment_and_good_none() -> None:
    fair = [row["segment"] for row in damage() if row["system"] == "fair"]
    assert len(set(fair)) == len(fair) == 14
    assert "good" not in {row["system"] for row in damage()}


def test_copies_and_gaps_are_what_their_kind_says(example: TestSet) -> None:
    for row in rows_of("source-copy"):
        assert damaged_line(example, row) == example.sources[int(row["segment"]) - 1]
    for row in rows_of("empty"):
        assert damaged_line(example, row) == ""


def test_a_word_salad_has_the_words_of_its_repair(example: TestSet) -> None:
    for row in rows_of("word-salad"):
        words = damaged_line(example, row).lower().split()
        assert sorted(words) == sorted(row["repaired"].lower().split())


def test_systems_score_as_the_readme_says(example: TestSet) -> None:
    # sacrebleu 2.6.0: corpus_score of BLEU, CHRF and TER, default options, both references
    expected = {"good": (63.6, 70.8, 37.1), "fair": (33.9, 59.0, 50.2), "poor": (8.1, 37.9, 71.7)}
    scores = tertium.score(example, ["bleu", "chrf", "ter"]).scores
    for system, values in expected.items():
        found = [scores[system][metric].system for metric in ("bleu", "chrf", "ter")]
        assert [round(value, 1) for value in found] == list(values)
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for system, values in expected.items():
        assert f"| {system} | {' | '.join(map(str, values))} |" in table


def test_bleu_rewards_most_repairs_as_the_readme_says(example: TestSet) -> None:
    # 65 of 69: counted with sacrebleu 2.6.0, BLEU(effective_order=True).sentence_score
    bleu = tertium.load_metric("bleu")
    better = 0
    for row in damage():
        references = example.references[int(row["segment"]) - 1]
        before = bleu.sentence_score(damaged_line(example, row), references)
        better += bleu.sentence_score(row["repaired"], references) > before + 1e-9
    assert (better, len(damage())) == (65, 69)


def test_ratings_cover_every_translation(example: TestSet) -> None:
    ratings = read_judgments(EXAMPLES / "ratings.csv", testset=example)
    assert not ratings.excluded_counts
    assert len(ratings) == 3 * (48 + 48 + 40)  # the third annotator left out two documents
    assert all(0 <= judgment.score <= 100 for judgment in ratings.judgments)
    means = ratings.matrix()
    ordered = [float(means[name].mean()) for name in ("good", "fair", "poor")]
    assert ordered == sorted(ordered, reverse=True)


def test_preferences_are_two_for_each_pair_and_segment(example: TestSet) -> None:
    preferences = read_preferences(EXAMPLES / "preferences.tsv", texts=example)
    assert len(preferences) == 48 * 3 * 2
    assert 0 < preferences.ties < 48


def test_every_file_is_in_the_readme() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    names = {path.name for path in EXAMPLES.iterdir()} - {"README.md"}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_text_files_have_a_line_for_each_segment() -> None:
    counts = {path.name: len(read_lines(path)) for path in EXAMPLES.glob("*.txt")}
    assert counts == dict.fromkeys(counts, 48)
    assert len(counts) == 7
