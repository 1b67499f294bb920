"""`python -m papers -o`: figures are stored, a run continues, and pages show stored figures."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from papers.charts import write_chart
from papers.command import main
from papers.ledger import Ledger, describe_method
from papers.overview import TRAINING_SETS
from papers.pages import INCOMPLETE_NOTE, ResultPages, summary_table
from papers.table import Figure, PaperTable, Row, TableResult, measure
from tests.builders import write_jsonl

from papers import find_table, tables_of
from tertium.core.errors import DataError
from tertium.data.dataset_folder import DatasetFolder

PAIRS = ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """da/wmt17 with twelve synthetic judgments per language pair."""
    rng = random.Random(7)
    words = "the cat sat on a mat and looked at us".split()
    for lp in PAIRS:
        rows = []
        for n in range(12):
            subset = [word for word in words if rng.random() < 0.8]
            texts = {"mt": " ".join(subset) or "cat", "ref": " ".join(words)}
            score = len(subset) + rng.random()
            rows.append({"system": "A", "segment": str(n), **texts, "score": score})
        write_jsonl(tmp_path / "data" / "da" / "wmt17" / f"{lp}.jsonl", rows)
    return tmp_path / "data"


@pytest.fixture
def table() -> PaperTable:
    return find_table("overview", "da/wmt17")


def run(data: Path, docs: Path, *options: str) -> int:
    output = ["--data", str(data), "-o", str(docs / "papers"), "-q"]
    return main(["overview", "--table", "da/wmt17", *output, *options])


def test_pages_figures_charts_and_metric_pages_are_written(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "metrics").mkdir()
    metric_page = tmp_path / "metrics" / "chrf.md"
    metric_page.write_text("# chrF\n<!-- agreement: chrf chrf++ -->\nold\n<!-- end -->\n")
    unmeasured = tmp_path / "metrics" / "comet.md"
    unmeasured.write_text("<!-- agreement: comet -->\nNot measured: a reason.\n<!-- end -->\n")
    assert run(data, tmp_path, "--rows", "bleu", "chrf", "ter") == 0
    assert "a reason" in unmeasured.read_text()
    written = capsys.readouterr().out.split()
    chart = tmp_path / "pictures" / "results-overview-da-wmt17.svg"
    pages = [tmp_path / "papers" / name for name in ("index.md", "all-metrics.md")]
    assert {*map(str, [*pages, chart, metric_page])} == set(written)
    assert "<svg" in chart.read_text()
    text = pages[1].read_text()
    stored = json.loads((tmp_path / "results" / "overview-da-wmt17.json").read_text())["rows"]
    figure = stored["chrf"]["figures"]["cs-en"]
    assert f"{figure['value']:.3f}" in text
    assert figure["signature"].startswith("chrF|")
    assert "(../results/overview-da-wmt17.json)" in text
    assert figure["code"].startswith("tertium ")
    assert figure["code"] in text
    assert "(../pictures/results-overview-da-wmt17.svg)" in text
    average = sum(stored["chrf"]["figures"][lp]["value"] for lp in PAIRS) / len(PAIRS)
    filled = metric_page.read_text()
    assert f"| chrf | {average:.3f} |" in filled
    assert "old" not in filled
    assert f"| chrf | {average:.3f} |" in text
    assert "da/wmt17" in text.split("## Not measured")[1].lower()  # the other rows


def test_stored_figures_are_not_measured_again(data: Path, tmp_path: Path) -> None:
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


def test_kept_writes_the_same_pages_without_data(data: Path, tmp_path: Path) -> None:
    assert run(data, tmp_path, "--rows", "chrf") == 0
    pages = {page: page.read_text() for page in (tmp_path / "papers").iterdir()}
    assert len(pages) == 2
    for page in pages:
        page.unlink()
    assert main(["all", "--kept", "-o", str(tmp_path / "papers")]) == 0
    assert {page: page.read_text() for page in pages} == pages


def test_a_missing_set_does_not_stop_the_others(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = ["--data", str(data), "-o", str(tmp_path / "papers"), "-q"]
    assert main(["overview", "--rows", "chrf", *output]) == 0
    assert "da/wmt15" in caplog.text
    assert (tmp_path / "results" / "overview-da-wmt17.json").is_file()
    assert not (tmp_path / "results" / "overview-da-wmt15.json").exists()


def test_usage_errors(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["all", "--data", str(data)]) == 2
    assert "-o DIR" in capsys.readouterr().err
    assert run(data, tmp_path, "--rows", "blue") == 2
    assert "did you mean 'bleu'" in capsys.readouterr().err
    assert main(["all", "--kept", "-o", str(tmp_path / "results.md")]) == 2
    assert "expected a folder" in capsys.readouterr().err


def test_a_figure_of_another_method_is_not_used(tmp_path: Path, table: PaperTable) -> None:
    ledger, datasets = Ledger(tmp_path), DatasetFolder(tmp_path)
    first, second = Figure(value=0.5, count=3), Figure(value=1, count=1)
    assert ledger.get_figure(table, table.rows[0], "cs-en", lambda: first).value == 0.5
    assert ledger.get_figure(table, table.rows[0], "cs-en", lambda: second).value == 0.5
    changed = Row(table.rows[0].label, model="chrf:word_order=1")
    assert describe_method(table, changed) != describe_method(table, table.rows[0])
    result = measure(
        replace(table, rows=[changed]),
        datasets,
        lambda t, r, c, _: ledger.get_figure(t, r, c, lambda: second),
    )
    assert result.rows[0].measured_values == (1.0,) * 7


def test_a_damaged_file_is_an_error(tmp_path: Path, table: PaperTable) -> None:
    ledger = Ledger(tmp_path)
    ledger.path(table).write_text("{")
    with pytest.raises(DataError, match="delete it"):
        ledger.load_table(table)


def test_metrics_are_not_evaluated_on_their_training_data() -> None:
    for table in tables_of("overview"):
        for row in table.rows:
            assert table.number not in TRAINING_SETS.get(row.label.partition(":")[0], ())


def test_an_incomplete_average_is_in_parentheses(data: Path, tmp_path: Path) -> None:
    assert run(data, tmp_path, "--rows", "chrf") == 0
    file = tmp_path / "results" / "overview-da-wmt17.json"
    content = json.loads(file.read_text())
    del content["rows"]["chrf"]["figures"]["de-en"]
    file.write_text(json.dumps(content))
    results = [Ledger(tmp_path / "results").load_table(t) for t in tables_of("overview")]
    table = summary_table(results)
    assert table.rows[0][1].text.startswith("(0.")  # type: ignore[union-attr]
    assert table.notes == [INCOMPLETE_NOTE]
    ResultPages(tmp_path / "papers").write()
    assert "chrf (de-en)" in (tmp_path / "papers" / "all-metrics.md").read_text()


def constant_result(paper: str, number: str, folder: Path, value: float) -> TableResult:
    """Return a table in which all stored figures have the same value."""
    table, ledger = find_table(paper, number), Ledger(folder)
    for row in table.rows:
        for column in table.experiment.columns:
            if row.model is not None:
                ledger.get_figure(table, row, column, lambda: Figure(value=value, count=7))
    return ledger.load_table(table)


@pytest.mark.parametrize(
    ("paper", "number", "expected"),
    [
        ("mathur2019", "figure 1", ["3360", "ESIM, judgments of TrainS, published"]),
        ("pado2009", "figure-3", ["10%", "MT+RTER"]),
        ("pado2009", "ablation", ["without structure", "0.625"]),
    ],
)
def test_learning_curves_and_ablations_are_drawn(
    paper: str, number: str, expected: list[str], tmp_path: Path
) -> None:
    chart, second_chart = tmp_path / "chart.svg", tmp_path / "second.svg"
    assert write_chart(constant_result(paper, number, tmp_path / "figures", 0.625), chart)
    assert all(text in chart.read_text() for text in expected)
    write_chart(constant_result(paper, number, tmp_path / "figures", 0.625), second_chart)
    assert second_chart.read_bytes() == chart.read_bytes()
