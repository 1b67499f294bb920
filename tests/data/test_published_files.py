"""Files as they were published, cut to a few rows: every layout of the documentation is read.

The files are not part of the repository, because their licenses differ. The tests look for them in
`TERTIUM_SAMPLES`, or in the folder `samples` next to the folder `TERTIUM_DATA`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tertium.core.errors import DataError
from tertium.data.challenge_sets import read_challenge
from tertium.data.human_data import HumanData
from tertium.data.human_data_files import read_human_data
from tertium.data.metric_scores import read_metric_scores
from tertium.data.testset import TestSet
from tertium.people.rater_agreement import agree

DATA = os.environ.get("TERTIUM_DATA", "")
SAMPLES = Path(
    os.environ.get("TERTIUM_SAMPLES") or (Path(DATA).parent / "samples" if DATA else ".")
)

pytestmark = pytest.mark.skipif(
    not (SAMPLES / "google-mqm").is_dir(), reason="needs samples of published files"
)

MQM = "google-mqm"
QE22 = "qe/wmt-qe-2022-data/test_data-gold_labels"
QE23 = "qe/wmt-qe-2023-data"
APPRAISE = "campaigns/appraise/RegressionTests/tests/examples"
ESA_PAPER = "campaigns/appraise-exports-ESA-paper"
WMT24 = "wmt-humeval/wmt24"
CONTROL, UNREADABLE = "quality-control row", "unreadable row"

# path, language pairs with their number of judgments, marked spans, excluded rows
LAYOUTS = [
    # MQM tables, one row for each error
    (f"{MQM}/ted/ende/mqm_ted_ende.tsv", {"en-de": 61}, 29, {UNREADABLE: 1}),
    (f"{MQM}/newstest2020/ende/mqm_newstest2020_ende.source-errors.tsv", {"en-de": 50}, 16, {}),
    (f"{MQM}/generalMT2023/ende/sxs_mqm_generalMT2023_ende.3ratingsPerSegment.tsv",
     {"en-de": 14}, 22, {CONTROL: 3}),
    # averages of MQM, separated by blanks
    (f"{MQM}/newstest2020/ende/mqm_newstest2020_ende.avg_seg_scores.tsv", {"en-de": 60}, 0, {}),
    (f"{MQM}/newstest2021/ende/mqm_newstest2021_ende.avg_seg_scores.tsv",
     {"en-de": 51}, 0, {"no score": 9}),
    # ESA and Appraise
    (f"{WMT24}/esa_generalMT2024_wave2.csv",
     {"en-ja": 36, "en-zh": 13}, 28, {CONTROL: 26, "duplicate row": 1}),
    (f"{WMT24}/old/wave2.csv", {"en-ja": 10, "en-zh": 12}, 9, {CONTROL: 18}),
    ("wmt-humeval/wmt25/SYNTHETIC.jsonl", {"en-cs_CZ": 4}, 2, {UNREADABLE: 1}),
    (f"{ESA_PAPER}/240520rc6ESA.scores.csv", {"en-de": 70}, 191, {CONTROL: 10}),
    (f"{ESA_PAPER}/240520rc6GEMBA.scores.csv", {"en-de": 70}, 74, {CONTROL: 10}),
    (f"{APPRAISE}/example_direct.scores.csv.expected", {"en-de": 9}, 0, {CONTROL: 2}),
    (f"{APPRAISE}/example_pairwise.scores.csv.expected", {"en-de": 13}, 0, {CONTROL: 4}),
    (f"{APPRAISE}/example_pairwise_errors.scores.csv.expected", {"en-de": 13}, 0, {CONTROL: 4}),
    # quality estimation
    (f"{QE22}/task1_da/en-cs", {"en-cs": 50}, 0, {}),
    (f"{QE22}/task1_mqm/en-de", {"en-de": 50}, 0, {}),
    (f"{QE22}/task1_word-level/en-cs", {"en-cs": 50}, 89, {}),
    (f"{QE23}/task_1/en-hi/dev.enhi.df.short.tsv", {"en-hi": 50}, 0, {}),
    (f"{QE23}/gold_labels/hallucinations_gold_T1s_header.tsv", {"en-de": 50}, 0, {}),
    (f"{QE23}/gold_labels/hallucinations_gold_T1s.tsv", {"en-de": 51}, 0, {}),
    (f"{QE23}/gold_labels/hallucinations_gold_T1w_header.tsv", {"en-de": 50}, 36, {}),
    (f"{QE23}/gold_labels/hallucinations_gold_T1w.tsv", {"en-de": 51}, 37, {}),
    (f"{QE23}/gold_labels/hallucinations_gold_T2_header.tsv", {"en-de": 50}, 42, {}),
    (f"{QE23}/gold_labels/hallucinations_gold_T2.tsv", {"en-de": 51}, 43, {}),
    (f"{QE23}/task_2/train/2021_TED_en-de_processed.tsv", {"en-de": 51}, 17, {}),
    ("qe/wmt-qe-2024-data/test/Task1/DA/en-hi", {"en-hi": 47}, 0, {"no score": 3}),  # scores cut
    (
        "qe/mlqe-pe/data/test21_goldlabels/en-de-test21.untarred/en-de-test21",
        {"en-de": 50},
        4,
        {UNREADABLE: 1},  # tags of the third segment are cut
    ),
    ("qe/wmt-qe-2022-data/train-dev_data/task1_mqm/train/en-de/en-de-mqm.2021-ted.csv",
     {"en-de": 50}, 0, {}),
    # annotation tools
    ("campaigns/pearmut/example_contrastive.CUT.jsonl", {"": 3}, 4, {}),
    ("campaigns/pearmut/data/outputs/annotation_demo_esa.jsonl", {"": 6}, 1, {}),
    ("campaigns/pearmut/data/outputs/annotation_demo_mqm.jsonl", {"": 4}, 2, {}),
    ("campaigns/pearmut/data/outputs/annotation_demo_da.jsonl", {"": 4}, 0, {}),
    ("campaigns/factgenie/llm-ollama-llama3-quintd1-gsmarena-test-1726055860.CUT.jsonl",
     {"": 1}, 2, {}),
    # score files of mt-metrics-eval
    (f"{ESA_PAPER}/en-de.ESA-1.seg.score", {"en-de": 557}, 0, {}),
]  # fmt: skip


def count_judgments(entry: HumanData) -> int:
    matrix = entry.matrix()
    return len(entry) if hasattr(entry, "__len__") else matrix.values.size


def count_spans(entry: HumanData) -> int:
    return sum(len(errors.spans) for errors in entry.error_annotations().values())


@pytest.mark.parametrize(("path", "counts", "spans", "excluded"), LAYOUTS)
def test_published_layouts_are_read(path, counts, spans, excluded):
    entries = read_human_data(SAMPLES / path)
    assert {entry.lp: count_judgments(entry) for entry in entries} == counts
    assert sum(map(count_spans, entries)) == spans
    assert {k: n for entry in entries for k, n in entry.excluded_counts.items()} == excluded


@pytest.mark.parametrize(
    "path", ["newstest2021/zhen/mqm_newstest2021_zhen", "ted/zhen/mqm_ted_zhen"]
)
def test_files_without_any_score_are_refused_with_counts(path):
    with pytest.raises(DataError, match=r"no usable judgment \(60 excluded; no score: 60"):
        read_human_data(SAMPLES / MQM / f"{path}.avg_seg_scores.tsv")


@pytest.mark.parametrize(("lp", "segments", "spans", "missing"), [
    ("en-de", 110, 1183, 5), ("zh-en", 120, 613, 1),
])  # fmt: skip
def test_mt_metrics_eval_folder_is_read(lp, segments, spans, missing, caplog):
    folder = SAMPLES / "mtme" / "wmt23"
    (entry,) = read_human_data(folder, gold="mqm", lps=[lp.replace("-", "")])
    assert entry.segment_scores().values.shape == (5, segments)
    assert not caplog.records  # error spans are read only if they are used
    assert count_spans(entry) == spans
    assert all(file.name.endswith((".seg.score", ".sys.score")) for file in entry.files)
    assert len([scores for file in entry.files for scores in read_metric_scores(file)]) > 10


def test_details_of_published_files():
    (entry,) = read_human_data(SAMPLES / "wmt-humeval" / "wmt25" / "SYNTHETIC.jsonl")
    segment = entry.texts()["SysB", "0"]
    assert segment.references == ("SYNTHETIC Kočka seděla na rohožce.",)
    folder = SAMPLES / QE23 / "test_data_2023" / "task1_word_level" / "en-fa"
    testset = TestSet.read([folder / "test.enfa.final.mt"], sources=folder / "test.enfa.final.src")
    assert not any("\r" in source for source in testset.sources)
    (entry,) = read_human_data(SAMPLES / "campaigns" / "pearmut" / "example_contrastive.CUT.jsonl")
    text = entry.texts()["Online-Gamma", "en-es-0"].hypothesis
    spans = entry.error_annotations()["Online-Gamma", "en-es-0"].spans
    assert spans[0].of(text) == "persona que no se somete a retoques"


@pytest.mark.parametrize(("path", "count", "excluded"), [
    ("demetr/base_id33_empty.json", 10, 0),
    ("demetr/critical_id9_ne_replaced.json", 3, 7),
    ("demetr/minor_id1_repeat2.json", 10, 0),
    ("aces/challenge_set_annotation/compare_annotations/annotations/subset.json", 60, 0),
    ("hw-tsc/Challenge_Set_for_WMT22_Metric_by_HW-TSC.TSV", 10, 0),
])  # fmt: skip
def test_challenge_sets_are_read(path, count, excluded):
    challenge = read_challenge(SAMPLES / "challenge" / path)
    assert len(challenge) == count
    assert sum(challenge.excluded_counts.values()) == excluded


# not the dynamic campaign: of several ratings of an item, Pearmut counts the last
CAMPAIGNS = "cesa_task da esa mqm_custom mqm_input noprotocol singlestream sliders"


@pytest.mark.parametrize("name", CAMPAIGNS.split())
def test_system_scores_are_those_of_pearmut(name):
    folder = SAMPLES / "today" / "humeval" / "pearmut-1.1.6"
    if not folder.is_dir():
        pytest.skip("samples are not here")
    [study] = agree(folder / "annotations" / f"sample_{name}.jsonl", resamples=10)
    results = json.loads((folder / "results" / f"res_sample_{name}.json").read_text())["results"]
    ours = {score.system: (score.mean, score.judgments) for score in study.systems}
    assert len(ours) == len(results)
    for entry in results:
        assert ours[entry["model"]] == (pytest.approx(entry["score"]), entry["count"])


@pytest.mark.parametrize("name", ["data", "data_repeater", "chat_data"])
def test_exports_without_translations_or_ratings_are_refused(name):
    folder = SAMPLES / "campaigns" / "label-studio" / "sdk-tests" / "test_export_json_min"
    with pytest.raises(DataError, match=r"task 1: no translation \(looked for mt, "):
        read_human_data(folder / f"{name}.json")
    path = SAMPLES / "campaigns" / "pearmut" / "examples" / "annotation" / "campaign_esa.json"
    with pytest.raises(DataError, match="without ratings: give its outputs"):
        read_human_data(path)
