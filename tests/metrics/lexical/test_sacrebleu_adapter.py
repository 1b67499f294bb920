"""BLEU, chrF and TER equal sacrebleu exactly, segment and corpus, on any input it accepts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from sacrebleu.metrics.chrf import CHRF as SacreChrF
from sacrebleu.metrics.ter import TER as SacreTER
from tests.gallery import ALL, BLANKS

from tertium.core.errors import MissingResourceError, UsageError
from tertium.core.segment import Segment
from tertium.metrics.base.loading import load_metric
from tertium.metrics.lexical import bleu_metric, chrf_metric
from tertium.metrics.lexical.bleu_metric import BLEU
from tertium.metrics.lexical.chrf_metric import CHRF
from tertium.metrics.lexical.sacrebleu_adapter import load_sacrebleu_bleu, sacrebleu_statistics
from tertium.metrics.lexical.ter_metric import TER
from tertium.text import ngram_overlap

words = st.lists(
    st.sampled_from(
        ["a", "b", "B", "c.", "1.5", "3-4", "it's", "&amp;", ",", "Ü", "漢字", "カ", "("]
    ),
    max_size=9,
)
texts = words.map(" ".join) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@st.composite
def corpora(draw: st.DrawFn) -> list[Segment]:
    # the mean of three equal lengths may differ in the last bit between Python versions
    count = draw(st.sampled_from([1, 2, 4]))
    text = texts | st.sampled_from(ALL)
    row = st.tuples(text, st.lists(text, min_size=count, max_size=count).map(tuple))
    return [Segment(h, None, r) for h, r in draw(st.lists(row, min_size=1, max_size=6))]


# symbols counted at once, bits of a key (few, so that alphabets do not fit), segments at once
LIMITS = st.tuples(
    st.sampled_from([1 << 15, 7]), st.sampled_from([64, 12]), st.sampled_from([1 << 14, 2])
)


@contextmanager
def small_limits(limits: tuple[int, int, int]) -> Iterator[None]:
    with (
        mock.patch.object(ngram_overlap, "CHUNK_SYMBOLS", limits[0]),
        mock.patch.object(ngram_overlap, "KEY_BITS", limits[1]),
        mock.patch.object(bleu_metric, "BLOCK_SEGMENTS", limits[2]),
    ):
        yield


def streams(segments: list[Segment]) -> list[list[str]]:
    return [list(column) for column in zip(*(s.references for s in segments), strict=True)]


@settings(max_examples=60, deadline=None)
@given(
    corpora(),
    st.builds(
        BLEU,
        smooth_method=st.sampled_from(["exp", "floor", "add-k", "none"]),
        smooth_value=st.none() | st.sampled_from([0.01, 0.5, 2.0]),
        effective_order=st.sampled_from([None, True, False]),
        max_ngram_order=st.integers(1, 5),
        lowercase=st.booleans(),
        tokenize=st.sampled_from(["13a", "none", "char", "intl", "zh"]),
    ),
    st.sampled_from([0, bleu_metric.MIN_ARRAY_SEGMENTS]),  # segments from which on arrays are used
    LIMITS,
)
def test_bleu_equals_sacrebleu_to_the_last_bit(
    segments: list[Segment], metric: BLEU, many: int, limits: tuple[int, int, int]
) -> None:
    def peer(effective: bool) -> SacreBLEU:
        return SacreBLEU(
            lowercase=metric.lowercase,
            tokenize=metric.tokenize,
            force=True,
            smooth_method=metric.smooth_method,
            smooth_value=metric.smooth_value,
            max_ngram_order=metric.max_ngram_order,
            effective_order=effective,
        )

    with small_limits(limits), mock.patch.object(bleu_metric, "MIN_ARRAY_SEGMENTS", many):
        scores = metric.score(segments)
    corpus = peer(bool(metric.effective_order))
    hypotheses = [s.hypothesis for s in segments]
    assert scores.system == corpus.corpus_score(hypotheses, streams(segments)).score
    single = peer(metric.effective_order is not False)
    assert scores.segments.tolist() == [
        single.sentence_score(s.hypothesis, list(s.references)).score for s in segments
    ]


@settings(max_examples=60, deadline=None)
@given(
    corpora(),
    st.builds(
        CHRF,
        char_order=st.integers(1, 6),
        word_order=st.integers(0, 2),
        beta=st.integers(1, 3),
        lowercase=st.booleans(),
        whitespace=st.booleans(),
        eps_smoothing=st.booleans(),
    ),
    st.sampled_from([-1, chrf_metric.SHORT_CHARACTERS]),  # longest text without arrays
    LIMITS,
)
def test_chrf_equals_sacrebleu_to_the_last_bit(
    segments: list[Segment], metric: CHRF, short: int, limits: tuple[int, int, int]
) -> None:
    peer = SacreChrF(
        char_order=metric.char_order,
        word_order=metric.word_order,
        beta=metric.beta,
        lowercase=metric.lowercase,
        whitespace=metric.whitespace,
        eps_smoothing=metric.eps_smoothing,
    )
    with small_limits(limits), mock.patch.object(chrf_metric, "SHORT_CHARACTERS", short):
        scores = metric.score(segments)
    hypotheses = [s.hypothesis for s in segments]
    assert scores.system == peer.corpus_score(hypotheses, streams(segments)).score
    assert scores.segments.tolist() == [
        peer.sentence_score(s.hypothesis, list(s.references)).score for s in segments
    ]


TER_OPTIONS = st.fixed_dictionaries(
    {name: st.booleans() for name in ("normalized", "no_punct", "asian_support", "case_sensitive")}
)


@settings(max_examples=60, deadline=None)
@given(corpora(), TER_OPTIONS)
def test_ter_equals_sacrebleu_exactly(segments: list[Segment], fields: dict[str, bool]) -> None:
    peer = SacreTER(**fields)
    scores = TER(**fields).score(segments)
    hypotheses = [s.hypothesis for s in segments]
    assert scores.system == peer.corpus_score(hypotheses, streams(segments)).score
    assert scores.segments.tolist() == [
        peer.sentence_score(s.hypothesis, list(s.references)).score for s in segments
    ]


@pytest.mark.parametrize(
    ("hypothesis", "references", "expected"),
    [  # sacrebleu's arithmetic, by hand
        ("", ("",), 0.0),
        ("a b", ("",), 100.0),
        ("", ("a b",), 100.0),
        ("a", ("", "a b c"), 100 * (1 / 1.5)),
        ("a b c d", ("a",), 300.0),
        ("x", ("x",), 0.0),
    ],
)
def test_empty_or_short_texts(
    hypothesis: str, references: tuple[str, ...], expected: float
) -> None:
    assert TER().sentence_score(hypothesis, references) == expected
    assert SacreTER().sentence_score(hypothesis, references).score == expected


def test_statistics_count_the_edits_of_the_first_best_reference() -> None:
    metric = TER()
    # The second reference needs one shift, the third one substitution: the second comes first.
    row = metric.statistics([Segment("a b c d", references=("x y", "b c d a", "a b c e"))])[0]
    assert dict(zip(metric.columns, row.tolist(), strict=True)) == {
        "edits": 1,
        "reference_length": 10 / 3,
        "insertions": 0,
        "deletions": 0,
        "substitutions": 0,
        "shifts": 1,
        "hypothesis_length": 4,
    }


@pytest.mark.parametrize(("char_order", "word_order"), [(62, 0), (64, 0), (6, 64), (100, 100)])
def test_long_orders_equal_sacrebleu(char_order: int, word_order: int) -> None:
    """N-grams that do not fit a 64-bit key are counted by sacrebleu."""
    left, right = "the cat sat on the mat " * 6, "the cat lay on the mat " * 6
    metric = CHRF(char_order=char_order, word_order=word_order)
    peer = SacreChrF(char_order=char_order, word_order=word_order)
    scores = metric.score([Segment(left, references=(right,)), Segment("", references=(right,))])
    assert scores.segments[0] == peer.sentence_score(left, [right]).score > 0
    assert scores.segments[1] == 0


PEERS = [(BLEU(), SacreBLEU()), (CHRF(word_order=2), SacreChrF(word_order=2)), (TER(), SacreTER())]


@pytest.mark.parametrize(("metric", "peer"), PEERS)
def test_varying_number_of_references_equals_sacrebleu_with_none(metric: Any, peer: Any) -> None:
    segments = [
        Segment("a b c d e", None, ("a b c d",)),
        Segment("a b c d e f", None, ("a b c", "a b c d e")),
    ]
    refs = [["a b c d", "a b c"], [None, "a b c d e"]]
    scores = metric.score(segments)
    assert scores.system == peer.corpus_score([s.hypothesis for s in segments], refs).score
    assert "nrefs:var" in scores.signature


@pytest.mark.parametrize(("metric", "peer"), PEERS)
def test_real_text_scores_equal_sacrebleu(human_data: Path, metric: Any, peer: Any) -> None:
    with gzip.open(human_data / "da/wmt17/de-en.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][::4]
    rows = rows[:40] if metric.name == "ter" else rows
    segments = [Segment(r["hypothesis"], None, (r["reference"],)) for r in rows]
    expected = peer.corpus_score([s.hypothesis for s in segments], streams(segments)).score
    assert metric.score(segments).system == expected


@pytest.mark.parametrize("metric", [CHRF(), CHRF(word_order=2, lowercase=True, whitespace=True)])
def test_chrf_statistics_of_unusual_texts_equal_sacrebleu(metric: CHRF) -> None:
    crowd = "".join(
        map(chr, range(0x4E00, 0x4E00 + 1500))
    )  # more characters than a key can distinguish
    odd = [*ALL, crowd, crowd[::-1], crowd[:1000] * 2, "a\0b", "\0", "".join(BLANKS)]
    segments = [
        Segment(text, None, (odd[n - 1], odd[n // 2], text[1:])) for n, text in enumerate(odd)
    ]
    assert (
        metric.statistics(segments) == sacrebleu_statistics(metric.sacrebleu_metric(), segments, "")
    ).all()


def test_verbose_bleu_equals_sacrebleu() -> None:
    hypotheses, references = ["the cat sat on the mat"], ["the cat sat on a mat"]
    scores = BLEU().corpus_score(hypotheses, [references])
    peer = SacreBLEU().corpus_score(hypotheses, [references])
    assert scores.verbose == peer._verbose


@pytest.mark.parametrize("metric", ["bleu", "nist"])
@pytest.mark.parametrize(
    ("tokenizer", "error", "message"),
    [
        ("ja-mecab", RuntimeError("\nlong advice\n"), r"pip install 'sacrebleu\[ja\]'"),
        ("ko-mecab", RuntimeError("\nlong advice\n"), r"pip install 'sacrebleu\[ko\]'"),
        ("flores200", ImportError("\nlong advice\n"), "pip install 'sentencepiece'"),
        ("flores101", OSError("no network"), "no network"),
    ],
)
def test_missing_tokenizer_resource_gives_installation_advice(
    metric: str, tokenizer: str, error: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **settings: object) -> None:
        raise error

    monkeypatch.setattr("sacrebleu.metrics.bleu.BLEU.__init__", fail)
    load_sacrebleu_bleu.cache_clear()
    with pytest.raises(MissingResourceError, match=message) as caught:
        load_metric(f"{metric}:tokenize={tokenizer}").score([Segment("a", None, ("a",))])
    assert "\n" not in str(caught.value)
    assert tokenizer in str(caught.value)


@pytest.mark.parametrize(
    "spec", ["bleu:max_ngram_order", "chrf:char_order", "chrf:word_order"], ids=str
)
def test_excessive_orders_raise_an_error(spec: str) -> None:
    with pytest.raises(UsageError, match="to 100"):
        load_metric(f"{spec}=99999999999")
    load_metric(f"{spec}=100")
