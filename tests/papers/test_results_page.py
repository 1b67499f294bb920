"""`tertium reproduce all -o`: figures are kept, a run goes on, the page shows what is known."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from papers.ledger import Ledger, way_of
from papers.overview import SEEN
from papers.pictures import short_statistic, write_agreement, write_picture
from papers.table import Figure, MeasuredRow, Outcome, PaperTable, Row, measure

from papers import PAPERS, page, tables_of
from tertium.cli import main
from tertium.data.collection import Collection
from tertium.errors import DataError, MissingResourceError

PAIRS = ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """da/wmt17 with a dozen made-up judgments a language pair."""
    folder = tmp_path / "data" / "da" / "wmt17"
    folder.mkdir(parents=True)
    rng = random.Random(7)
    words = "the cat sat on a mat and looked at us".split()
    for lp in PAIRS:
        rows = []
        for n in range(12):
            kept = [word for word in words if rng.random() < 0.8]
            rows.append(
                {
                    "system": "A",
                    "segment": str(n),
                    "mt": " ".join(kept) or "cat",
                    "ref": " ".join(words),
                    "score": len(kept) + rng.random(),
                }
            )
        (folder / f"{lp}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "data"


def run(data: Path, out: Path, *more: str) -> int:
    where = ["--data", str(data), "-o", str(out / "results.md"), "-q"]
    return main(["reproduce", "overview", "--table", "da/wmt17", *where, *more])


def test_the_page_its_figures_and_its_pictures(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "metrics").mkdir()
    metric_page = tmp_path / "metrics" / "chrf.md"
    metric_page.write_text("# chrF\n<!-- agreement: chrf chrf++ -->\nold\n<!-- end -->\n")
    assert run(data, tmp_path, "--rows", "bleu", "chrf", "ter") == 0
    written = capsys.readouterr().out.split()
    assert str(tmp_path / "results.md") in written
    assert str(tmp_path / "pictures" / "results-overview-da-wmt17.svg") in written
    text = (tmp_path / "results.md").read_text()
    kept = json.loads((tmp_path / "results" / "overview-da-wmt17.json").read_text())["rows"]
    value = kept["chrf"]["figures"]["cs-en"]["value"]
    assert f"{value:.3f}" in text
    assert kept["chrf"]["figures"]["cs-en"]["signature"] in text.replace("\\_", "_").replace(
        "\\|", "|"
    )
    assert "commit" in kept["chrf"]["figures"]["cs-en"]["code"] or "tertium" in text
    average = sum(kept["chrf"]["figures"][lp]["value"] for lp in PAIRS) / len(PAIRS)
    filled = metric_page.read_text()
    assert f"| chrf | {average:.3f} |" in filled
    assert "old" not in filled
    assert "<svg" in (tmp_path / "pictures" / "results-overview-da-wmt17.svg").read_text()
    assert "overview, table da/wmt17" in text.split("## Not measured")[1]  # the other rows


def test_labels_of_pictures_are_not_cut_inside_a_number() -> None:
    statistics = {t.experiment.statistic for paper in PAPERS for t in tables_of(paper)}
    labels = {short_statistic(statistic) for statistic in statistics}
    assert "soft pairwise accuracy of systems" in labels  # (1,000 permutations)
    assert not [label for label in labels if label.count("(") != label.count(")")]


def test_what_is_known_is_not_measured_again(data: Path, tmp_path: Path) -> None:
    assert run(data, tmp_path, "--rows", "chrf") == 0
    file = tmp_path / "results" / "overview-da-wmt17.json"
    content = json.loads(file.read_text())
    content["rows"]["chrf"]["figures"]["cs-en"]["value"] = 0.125  # as if measured before
    del content["rows"]["chrf"]["figures"]["de-en"]  # as if interrupted here
    file.write_text(json.dumps(content))
    assert run(data, tmp_path, "--rows", "chrf") == 0
    figures = json.loads(file.read_text())["rows"]["chrf"]["figures"]
    assert figures["cs-en"]["value"] == 0.125
    assert set(figures) == set(PAIRS)
    assert run(data, tmp_path, "--rows", "chrf", "--again") == 0
    assert json.loads(file.read_text())["rows"]["chrf"]["figures"]["cs-en"]["value"] != 0.125


def test_kept_writes_the_page_without_data(data: Path, tmp_path: Path) -> None:
    assert run(data, tmp_path, "--rows", "chrf") == 0
    before = (tmp_path / "results.md").read_text()
    (tmp_path / "results.md").unlink()
    assert main(["reproduce", "all", "--kept", "-o", str(tmp_path / "results.md")]) == 0
    assert (tmp_path / "results.md").read_text() == before


def test_a_set_that_is_missing_does_not_stop_the_others(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = ["--data", str(data), "-o", str(tmp_path / "results.md"), "-q"]
    assert main(["reproduce", "overview", "--rows", "chrf", *out]) == 0
    assert "da/wmt15" in caplog.text
    assert (tmp_path / "results" / "overview-da-wmt17.json").is_file()
    assert not (tmp_path / "results" / "overview-da-wmt15.json").exists()


def test_all_wants_a_page_and_rows_that_exist(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "all", "--data", str(data)]) == 2
    assert "-o FILE" in capsys.readouterr().err
    assert run(data, tmp_path, "--rows", "blue") == 2
    assert "did you mean 'bleu'" in capsys.readouterr().err


def test_a_figure_measured_in_another_way_does_not_count(tmp_path: Path) -> None:
    ledger, collection = Ledger(tmp_path), Collection(tmp_path)
    (table,) = (t for t in tables_of("overview") if t.number == "da/wmt17")
    first, second = Figure(value=0.5, count=3), Figure(value=1, count=1)
    assert ledger.recall(table, table.rows[0], "cs-en", lambda: first).value == 0.5
    assert ledger.recall(table, table.rows[0], "cs-en", lambda: second).value == 0.5
    changed = Row(label=table.rows[0].label, model="chrf:word_order=1")
    assert way_of(table, changed) != way_of(table, table.rows[0])
    other = PaperTable(
        paper=table.paper,
        number=table.number,
        title="",
        rows=[changed],
        experiment=table.experiment,
    )
    kept = measure(other, collection, lambda t, r, e, _: ledger.recall(t, r, e, lambda: second))
    assert kept.rows[0].measured == (1.0,) * 7


def test_what_was_measured_outlives_a_missing_model(tmp_path: Path) -> None:
    (table,) = (t for t in tables_of("overview") if t.number == "da/wmt17")
    row, ledger = table.rows[0], Ledger(tmp_path)
    ledger.recall(table, row, "cs-en", lambda: Figure(value=0.5, count=7))
    lost = MeasuredRow(row=row, unavailable="the weights are gone")
    ledger.note_missing(Outcome(table=table, rows=(lost,)))
    assert ledger.outcome(table).rows[0].measured[0] == 0.5


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (table,) = (t for t in tables_of("overview") if t.number == "da/wmt17")
    ledger = Ledger(tmp_path)
    ledger.path(table).write_text("{")
    with pytest.raises(DataError, match="delete it"):
        ledger.outcome(table)


def test_a_metric_is_not_judged_by_what_it_learned_from() -> None:
    for table in tables_of("overview"):
        for row in table.rows:
            assert table.number not in SEEN.get(row.label.partition(":")[0], ())


def test_a_partly_measured_average_is_in_brackets(data: Path, tmp_path: Path) -> None:
    assert run(data, tmp_path, "--rows", "chrf") == 0
    file = tmp_path / "results" / "overview-da-wmt17.json"
    content = json.loads(file.read_text())
    del content["rows"]["chrf"]["figures"]["de-en"]
    file.write_text(json.dumps(content))
    outcomes = [Ledger(tmp_path / "results").outcome(t) for t in tables_of("overview")]
    table = page.summary(outcomes)
    assert table.rows[0][1].text.startswith("(0.")  # type: ignore[union-attr]
    assert table.notes == [page.PARTLY]
    page.write_results(tmp_path / "results.md")
    assert "chrf (de-en)" in (tmp_path / "results.md").read_text()


def outcome_of(paper: str, number: str, folder: Path, value: float) -> Outcome:
    """A table with every figure kept, all alike."""
    (table,) = (t for t in tables_of(paper) if t.number == number)
    ledger = Ledger(folder)
    for row in table.rows:
        for column in (row.experiment or table.experiment).columns:
            if row.model is not None:
                ledger.recall(table, row, column, lambda: Figure(value=value, count=7))
    return ledger.outcome(table)


@pytest.mark.parametrize(
    ("paper", "number", "shown"),
    [
        ("mathur2019", "figure 1", ["3360", "ESIM, judgments of TrainS, published"]),
        ("pado2009", "figure-3", ["10%", "MT+RTER"]),
        ("pado2009", "ablation", ["without structure", "0.625"]),
    ],
)
def test_learning_curves_and_ablations_are_drawn(
    paper: str, number: str, shown: list[str], tmp_path: Path
) -> None:
    picture = tmp_path / "picture.svg"
    assert write_picture(outcome_of(paper, number, tmp_path / "kept", 0.625), picture)
    drawn = picture.read_text()
    assert all(text in drawn for text in shown)
    again = tmp_path / "again.svg"
    write_picture(outcome_of(paper, number, tmp_path / "kept", 0.625), again)
    assert again.read_bytes() == picture.read_bytes()


def test_published_is_drawn_against_measured(tmp_path: Path) -> None:
    outcomes = [outcome_of("mathur2019", "3", tmp_path / "kept", 0.9)]
    assert write_agreement(outcomes, tmp_path / "all.svg")
    assert "mathur2019" in (tmp_path / "all.svg").read_text()
    empty = Ledger(tmp_path / "nothing").outcome(outcomes[0].table)
    assert not write_agreement([empty], tmp_path / "none.svg")
    assert not write_picture(empty, tmp_path / "none.svg")


def test_rows_that_cannot_be_measured_keep_their_reason(tmp_path: Path) -> None:
    def missing(collection: Collection, column: str) -> float:
        raise MissingResourceError("no weights: pip install them")

    (table,) = (t for t in tables_of("overview") if t.number == "da/wmt17")
    one = replace(table, rows=[Row(label="absent", model=missing)])
    ledger = Ledger(tmp_path)
    ledger.note_missing(measure(one, Collection(tmp_path), ledger.recall))
    assert ledger.outcome(one).rows[0].unavailable == "no weights: pip install them"
