"""Two settings of a metric that score differently have different signatures."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tertium.core.segment import Segment
from tertium.metrics.base.metric import Metric
from tertium.metrics.lexical.bleu_metric import BLEU
from tertium.metrics.lexical.chrf_metric import CHRF
from tertium.metrics.lexical.meteor_metric import METEOR
from tertium.metrics.lexical.nist_metric import NIST
from tertium.metrics.lexical.ter_metric import TER

SEGMENTS = [
    Segment("The cats, sat on A mat (again) 漢字", None, ("the cat sat on the mat, again 漢 字",)),
    Segment("Hello world of dogs!", None, ("hello World of dog 's",)),
    Segment("yes no", None, ("no yes",)),
]
VALUES: dict[str, tuple[Any, ...]] = {
    "tokenize": ("13a", "char", "zh", "intl", "none"),
    "smooth_method": ("exp", "floor", "add-k", "none"),
    "smooth_value": (None, 0.1, 0.101, 0.5, 2.0),
    "effective_order": (None, True, False),
    "max_ngram_order": (1, 2, 3, 4, 5),
    "char_order": (1, 5, 6),
    "word_order": (0, 1, 2, 3),
    "beta": (1, 2, 3, 0.5),
    "order": (1, 2, 5),
    "language": ("en", "de", "fi"),
    "alpha": (None, 0.2, 0.21),
    "gamma": (None, 0.2, 0.21),
    "delta": (None, 0.2, 0.21),
    "beam": (1, 40),
    "paraphrases": (None,),
}
STARTS: dict[str, Metric] = {
    "bleu": BLEU(),
    "bleu floor": BLEU(smooth_method="floor"),
    "bleu add-k": BLEU(smooth_method="add-k"),
    "chrf": CHRF(),
    "chrf eps": CHRF(eps_smoothing=True),
    "ter": TER(),
    "ter asian": TER(normalized=True),
    "nist": NIST(),
    "meteor": METEOR(synonyms=False),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_another_score_implies_another_signature(start: Any) -> None:
    for field in dataclasses.fields(start):
        scored: dict[str, list[float]] = {}
        for value in VALUES.get(field.name, (True, False)):
            result = dataclasses.replace(start, **{field.name: value}).score(SEGMENTS)
            scores = [result.system, *result.segments.tolist()]
            expected = scored.setdefault(result.signature, scores)
            assert expected == scores, f"{field.name}={value!r} has the signature of another score"


def test_default_settings_keep_the_signature_of_sacrebleu() -> None:
    assert "|order:" not in BLEU().score(SEGMENTS).signature
    assert "|beta:" not in CHRF().score(SEGMENTS).signature
    assert "smooth:floor[0.10]" in BLEU(smooth_method="floor").score(SEGMENTS).signature
