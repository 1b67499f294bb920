"""METEOR equals the METEOR 1.5 jar; its properties and error messages."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tertium.core.errors import DataError, MissingResourceError, UsageError
from tertium.core.segment import Segment
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.paraphrase_table import load_paraphrases
from tertium.metrics.lexical import meteor_metric as module
from tertium.metrics.lexical.meteor_metric import COLUMNS, METEOR

GOLDEN = Path(__file__).parents[2] / "golden"
INTO_ENGLISH = ("cs", "de", "fi", "lv", "ru", "tr", "zh")
STAGES = ("exact", "stem", "synonym", "paraphrase")


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    """Scores of the jar for our own sentences; the file contains the commands."""
    return dict(json.loads((GOLDEN / "meteor.json").read_text("utf-8")))


@pytest.fixture(scope="module")
def table(golden: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The paraphrase table used with the jar."""
    path = tmp_path_factory.mktemp("table") / "paraphrase.gz"
    entries = "".join(f"0.5\n{phrase}\n{other}\n" for phrase, other in golden["table"])
    path.write_bytes(gzip.compress(entries.encode()))
    return str(path)


def pairs(golden: dict[str, Any]) -> list[Segment]:
    return [Segment(p["hypothesis"], references=(p["reference"],)) for p in golden["pairs"]]


def check(metric: METEOR, segments: list[Segment], scores: list[float], corpus: float) -> None:
    result = metric.score(segments)
    np.testing.assert_allclose(result.segments, scores, rtol=0, atol=1e-9)
    assert result.system == pytest.approx(corpus, abs=1e-9)


@pytest.mark.parametrize("stage", ["synonym", "paraphrase", "lower"])
def test_scores_equal_the_jar(golden: dict[str, Any], table: str, stage: str) -> None:
    metrics = {
        "synonym": METEOR(),
        "paraphrase": METEOR(paraphrases=table),
        "lower": METEOR(normalise=False, synonyms=False),
    }
    expected = [p[stage] for p in golden["pairs"]]
    check(metrics[stage], pairs(golden), expected, golden["corpus"][stage])


def test_scores_with_several_references_equal_the_jar(golden: dict[str, Any]) -> None:
    rows = golden["multiple"]
    segments = [Segment(r["hypothesis"], references=tuple(r["references"])) for r in rows]
    check(METEOR(), segments, [r["score"] for r in rows], golden["corpus"]["multiple"])


@pytest.mark.parametrize("language", ["de", "fr", "es", "cs"])
def test_scores_in_other_languages_equal_the_jar(golden: dict[str, Any], language: str) -> None:
    expected = golden["languages"][language]
    segments = [Segment(p["hypothesis"], references=(p["reference"],)) for p in expected["pairs"]]
    scores = [p["score"] for p in expected["pairs"]]
    check(METEOR(language=language), segments, scores, expected["corpus"])


def test_statistics_equal_the_jar(golden: dict[str, Any]) -> None:
    rows = METEOR().statistics(pairs(golden))
    columns = dict(zip(COLUMNS, rows.T, strict=True))
    jar = np.array([p["statistics"] for p in golden["pairs"]]).T
    for side, words, function in (("hypothesis", 0, 2), ("reference", 1, 3)):
        assert (columns[f"{side}_function_words"] == jar[function]).all()
        assert (columns[f"{side}_content_words"] == jar[words] - jar[function]).all()
        for number, stage in enumerate(STAGES):
            at = 4 + 4 * number + words
            assert (columns[f"{side}_content_{stage}"] == jar[at]).all()
            assert (columns[f"{side}_function_{stage}"] == jar[at + 2]).all()
    is_complete = (jar[0] == jar[21]) & (jar[1] == jar[22]) & (jar[20] == 1)
    assert is_complete.any()
    assert (columns["chunks"] == np.where(is_complete, 0, jar[20])).all()


def wmt17(folder: Path) -> list[Segment]:
    rows = []
    for source in INTO_ENGLISH:
        path = folder / "da" / "wmt17" / f"{source}-en.jsonl.gz"
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows += [json.loads(line) for line in file][::7][:72]
    texts = [(" ".join(r["hypothesis"].split()), " ".join(r["reference"].split())) for r in rows]
    return [Segment(hypothesis, references=(reference,)) for hypothesis, reference in texts[:500]]


def test_wmt17_scores_equal_the_jar(human_data: Path) -> None:
    expected = json.loads((GOLDEN / "meteor_wmt17.json").read_text())
    check(METEOR(), wmt17(human_data), expected["synonym"], expected["corpus"]["synonym"])


@pytest.mark.slow
def test_wmt17_scores_with_the_full_table_equal_the_jar(human_data: Path) -> None:
    path = os.environ.get("TERTIUM_PARAPHRASES")
    if not path:
        pytest.skip("set TERTIUM_PARAPHRASES to METEOR's paraphrase-en.gz")
    expected = json.loads((GOLDEN / "meteor_wmt17.json").read_text())
    metric = METEOR(paraphrases=path)
    check(metric, wmt17(human_data), expected["paraphrase"], expected["corpus"]["paraphrase"])


def test_languages_without_a_stemmer_or_spaces() -> None:
    assert METEOR(language="cs").stages == ("exact",)
    assert METEOR(language="zh").alignment("我喜欢猫", "我喜欢狗").chunks == 1
    assert METEOR(language="cz").parameters == METEOR(language="cs").parameters


def test_missing_wordnet_error_names_the_alternatives(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingResourceError("run tertium setup install wordnet")

    monkeypatch.setattr(module, "load_wordnet", missing)
    segment = [Segment("a cat", references=("the cat",))]
    with pytest.raises(MissingResourceError, match=r"install wordnet.*meteor:synonyms=false"):
        METEOR().score(segment)
    assert METEOR(synonyms=False).score(segment).system > 0
    assert METEOR(language="de").score(segment).system > 0


def test_missing_or_invalid_table_raises_an_error(tmp_path: Path) -> None:
    segment = [Segment("a cat", references=("the cat",))]
    with pytest.raises(MissingResourceError, match="nowhere"):
        METEOR(paraphrases=str(tmp_path / "nowhere.gz")).score(segment)
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(b"0.5\nphrase\nother\n" * 9)[:-12])
    with pytest.raises(DataError, match="cannot be read"):
        METEOR(paraphrases=str(broken)).score(segment)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("language=english", "language=english is not supported"),
        ("language=xx", "language=xx is not supported"),
        ("language=jp", "language=jp is not supported"),
        ("beam=0", "beam must be at least 1"),
        ("alpha=2", "alpha must be from 0 to 1"),
    ],
)
def test_invalid_settings_raise_an_error(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_metric(f"meteor:{spec}")


def test_too_many_paraphrases_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW_WORD_PAIRS", 0)
    table = tmp_path / "table"
    table.write_text("0.5\ntook part\nparticipated\n0.5\nparticipated\ntook part\n")
    metric = METEOR(paraphrases=str(table))
    texts = ("he took part and took part", "he participated")
    words = [metric.tokens(text) for text in texts]
    phrases = load_paraphrases(str(table))
    assert len(list(phrases.find_matches(*words))) == 4
    segment = Segment(texts[0], references=(texts[1],))
    scores = metric.score([segment])
    assert "too many paraphrases, left out" not in scores.warnings
    monkeypatch.setattr("tertium.text.length_limits.MAX_PARAPHRASE_PAIRS", 0)
    bounded = metric.score([segment])
    assert bounded.warnings["too many paraphrases, left out"] == 1
    assert bounded.system == METEOR().score([segment]).system < scores.system


def test_texts_with_too_many_matches_are_counted() -> None:
    key, metric = "long text, frequent words matched nearby only", METEOR(synonyms=False, beam=1)
    short = Segment("word " * 390 + "a", references=("word " * 400,))
    rare_words = " ".join(str(n) for n in range(500))
    different = Segment(rare_words + " word", references=(rare_words + " a",))
    assert key not in metric.score([short, different]).warnings
    long = Segment("word " * 450 + "a", references=("word " * 420,))
    assert metric.score([short, different, long]).warnings[key] == 1


def test_signature_contains_the_settings(table: str) -> None:
    scores = METEOR(paraphrases=table).score([Segment("a", references=("a",))])
    assert scores.signature.startswith(
        "METEOR|nrefs:1|lang:en|case:lc|tok:meteor|stages:exact+stem+synonym+paraphrase"
        "|params:0.85/0.2/0.6/0.75|beam:40|paraphrases:"
    )
