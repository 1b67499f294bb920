"""`tertium score` and `list`: equal to sacrebleu, missing scores, languages of metrics.

What they print is recorded in `tests/golden`; wrong calls are in `test_errors`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from tests.builders import EXAMPLES, example_texts, write_lines
from tests.cli.conftest import Run
from tests.partial_metric import UNSCORED

from tertium.core.registry import METRICS
from tertium.evaluation.metric_choice import MetricOptions
from tertium.metrics.base import word_tokenizers
from tertium.metrics.base.word_tokenizers import TOKENIZERS_BY_LANGUAGE
from tertium.metrics.list_commands import RECOMMENDED


def test_json_has_the_fields_of_sacrebleu(run: Run) -> None:
    references = ("reference-a.en", "reference-b.en")
    files = " ".join(f"{EXAMPLES}/{name}.txt" for name in references)
    record = run(f"score -t {EXAMPLES}/system-good.en.txt -r {files} -m bleu -f json").json
    streams = [example_texts(name) for name in references]
    expected = BLEU().corpus_score(example_texts("system-good.en"), streams)
    assert record["name"] == "BLEU"
    assert record["score"] == expected.score
    assert record["verbose_score"] == expected._verbose


def test_a_missing_score_has_the_mark_of_each_format(
    tmp_path: Path, partial: str, run: Run
) -> None:
    file = write_lines(tmp_path / "texts.txt", [UNSCORED])
    assert run(f"score -t {file} -r {file} -m chrf {partial} -b").out == "100.00\t–\n"
    assert run(f"score -t {file} -r {file} -m {partial} -f tsv").rows[1][1] == "nan"
    assert run(f"score -t {file} -r {file} -m {partial} -f json").json["score"] is None


@pytest.mark.parametrize(
    ("count", "message"),
    [(29, "warning: 29 segments: intervals are unreliable below 30 segments"), (30, "")],
)
def test_intervals_of_few_segments_cause_a_warning(
    tmp_path: Path, run: Run, count: int, message: str
) -> None:
    file = write_lines(tmp_path / "text", (f"the {n}. line" for n in range(count)))
    command = f"score -t {file} -r {file} -m chrf"
    printed = run(f"{command} --confidence --confidence-n 20").out
    assert message in printed
    assert ("warning" in printed) == bool(message)
    assert "warning" not in run(command).out


def test_every_metric_and_ranker_has_a_summary_and_a_citation(run: Run) -> None:
    records = run("list all -f json").json
    summaries = {record["metric"]: record["summary"] for record in records}
    assert all(summaries.values())
    assert len({*summaries.values()}) == len(summaries)
    assert {*METRICS, "pairwise"} <= {*summaries}
    assert run(f"list citations {' '.join(summaries)}").err == ""
    recommended = run("list -f json").json
    assert {record["metric"]: record["summary"] for record in recommended} == RECOMMENDED


def test_languages_are_passed_to_metrics() -> None:
    specs = [
        "sss:encoder=toy",
        "sss:encoder=toy,lp=fi-en",
        "chrf",
        "meteor:synonyms=false",
        "meteor:synonyms=false,language=cs",
    ]
    metrics = MetricOptions().load_for(specs, "en", "de")
    assert [getattr(m, "lp", None) for m in metrics[:3]] == ["en-de", "fi-en", None]
    assert [getattr(m, "language", None) for m in metrics[3:]] == ["de", "cs"]


def test_bleu_and_nist_use_sacrebleus_tokenizer_for_a_language(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    hypotheses = ["他昨天在车站附近买了两本书。", "我们明天不去。"]
    references = ["他昨天在火车站旁边买了两本书。", "我们明天不去了。"]
    texts = (write_lines(tmp_path / "t", hypotheses), write_lines(tmp_path / "r", references))
    command = "score -t {} -r {} -m bleu -f json --only-system -q --target-language ".format(*texts)
    for language in ("zh", "de"):
        expected = BLEU(trg_lang=language).corpus_score(hypotheses, [references]).score
        assert run(command + language).json["score"] == expected
        assert run(f"{command}{language} --source-language en").json["score"] == expected
    specs = ["bleu", "bleu:lowercase=true", "bleu:tokenize = 13a", "nist", "nist:tokenize=13a"]
    for name, is_installed in (("ko-mecab", True), ("char", False)):
        monkeypatch.setattr(word_tokenizers, "is_installed", lambda *m, i=is_installed: i or not m)
        metrics = MetricOptions().load_for(specs, "en", "ko")
        tokenizers = [getattr(metric, "tokenize", None) for metric in metrics]
        assert tokenizers == [name, name, "13a", name, "13a"]
    assert BLEU._TOKENIZER_MAP == TOKENIZERS_BY_LANGUAGE
