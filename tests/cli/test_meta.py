"""`tertium meta`: from files people have to the table they want."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tertium.cli import main
from tertium.data.testset import TestSet
from tertium.evaluation.significance_options import SignificanceTests
from tertium.meta.tasks import STATISTICS
from tertium.output.page.report import report

SYSTEMS = ("A", "B", "C")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def table(rows, header):
    return "\n".join("\t".join(map(str, row)) for row in [header, *rows]) + "\n"


@pytest.fixture
def files(tmp_path):
    """Human scores of two language pairs, a good and a bad metric on each."""
    rng = np.random.default_rng(3)
    human, paths = [], {}
    for lp in ("de-en", "fi-en"):
        truth = np.array([[1.0], [0.5], [0.0]]) + rng.normal(size=(3, 30))
        noisy = {"good": truth + rng.normal(0, 0.3, truth.shape), "bad": rng.normal(size=(3, 30))}
        cells = [(s, i) for s in range(3) for i in range(30)]
        human += [(lp, i + 1, SYSTEMS[s], truth[s, i]) for s, i in cells]
        for name, values in noisy.items():
            rows = [(i + 1, SYSTEMS[s], values[s, i]) for s, i in cells]
            text = table(rows, ("item", "system", "score"))
            paths[name, lp] = write(tmp_path / f"{name}.{lp}.tsv", text)
    paths["human"] = write(tmp_path / "human.tsv", table(human, ("lp", "item", "system", "score")))
    return paths


def read(path):
    """The rows of a table, without its header."""
    return [line.split("\t") for line in Path(path).read_text().splitlines()[1:]]


def run_json(capsys, *argv, command=("meta",)):
    assert main([*command, *argv, "-f", "json", "--resamples", "100"]) == 0
    return json.loads(capsys.readouterr().out)


def scores_from_totals(files):
    return [files[key] for key in files if key != "human"]


def test_table_has_metrics_pairs_average_and_counts(files, capsys):
    assert main(["meta", "--human", files["human"], "--scores", *scores_from_totals(files)]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if line.strip()]
    assert ["metric", "de-en", "fi-en", "average", "rank"] in rows
    good = next(row for row in rows if row[0] == "good")
    assert good.count("**") == 3
    assert good[-1] == "1.00"
    assert ["human", "scores", "90", "90"] in rows
    assert next(row for row in rows if row[0] == "bad")[-1] == "2.00"


def test_json_equals_scipy(files, capsys, tmp_path):
    result = run_json(capsys, "--human", files["human"], "--scores", *scores_from_totals(files))
    x = [float(row[3]) for row in read(files["human"]) if row[0] == "fi-en"]
    y = [float(row[2]) for row in read(files["good", "fi-en"])]
    record = next(r for r in result["tasks"] if (r["metric"], r["sets"]) == ("good", ["fi-en"]))
    assert record["value"] == pytest.approx(stats.pearsonr(x, y)[0])
    assert record["interval"][0] < record["value"] < record["interval"][1]
    assert (record["judged"], record["left_out"]) == (90, 0)
    assert result["average"][0]["average_rank"] == 1.0


@pytest.mark.parametrize("style", ["md", "latex", "tsv", "text"])
def test_every_format(style, files, capsys):
    argv = ["--human", files["human"], "--scores", *scores_from_totals(files), "--resamples", "50"]
    assert main(["meta", *argv, "-f", style, "--confidence", "--pairs"]) == 0
    out = capsys.readouterr().out
    assert "good" in out
    assert "de-en" in out
    if style == "tsv":
        header, first, *rest = [line.split("\t") for line in out.splitlines()]
        assert header == ["metric", "other", "statistic", "set", "p"]
        assert first[:4] == ["good", "bad", "pearson", "de-en"]
        assert float(first[4]) == 1 / 51
        assert len(rest) == 3


def test_tsv_of_one_statistic_has_bounds_and_metrics_only(files, capsys):
    argv = ["--human", files["human"], "--scores", *scores_from_totals(files), "--resamples", "50"]
    assert main(["meta", *argv, "-f", "tsv", "--confidence", "--lps", "de-en"]) == 0
    header, good, bad = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert header == ["metric", "de-en", "de-en low", "de-en high", "rank"]
    assert (good[0], bad[0]) == ("good", "bad")
    assert 0.8 < float(good[2]) < float(good[1]) < float(good[3])
    assert (good[4], bad[4]) == ("1", "2")


def test_tsv_of_several_statistics_is_one_table(files, capsys):
    argv = ["--human", files["human"], "--scores", *scores_from_totals(files), "--resamples", "50"]
    assert main(["meta", *argv, "-f", "tsv", "--statistic", "pearson", "acc-eq*"]) == 0
    header, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert header[:4] == ["metric", "statistic", "set", "value"]
    assert {tuple(row[:3]) for row in rows} == {
        (m, s, lp)
        for m in ("good", "bad")
        for s in ("pearson", "acc-eq*")
        for lp in ("de-en", "fi-en")
    }


def test_note_on_intervals_is_printed_with_intervals(files, capsys):
    argv = [
        "meta",
        "--human",
        files["human"],
        "--scores",
        *scores_from_totals(files),
        "--resamples",
        "50",
    ]
    assert main(argv) == 0
    assert "intervals:" not in capsys.readouterr().out
    assert main([*argv, "--confidence"]) == 0
    assert "intervals: 95 %" in capsys.readouterr().out


def test_undefined_column_has_a_reason_and_no_ranks(files, capsys, tmp_path):
    constant = [("ru-en", i, s, 1.0) for i in range(1, 31) for s in SYSTEMS]
    rows = table(constant, ("lp", "item", "system", "score"))
    people = write(tmp_path / "constant.tsv", rows)
    scores = scores_from_totals(files)
    for name in ("good", "bad"):
        text = Path(files[name, "de-en"]).read_text()
        scores.append(write(tmp_path / f"{name}.ru-en.tsv", text))
    argv = ["meta", "--human", files["human"], people, "--scores", *scores, "--resamples", "50"]
    assert main(argv) == 0
    assert "ru-en: undefined for all metrics" in capsys.readouterr().out
    assert main([*argv, "-f", "json"]) == 0
    ranks = json.loads(capsys.readouterr().out)["average_rank"]
    assert ranks == {"good": 1.0, "bad": 2.0}


def test_two_systems_cause_a_warning(files, capsys):
    message = "only two systems with human scores: agreement is either perfect or none"
    argv = [
        "meta",
        "--human",
        files["human"],
        "--scores",
        *scores_from_totals(files),
        "--resamples",
        "50",
    ]
    assert main([*argv, "--level", "system"]) == 0
    assert message not in capsys.readouterr().out
    assert main([*argv, "--level", "system", "--exclude", "A"]) == 0
    assert capsys.readouterr().out.count(message) == 2  # of each language pair


def test_several_statistics_and_the_average_rank(files, capsys):
    argv = ["--human", files["human"], "--scores", *scores_from_totals(files), "--resamples", "50"]
    assert main(["meta", *argv, "--statistic", "pearson", "acc-eq*", "--lps", "de-en"]) == 0
    out = capsys.readouterr().out
    assert "Pearson r" in out
    assert "acc_eq*" in out
    assert "average rank" in out
    assert "fi-en" not in out


def test_system_level(files, capsys):
    result = run_json(
        capsys,
        "--human",
        files["human"],
        "--scores",
        *scores_from_totals(files),
        "--statistic",
        "accuracy",
    )
    assert result["tasks"][0]["sets"] == ["de-en", "fi-en"]
    assert result["tasks"][0]["judged"] == 6
    soft = run_json(
        capsys,
        "--human",
        files["human"],
        "--scores",
        *scores_from_totals(files),
        "--statistic",
        "spa",
        "accuracy",
    )
    assert 0 < soft["tasks"][0]["value"] <= 1


def test_metrics_are_scored_on_the_fly(capsys, tmp_path):
    rows = [
        {
            "lp": "de-en",
            "segment": n,
            "system": s,
            "hypothesis": h,
            "reference": "a b c d e f",
            "score": z,
        }
        for n, (s, h, z) in enumerate(
            [
                ("A", "a b c d e f", 1.0),
                ("A", "a b c d", 0.6),
                ("B", "a b x y", 0.1),
                ("B", "x y z", -1.0),
                ("A", "a b c d e", 0.9),
            ]
        )
    ]
    human = write(tmp_path / "da.jsonl", "\n".join(map(json.dumps, rows)))
    result = run_json(capsys, "--human", human, "-m", "chrf", "ter")
    values = {r["metric"]: r["value"] for r in result["tasks"]}
    assert values["chrf"] > 0.9
    assert values["ter"] > 0.9  # lower is better, and has been turned around
    system_level = run_json(capsys, "--human", human, "-m", "chrf", "--statistic", "accuracy")
    assert system_level["tasks"][0]["value"] == 1.0


@pytest.mark.parametrize(
    "name",
    [
        lambda n: {"segment": n},  # from nought: a number is no line
        lambda n: {"id": f"talk-{n}"},
        lambda n: {"segment": n % 10, "doc": f"talk {n // 10}"},
    ],
)
def test_written_scores_match_the_judged_segments(name, capsys, tmp_path):
    """A file with translations and human scores gives aligned scores."""
    rng = np.random.default_rng(6)
    rows = []
    for system in range(3):
        for n in range(30):
            kept_words = rng.random(12) > 0.2 * system
            text = " ".join(f"word{k}" for k in range(12) if kept_words[k])
            fields = {"system": SYSTEMS[system], "mt": text, "score": float(kept_words.sum())}
            rows.append({**name(n), "ref": " ".join(f"word{k}" for k in range(12)), **fields})
    both = write(tmp_path / "set.jsonl", "\n".join(map(json.dumps, rows)))
    scores = tmp_path / "scores.tsv"
    assert main(["score", "-t", both, "-m", "chrf", "-q", "-o", str(scores)]) == 0
    capsys.readouterr()
    [computed] = run_json(capsys, "--human", both, "-m", "chrf")["tasks"]
    [read] = run_json(capsys, "--human", both, "--scores", str(scores))["tasks"]
    assert computed["value"] == pytest.approx(read["value"], abs=1e-12)
    assert computed["value"] > 0.9
    tests = SignificanceTests(resamples=2)
    grid = report(TestSet.from_records(both), "chrf", human=both, explain=0, tests=tests).grid
    assert np.corrcoef(grid.human, grid.columns[0].values)[0, 1] == pytest.approx(computed["value"])


def test_comparisons_use_tau_strict_by_default(capsys, tmp_path):
    rows = [
        (1, "A", "B", "a", "the cat sat", "a dog", "the cat sat"),
        (1, "B", "C", "tie", "a dog", "the dog", "the cat sat"),
        (2, "A", "B", "b", "no", "yes indeed", "yes indeed"),
    ]
    header = (
        "item",
        "system_a",
        "system_b",
        "preference",
        "hypothesis_a",
        "hypothesis_b",
        "reference",
    )
    human = write(tmp_path / "pairs.tsv", table(rows, header))
    result = run_json(capsys, "--human", human, "-m", "chrf")
    assert result["tasks"][0]["statistic"] == "tau-strict"
    assert result["tasks"][0]["value"] == 1.0
    assert result["tasks"][0]["judged"] == 2


@pytest.fixture
def folder(tmp_path):
    """A folder of mt-metrics-eval: three systems, four segments, MQM, one metric's scores."""
    root = tmp_path / "wmt99"
    write(root / "sources" / "en-de.txt", "1\n2\n3\n4\n")
    write(root / "references" / "en-de.refA.txt", "das ist gut\nein Haus\nzwei Hunde\nso ist es\n")
    outputs = {
        "A": "das ist gut\nein Haus\nzwei Hunde\nso ist es\n",
        "B": "das ist gut\nein Hund\nzwei Hunde\nso ist er\n",
        "C": "was nun\nkein Hund\ndrei\nso\n",
    }
    for system, text in outputs.items():
        write(root / "system-outputs" / "en-de" / f"{system}.txt", text)
    mqm = {"A": ["0", "0", "0", "0"], "B": ["0", "-5", "0", "-1"], "C": ["-25", "-6", "-5", "None"]}
    human = "".join(f"{s}\t{v}\n" for s, values in mqm.items() for v in values)
    write(root / "human-scores" / "en-de.mqm.seg.score", human)
    write(root / "human-scores" / "en-de.mqm.sys.score", "A\t0\nB\t-1.5\nC\t-12\n")
    poor = "".join(f"{s}\t{n}\n" for s in "ABC" for n in (1, 2, 3, 4))
    write(root / "metric-scores" / "en-de" / "poor-refA.seg.score", poor)
    return str(root)


def test_a_folder_of_mt_metrics_eval(folder, capsys):
    stored = run_json(capsys, "--human", folder, "--statistic", "acc-eq")
    assert [r["metric"] for r in stored["tasks"]] == ["poor-refA"]
    assert (stored["tasks"][0]["judged"], stored["tasks"][0]["groups"]) == (10, 4)
    # By hand: A and B tie on segments 1 and 3, which the constant metric gets right: 2 ties of
    # 3 pairs each make 1/3, nothing on 2 and 4; the mean over four segments is 1/6.
    assert stored["tasks"][0]["value"] == pytest.approx(1 / 6)
    now = run_json(capsys, "--human", folder, "-m", "chrf", "--statistic", "acc-eq*")
    assert now["tasks"][0]["value"] == 1.0
    systems = run_json(capsys, "--human", folder, "-m", "chrf", "--statistic", "accuracy")
    assert systems["tasks"][0]["value"] == 1.0
    soft = run_json(capsys, "--human", folder, "-m", "chrf", "--statistic", "spa")
    assert soft["tasks"][0]["judged"] == 3


def test_lower_is_better_on_request(files, capsys):
    argv = ["--human", files["human"], "--scores", files["good", "de-en"], "--lps", "de-en"]
    up = run_json(capsys, *argv)["tasks"][0]["value"]
    down = run_json(capsys, *argv, "--lower-better", "good")["tasks"][0]["value"]
    assert down == pytest.approx(-up)


def test_excluded_systems_are_not_judged(files, capsys):
    argv = ["--human", files["human"], "--scores", files["good", "de-en"], "--lps", "de-en"]
    assert run_json(capsys, *argv, "--exclude", "C")["tasks"][0]["judged"] == 60
    assert main(["meta", *argv, "--exclude", "Z"]) == 2
    assert "unknown system of de-en 'Z'" in capsys.readouterr().err


def test_an_excluded_system_need_not_be_in_every_set(capsys, tmp_path):
    rows = [(n, s, 10.0 * n + m) for n in range(1, 5) for m, s in enumerate("ABCD")]
    header = ("item", "system", "score")
    files = {
        lp: [
            write(tmp_path / f"{name}.{lp}.tsv", table([r for r in rows if r[1] != absent], header))
            for name in ("human", "good")
        ]
        for lp, absent in (("de-en", "D"), ("fi-en", "A"))
    }
    human, scores = zip(*files.values(), strict=True)
    argv = ["--human", *human, "--scores", *scores]
    counts = run_json(capsys, *argv, "--exclude", "A")["tasks"]
    assert [task["judged"] for task in counts] == [8, 12]
    assert main(["meta", *argv, "--exclude", "Z"]) == 2
    assert "unknown system of de-en, fi-en 'Z' (known: A, B, C, D)" in capsys.readouterr().err


def test_ratings_can_be_standardized(capsys, tmp_path):
    # A strict and a lenient annotator of equal judgment: z-scores make them agree.
    rows = [
        (n + 1, "A", annotator, 20 * shift + 10 * value)
        for n, value in enumerate([1, 2, 3, 4])
        for annotator, shift in (("x", 0), ("y", n % 2 + 1))
    ]
    human = write(tmp_path / "raw.tsv", table(rows, ("item", "system", "annotator", "score")))
    scores = write(
        tmp_path / "m.tsv", table([(n, "A", n) for n in range(1, 5)], ("item", "system", "score"))
    )
    result = run_json(capsys, "--human", human, "--scores", scores, "--standardize")
    assert result["tasks"][0]["used"] == 4
    assert result["tasks"][0]["value"] > 0.9


def test_plots(files, capsys, tmp_path):
    argv = [
        "meta",
        "--human",
        files["human"],
        "--scores",
        *scores_from_totals(files),
        "--resamples",
        "0",
    ]
    target = tmp_path / "plot.svg"
    assert main([*argv, "-o", str(target)]) == 0
    assert target.read_text().startswith("<svg ")
    assert main([*argv, "-o", str(tmp_path / "plot.png")]) == 2
    assert "expected a name that ends in .json, " in capsys.readouterr().err
    assert main([*argv, "--plot", str(target)]) == 2
    assert "--plot was removed: use -o FILE.svg" in capsys.readouterr().err


def test_json_file_has_exclusion_counts(files, capsys, tmp_path):
    broken = table(
        [(1, "A", 1.0), (2, "A", 2.0), (3, "A", 1.5), (1, "Q", 5)], ("item", "system", "score")
    )
    scores = write(tmp_path / "part.de-en.tsv", broken)
    target = tmp_path / "out.json"
    argv = ["meta", "--human", files["human"], "--lps", "de-en", "--scores", scores]
    assert main([*argv, "-o", str(target), "--resamples", "20"]) == 0
    captured = capsys.readouterr()
    assert "without metric score (at most)" in captured.out
    assert "de-en: scored system without human judgments: 1 (part)" in captured.out
    assert "de-en: judged system without a metric score: 2 (part)" in captured.out
    written = json.loads(target.read_text())
    assert written["tasks"][0]["left_out"] == 87
    assert written["left_out"]["de-en"]["part"] == {
        "scored system without human judgments": 1,
        "judged system without a metric score": 2,
    }


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ([], "no metric to evaluate: give --scores"),
        (["--scores", "{lost}"], "no unique set of judgments matches the scores of lost"),
        (
            ["--scores", "{good}", "--statistic", "acc-eq", "--level", "system"],
            "acc-eq at system level",
        ),
        (["--scores", "{good}", "--statistic", "tau-strict"], "needs human comparisons"),
        (
            ["--scores", "{good}", "--grouping", "item", "--test", "williams"],
            "does not support test=williams",
        ),
        (["--scores", "{good}", "--lower-better", "other"], "--lower-better other: no such metric"),
        (
            ["-m", "chrf", "--lower-better", "chrf"],
            "--lower-better chrf: no such metric in --scores",
        ),
        (["--scores", "{strange}"], "none of the systems scored by strange (X)"),
        (["-m", "chrf"], "the judgments have no texts"),
        (["--scores", "nowhere.tsv"], "nowhere.tsv: no such file"),
        (["--scores", "{good}", "--protocol", "wmt24"], "use `tertium meta protocol NAME`"),
        (["--spans", "{good}"], "--spans was removed: use `tertium meta spans FILES`"),
        (["-m", "chrf", "--decisions", "5"], "use `tertium meta decisions --good-score X`"),
        (["-m", "chrf", "--thresholds"], "removed: use `tertium meta thresholds`"),
        (
            ["--scores", "{good}", "--lps", "de-en", "ru-en"],
            "human.tsv; available: de-en, fi-en",
        ),
        (["--scores", "{good}", "--statistic", "tie-aware"], "unknown statistic 'tie-aware'"),
        (["--scores", "{good}", "--threshold", "9"], "was removed: use threshold= in Python"),
        (["--scores", "{good}", "--statistic", "kendall", "kendall"], "kendall is given twice"),
        (["--scores", "{good}", "--human", "{human}"], "human.tsv is given twice"),
        (["--scores", "{good}", "--gold", "mqm"], "no score (looked for mqm; found lp, item"),
        (["--scores", "{good}", "--confidence", "--resamples", "0"], "but --resamples is 0"),
        (["--scores", "{good}", "--pairs", "--resamples", "0"], "but --resamples is 0"),
        (["--scores", "{good}", "--pairs", "--test", "none"], "but --test none disables it"),
    ],
)
def test_invalid_calls_are_errors(extra, message, files, capsys, tmp_path):
    rows = [(1, "X", 1.0)]
    named_sets = {
        "human": files["human"],
        "good": files["good", "de-en"],
        "lost": write(tmp_path / "lost.tsv", table(rows, ("item", "system", "score"))),
        "strange": write(tmp_path / "strange.de-en.tsv", table(rows, ("item", "system", "score"))),
    }
    argv = [word.format(**named_sets) for word in extra]
    assert main(["meta", "--human", files["human"], *argv]) == 2
    assert message in capsys.readouterr().err


def test_published_figures_of_chrf(human_data, capsys):
    # data/README.md: chrF on WMT17 at segment level, as published to .003.
    result = run_json(
        capsys,
        "--human",
        "da/wmt17",
        "--data",
        str(human_data),
        "-m",
        "chrf",
        "--lps",
        "cs-en",
        "de-en",
        "fi-en",
        "lv-en",
        "ru-en",
        "tr-en",
        "zh-en",
    )
    values = {r["sets"][0]: r["value"] for r in result["tasks"]}
    published = {
        "cs": 0.517,
        "de": 0.531,
        "fi": 0.671,
        "lv": 0.525,
        "ru": 0.599,
        "tr": 0.607,
        "zh": 0.591,
    }
    for lp, value in published.items():
        assert values[f"{lp}-en"] == pytest.approx(value, abs=0.0006)
    assert result["average"][0]["value"] == pytest.approx(0.577, abs=0.001)


def test_published_figures_of_bleu(human_data, capsys):
    # data/README.md: strict tau of sentence BLEU with effective order on WMT12.
    result = run_json(
        capsys,
        "--human",
        "rankings/wmt12",
        "--data",
        str(human_data),
        "-m",
        "bleu",
        "--lps",
        "cs-en",
        "fr-en",
    )
    values = {r["sets"][0]: r["value"] for r in result["tasks"]}
    for lp, value in {"cs": 0.157, "fr": 0.199}.items():
        assert values[f"{lp}-en"] == pytest.approx(value, abs=0.0006)


def test_unknown_file_or_set_is_an_error(capsys, tmp_path):
    record = {"src": "a", "ref": "b", "mt": "c", "score": 1, "system": "A", "seg": 1}
    write(tmp_path / "da" / "wmt99" / "de-en.jsonl", json.dumps(record) + "\n")
    argv = ["meta", "-m", "chrf", "--data", str(tmp_path), "--human"]
    assert main([*argv, "nofile.tsv"]) == 2
    assert "error: nofile.tsv: no such file or folder" in capsys.readouterr().err
    assert main([*argv, "da/wmt98"]) == 2
    message = capsys.readouterr().err
    assert "unknown set 'da/wmt98': did you mean 'da/wmt99'" in message
    assert "da/wmt99" in message


def test_a_protocol_ranks_metrics_as_a_shared_task(files, capsys):
    argv = [
        "--human",
        files["human"],
        "--scores",
        *scores_from_totals(files),
    ]
    command = ("meta", "protocol", "wmt24")
    record = run_json(capsys, *argv, command=command)
    assert [(t["sets"], t["statistic"]) for t in record["tasks"][::2]] == [
        (["de-en"], "spa"),
        (["de-en"], "acc-eq*"),
        (["fi-en"], "spa"),
        (["fi-en"], "acc-eq*"),
    ]
    assert {r["metric"]: r["rank"] for r in record["average"]} == {"good": 1, "bad": 2}
    assert record["missing"] == ["en-de", "en-es", "ja-zh"]
    assert main([*command, *argv, "--resamples", "0", "-f", "tsv"]) == 0
    header = capsys.readouterr().out.splitlines()[0].split("\t")
    assert header[:4] == ["metric", "rank", "average", "de-en SPA"]


def test_a_translation_without_a_reference_has_no_score(tmp_path, capsys):
    rows = [
        {"system": s, "segment": str(n), "hypothesis": f"{s} {n} word", "score": float(n + len(s))}
        | ({} if s == "ref" else {"reference": f"b {n} word"})
        for s in ("a", "b", "ref")
        for n in range(8)
    ]
    lines = "\n".join(json.dumps(row) for row in rows) + "\n"
    path = write(tmp_path / "human.jsonl", lines)
    record = run_json(capsys, "--human", path, "-m", "chrf", "bleu")["tasks"][0]
    assert (record["judged"], record["used"], record["left_out"]) == (24, 16, 8)


@pytest.mark.parametrize(
    ("form", "unread"),
    [
        (["protocol", "wmt24"], ["--level", "system"]),
        (["protocol", "wmt24"], ["--statistic", "pearson"]),
        (["spans"], ["--alpha", "0.01"]),
        (["spans"], ["--scores", "x.tsv"]),
        (["thresholds"], ["--resamples", "9"]),
        (["decisions", "--good-score", "50"], ["--resamples", "0"]),
    ],
)
def test_forms_have_only_options_that_they_use(form, unread, files, capsys):
    assert main(["meta", *form, "--human", files["human"], "-m", "chrf", *unread]) == 2
    errors = capsys.readouterr().err
    assert "unrecognized argument" in errors
    assert unread[0] in errors


def test_unknown_protocol_and_missing_good_score(files, capsys):
    inputs = ["--human", files["human"], "-m", "chrf"]
    assert main(["meta", "protocol", "wmt23", *inputs]) == 2
    assert "invalid choice: 'wmt23'" in capsys.readouterr().err
    assert main(["meta", "decisions", *inputs]) == 2
    assert "required: --good-score" in capsys.readouterr().err


def test_help_names_all_statistics(capsys):
    with pytest.raises(SystemExit):
        main(["meta", "--help"])
    assert ", ".join(STATISTICS) in " ".join(capsys.readouterr().out.split())
