"""Specs are parsed, formatted and round-trip; errors suggest fields and explain values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertium.core.errors import UsageError
from tertium.core.fields import build_dataclass, format_spec, split_spec
from tertium.core.segment import Segment
from tertium.metrics.base.loading import load_metric, load_metrics
from tertium.metrics.base.scorer import format_signature
from tertium.metrics.lexical.bleu_metric import BLEU
from tertium.metrics.lexical.chrf_metric import CHRF


@dataclass(frozen=True, kw_only=True)
class Sample:
    text: str = "plain"
    count: int = 3
    ratio: float = 0.5
    flag: bool = False
    layer: int | None = None
    mode: Literal["mean", "best"] = "best"
    parts: tuple[str, ...] = ()


samples = st.builds(
    Sample,
    text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    count=st.integers(),
    ratio=st.floats(allow_nan=False, allow_infinity=False),
    flag=st.booleans(),
    layer=st.none() | st.integers(),
    mode=st.sampled_from(["mean", "best"]),
    parts=st.lists(
        st.sampled_from(["use", "minilm@2+4", "chrf++", "chrf:a=1,b=c+d", "", "[+]", "[", "]"])
        | st.text(st.sampled_from('a+[]\\", ='), max_size=5)
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        max_size=4,
    ).map(tuple),
)


@given(samples)
def test_a_formatted_spec_rebuilds_its_object(sample):
    name, fields = split_spec(format_spec("sample", sample))
    assert (name, build_dataclass(Sample, name, fields)) == ("sample", sample)


@given(st.text(max_size=30))
def test_any_text_is_a_spec_or_a_usage_error(text):
    try:
        name, fields = split_spec(text)
    except UsageError:
        return
    assert isinstance(name, str)
    assert all(isinstance(value, str) for value in fields.values())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("use+minilm@4+glove", ("use", "minilm@4", "glove")),
        ("[chrf++]+bleu", ("chrf++", "bleu")),
        ("glove+[minilm@2+4]", ("glove", "minilm@2+4")),
        ("[use]+file/a[1].txt", ("use", "file/a[1].txt")),
    ],
)
def test_a_list_item_with_a_plus_is_in_brackets(text, parts):
    assert build_dataclass(Sample, "sample", {"parts": text}) == Sample(parts=parts)


@pytest.mark.parametrize("text", ["chrf+++bleu", "bleu+chrf++", "+bleu", "[bleu", "[bleu]x"])
def test_an_invalid_list_is_explained(text):
    with pytest.raises(UsageError, match=r"such as \[chrf\+\+\]\+bleu"):
        build_dataclass(Sample, "sample", {"parts": text})


def test_defaults_and_keywords():
    assert format_spec("sample", Sample()) == "sample"
    assert format_spec("sample", Sample(flag=True, layer=4)) == "sample:flag=true,layer=4"
    assert load_metric("bleu:smooth-method=floor") == load_metric("bleu:smooth_method=floor")
    assert load_metric("bleu", smooth_value=None) == load_metric("bleu")
    assert load_metric("bleu", smooth_method="floor", smooth_value=1).spec.endswith("value=1.0")
    assert load_metric("chrf", word_order=2) == load_metric("chrf++")
    assert load_metric("chrf++:lowercase=true").spec == "chrf:word_order=2,lowercase=true"
    swept = [load_metric("chrf", word_order=order).spec for order in np.arange(1, 3)]
    assert swept == ["chrf:word_order=1", "chrf:word_order=2"]
    assert load_metric("bleu", lowercase=np.bool_(True)).spec == "bleu:lowercase=true"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("blue", "did you mean 'bleu'"),
        ("", "unknown metric"),
        ("bleu:tokeniz=13a", "did you mean 'tokenize'"),
        ("bleu:smooth_method=expo", "did you mean 'exp'"),
        ("bleu:lowercase=maybe", "neither true nor false"),
        ("bleu:max_ngram_order=four", "not a number"),
        ("bleu:lowercase", "expected field=value"),
        ("bleu:lowercase=true,lowercase=false", "given twice"),
        ("bleu:tokenize=13b", "did you mean '13a'"),
        ("bleu:max_ngram_order=0", "from 1 to 100"),
        ("chrf:char_order=0", "at least one of them must be positive"),
    ],
)
def test_an_invalid_spec_is_explained(spec, message):
    with pytest.raises(UsageError, match=message):
        load_metric(spec)


@pytest.mark.parametrize(("name", "fields", "message"), [
    ("bleu", {"lowercase": "no"}, "lowercase='no': expected True or False"),  # was yes
    ("chrf", {"word_order": 2.5}, "word_order=2.5: expected a whole number"),
    ("chrf", {"word_order": True}, "word_order=True: expected a whole number"),
    ("chrf", {"word_order": "2"}, "word_order='2': expected a whole number"),
    ("chrf", {"beta": "2"}, "beta='2': expected a whole number"),
    ("chrf", {"beta": 10**400}, "beta must be from 0 to 1000, not 1000"),  # too large for a float
    ("chrf", {"bta": 2}, "field of chrf 'bta': did you mean 'beta'"),
    ("bleu", {"tokenize": None}, "tokenize=None: expected a text"),
    ("sss", {"lp": ("de", "en")}, "expected a text"),
    ("tertium-multi", {"scale": "MQM"}, "scale='MQM': expected 'da' or 'mqm'"),  # was da
    ("sss", {"references": "max"}, "references='max': expected 'best' or 'mean'"),  # was mean
    ("rte-r", {"groups": "alignment"}, "expected a list, each item a text"),
])  # fmt: skip
def test_field_types_are_checked_in_python(name, fields, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        load_metric(name, **fields)


def test_equal_metrics_have_equal_specs_and_signatures():
    segments = [Segment("a cat", references=("a cat sat",))]
    for first, second, spec in (
        (load_metric("chrf"), load_metric("chrf:beta=2.0"), "chrf"),
        (CHRF(beta=3), CHRF(beta=3.0), "chrf:beta=3"),
        (BLEU(smooth_value=2), BLEU(smooth_value=2.0), "bleu:smooth_value=2.0"),
    ):
        assert first == second
        assert first.spec == second.spec == spec
        assert format_signature(first, segments) == format_signature(second, segments)
    with pytest.raises(UsageError, match="metric 'chrf' is given twice"):
        load_metrics(["chrf", "chrf:beta=2.0"])
