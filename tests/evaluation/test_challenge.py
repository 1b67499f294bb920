"""Challenge sets: file layouts, counts, and the bundled set."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.builders import write_file
from tests.partial_metric import Partial

import tertium
from tertium.cli import main
from tertium.core.errors import DataError, MissingInputError, UnknownNameError
from tertium.data.challenge_sets import DAMAGE_SET, damage_challenge, read_challenge
from tertium.studies.challenge import wilson
from tertium.text.perturbations import (
    MEANING_KINDS,
    PERTURBATIONS,
    PerturbationInput,
    perturb,
    units,
)

ACES = {
    "ID": "1",
    "source": "Er zahlte 300 Euro.",
    "good-translation": "He paid 300 euros.",
    "incorrect-translation": "He paid 500 euros.",
    "reference": "He paid 300 euros",
    "phenomena": "hallucination-number-level-1",
    "langpair": "de-en",
}
DEMETR = {
    "id": 7,
    "src_sent": "Er ging.",
    "mt_sent": "He left.",
    "pert_sent": "She left.",
    "eng_sent": "He went.",
    "pert_name": "critical_id9_gender",
    "lang_tag": "german",
}


def aces_tsv(*rows: dict[str, str]) -> str:
    return "\n".join("\t".join(row) for row in [[*ACES], *([*r.values()] for r in rows)]) + "\n"


def test_aces_is_read_as_published(tmp_path):
    same = ACES | {"incorrect-translation": ACES["good-translation"]}
    table = read_challenge(write_file(tmp_path / "aces.tsv", aces_tsv(ACES, same)))
    (contrast,) = table.contrasts
    assert contrast.better.hypothesis == "He paid 300 euros."
    assert contrast.worse.hypothesis == "He paid 500 euros."
    assert contrast.better.source == contrast.worse.source == "Er zahlte 300 Euro."
    assert contrast.better.references == ("He paid 300 euros",)
    assert (contrast.phenomenon, contrast.lp) == ("hallucination-number-level-1", "de-en")
    assert table.excluded_counts == {"both translations are the same": 1}
    lines = read_challenge(write_file(tmp_path / "aces.jsonl", [ACES]))
    by_id = json.dumps({"1067": ACES}, indent=2)  # annotated items of Span-ACES
    assert read_challenge(write_file(tmp_path / "by_id.json", by_id)).contrasts == lines.contrasts
    assert lines.contrasts == table.contrasts
    empty = aces_tsv(ACES | {"source": ""}, ACES)
    read = read_challenge(write_file(tmp_path / "aces.tsv", empty))
    assert [contrast.better.source for contrast in read.contrasts] == [None, ACES["source"]]


def test_hw_tsc_names_two_columns_source(tmp_path):
    names, row = [*ACES][1:6], [*ACES.values()][1:6]
    text = "\t".join([*names, "source"]) + "\r\n" + "\t".join([*row, "WMT"]) + "\r\n"
    (contrast,) = read_challenge(write_file(tmp_path / "set.TSV", text)).contrasts
    assert contrast.better.source == "Er zahlte 300 Euro."
    assert contrast.phenomenon == "hallucination-number-level-1"


def test_demetr_flags_failed_perturbations_and_reference_outputs(tmp_path):
    # base_id35_reference of the published files: the perturbed text is the reference, and better
    rows = [
        DEMETR,
        DEMETR | {"pert_check": True, "lang_tag": "chinese_simple"},
        DEMETR | {"pert_check": False, "pert_sent": DEMETR["mt_sent"]},
        DEMETR | {"pert_check": True, "pert_sent": DEMETR["eng_sent"], "severity": "base"},
    ]
    read = read_challenge(write_file(tmp_path / "d.json", json.dumps(rows)))
    assert read.excluded_counts == {"the output could not be changed in this way": 1}
    first, chinese, reference = read.contrasts
    assert first.better.references == ("He went.",)
    assert (first.phenomenon, first.lp, chinese.lp) == ("critical_id9_gender", "de-en", "zh-en")
    texts = [(pair.better.hypothesis, pair.worse.hypothesis) for pair in (first, reference)]
    assert texts == [("He left.", "She left."), ("He went.", "He left.")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "x\ty\n1\t2\n", "line 2: expected the columns of ACES"),
        ("a.json", "[1]", "object 1: expected an object"),
        ("a.json", json.dumps([DEMETR | {"mt_sent": 3}]), "object 1: mt_sent is 3, not a text"),
        ("a.json", json.dumps([DEMETR | {"mt_sent": None}]), "one of the two translations"),
        ("a.tsv", aces_tsv(), "no usable pair"),
    ],
)
def test_invalid_file_error(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        read_challenge(write_file(tmp_path / name, text))


def test_unknown_phenomena_and_groups_raise():
    with pytest.raises(UnknownNameError, match="did you mean 'number'"):
        damage_challenge().choose(["numbre"])
    chosen = damage_challenge().choose(["number"], ["en-zh"])
    assert {(c.phenomenon, c.lp) for c in chosen.contrasts} == {("number", "en-zh")}
    for by in ("lp", ["phenomenon"]):
        with pytest.raises(UnknownNameError, match=r"\(known: language, phenomenon\)"):
            tertium.challenge(DAMAGE_SET, "chrf", by=by)


@pytest.fixture
def run(capsys):
    """Return a function that runs `tertium meta challenge` and returns what it prints."""

    def run_command(options, expected=0):
        options = options if isinstance(options, list) else options.split()
        assert main(["meta", "challenge", *map(str, options)]) == expected
        return capsys.readouterr()

    return run_command


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("damage damage -m chrf", "challenge set 'damage' is given twice"),
        ("-m chrf --lps de-en damage", "no SET: give `damage` or files of pairs before -m"),
        ("damage -m chrf -w -1", "-w"),
        ("damage -m chrf --rows language", "--rows was removed: use --by"),
    ],
)
def test_invalid_commands_are_explained(run, options, message):
    assert message in run(options, expected=2).err


def test_wilson_equals_scipy():
    for right, total in ((0, 5), (5, 5), (3, 17), (999, 1000)):
        expected = stats.binomtest(right, total).proportion_ci(0.95, method="wilson")
        bounds = pytest.approx([expected.low, expected.high], abs=1e-12)
        assert wilson(right, total).tolist() == bounds
    sizes = np.arange(1, 400)  # the interval contains its share
    assert (wilson(sizes, sizes)[:, 1] == 1).all()
    assert (wilson(0 * sizes, sizes)[:, 0] == 0).all()


def test_counts_equal_the_loop():
    challenge = damage_challenge().choose(["number", "close: number"], ["de-en", "en-zh"])
    study = tertium.challenge(challenge, ["chrf", "ter"])
    for m, spec in enumerate(study.metrics):
        metric = tertium.load_metric(spec)
        for g, group in enumerate(study.groups):
            right = ties = size = 0
            for contrast in challenge.contrasts:
                if contrast.phenomenon != group:
                    continue
                good, bad = (metric.score([s]).system for s in (contrast.better, contrast.worse))
                size += 1
                ties += good == bad
                right += good > bad if metric.higher_is_better else good < bad
            counted = (study.correct[m, g], study.tied[m, g], study.sizes[g])
            assert counted == (right, ties, size)


def test_damage_set_is_deterministic_and_complete():
    first, again = damage_challenge(), damage_challenge.__wrapped__()
    assert first == again
    assert damage_challenge(seed=1) != first
    assert {*first.phenomena} == {*PERTURBATIONS, *(f"close: {kind}" for kind in MEANING_KINDS)}
    pairs = {c.lp for c in first.contrasts}
    assert len(pairs) == 10
    for kind in PERTURBATIONS:
        result = {c.lp for c in first.contrasts if c.phenomenon == kind}
        assert result == pairs or (kind == "spelling" and result == pairs - {"en-zh"})
    for contrast in first.contrasts:
        assert contrast.better.hypothesis != contrast.worse.hypothesis
        assert contrast.better.references != (contrast.better.hypothesis,)


@pytest.mark.parametrize(
    ("kind", "language", "before", "after"),
    [
        ("negation", "en", "It is not here.", "It is here."),
        ("negation", "en", "It is here.", "It is not here."),
        ("negation", "fr", "Ce n'est pas loin.", "Ce est loin."),
        ("negation", "zh", "他不会来。", "他会来。"),
        ("opposite", "de", "Mehr davon!", "Weniger davon!"),
        ("gender", "ru", "Он ушёл.", "Она ушёл."),
        ("punctuation", "es", "¡Sí, claro!", "Sí claro"),
        ("truncation", "zh", "一二三四五六", "一二三"),
    ],
)
def test_perturbation_rules(kind, language, before, after):
    original = PerturbationInput(text=before, language=language, source="s", other="o", foreign="f")
    assert perturb(original, kind, np.random.default_rng(1)) == after


@pytest.mark.parametrize("kind", PERTURBATIONS)
@settings(max_examples=30)
@given(text=st.text(max_size=40), seed=st.integers(0, 5))
def test_perturbation_rules_accept_any_text(kind, text, seed):
    original = PerturbationInput(
        text=text, language="en", source="a b", other="c d e f g h", foreign=""
    )
    changed = perturb(original, kind, np.random.default_rng(seed))
    assert changed is None or changed.strip() != text.strip()
    assert "".join(units(text)) == "".join(text.split()) or units(text) == list(text)


def test_command_output(tmp_path, run, capsys):
    argv = [DAMAGE_SET, "-m", "chrf", "chrf:beta=3", "--select", "number", "close: number"]
    result = json.loads(run([*argv, "-f", "json"]).out)
    groups = [row for row in result["results"] if row["metric"] == "chrf"]
    assert sum(g["pairs"] for g in groups[:-1]) == groups[-1]["pairs"] == result["pairs"]
    run([*argv, "-o", tmp_path / "x.svg"])
    assert "close: number" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    header, *rows = run([*argv, "-f", "tsv", "--by", "language"]).out.splitlines()
    assert {"chrf %", "chrf:beta=3 % ties"} < {*header.split("\t")}
    assert any(row.startswith("zh-en") for row in rows)
    assert main(["challenge", DAMAGE_SET, "-m", "chrf"]) == 2
    assert "use `tertium meta challenge SET`" in capsys.readouterr().err


def test_nan_score_is_reported_and_not_a_tie(tmp_path, caplog):
    partial = Partial(unscored=ACES["incorrect-translation"])
    study = tertium.challenge(write_file(tmp_path / "a.jsonl", [ACES, ACES]), [partial, "chrf"])
    assert study.tied.tolist() == [[0], [0]]
    assert study.correct.tolist() == [[0], [2]]
    message = f"{partial.spec}: 2 pairs count as wrong because a score is not a number"
    assert caplog.messages == [message]


def test_pairs_without_required_inputs_are_excluded_and_counted(tmp_path):
    bare = {**ACES, "reference": ""}
    file = write_file(tmp_path / "aces.jsonl", [ACES, bare, ACES])
    study = tertium.challenge(file, ["chrf", "bleu"])
    assert study.sizes.tolist() == [2]
    assert study.records()["left_out"] == {"no reference or source that a metric needs": 1}
    assert tertium.challenge(file, "sss:encoder=toy,against=source").sizes.tolist() == [3]
    with pytest.raises(MissingInputError, match="chrf needs references, and segment 1 has none"):
        tertium.challenge(write_file(tmp_path / "none.jsonl", [bare]), "chrf")


def test_excluded_counts_are_of_the_selected_pairs(tmp_path):
    same = ACES | {"incorrect-translation": ACES["good-translation"]}
    other = {"phenomena": "negation", "langpair": "fr-en"}
    text = aces_tsv(ACES, same, ACES | other, same | other, same | other)
    read = read_challenge(write_file(tmp_path / "aces.tsv", text))
    for chosen, count in (
        (read, 3),
        (read.choose(["negation"]), 2),
        (read.choose([], ["de-en"]), 1),
    ):
        assert chosen.excluded_counts == {"both translations are the same": count}


def test_warnings_are_of_better_translations(tmp_path, run):
    long = "昨天下午他在火车站附近的那家小店里付了三百欧元，"
    chinese = {"good-translation": long + "没有收据。", "reference": long + "没拿收据。"}
    empty = {"incorrect-translation": "", "langpair": "en-zh"}  # the worse translation may be odd
    rows = [ACES, ACES | chinese | empty, ACES | {"reference": ""}]
    argv = [write_file(tmp_path / "aces.jsonl", rows), "-m", "chrf", "bleu"]
    excluded_counts, warning = "needs: 1", "warning: no blanks to split words at: BLEU 1"
    lines = run(argv).out.splitlines()
    assert warning in lines[:3]
    assert lines[-1].endswith(excluded_counts)
    for style in ("tsv", "json"):
        printed = run([*argv, "-f", style])
        assert printed.err.splitlines()[0].endswith(excluded_counts)
        assert printed.err.splitlines()[1:] == [f"tertium: {warning}"]
    counted = json.loads(printed.out)["warnings"]
    assert counted == {"no blanks to split words at": {"BLEU": 1}}
    for quiet in (run([*argv, "-q"]), run([*argv, "-q", "-f", "tsv"])):
        assert "warning" not in "".join(quiet)
