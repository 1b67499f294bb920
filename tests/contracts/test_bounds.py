"""What one line may cost: beyond a bound something is left out, and what is left out is counted.

Nothing is timed: a bound is a number of pieces, words or cells.
"""

from __future__ import annotations

import random
from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest
from tests.laws.trial import Subject, subjects
from tests.short_windows import short_windows

from tertium.encoders.encoder import load_encoder
from tertium.errors import MissingResourceError, ModelError
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.ranker import load_ranker
from tertium.metrics.lexical.meteor import METEOR
from tertium.segment import Segment
from tertium.text.length_limits import MAX_ENCODED_TOKENS

WORDS = "the parliament rejected a new budget on Tuesday".split()
BOOK = " ".join(WORDS[place * place % len(WORDS)] for place in range(5_000))
LONG = Segment(BOOK, "Das Parlament lehnte ab.", (" ".join(WORDS),))
OTHER = " ".join(random.Random(1).sample(BOOK.split(), 5_000))
REPEATED = " ".join(["the"] * 5_000)
# What these read grows with the line, and what they keep with it: nothing is cut, nothing counted.
WHOLE = (
    "bleu",
    "bleu-r",
    "chrf",
    "chrf++",
    "chrfpp",
    "meteor",
    "meteor-r",
    "mt-r",
    "nist",
    "nist-r",
    "ter",
    "ter-r",
)
ALIGNED = cache(METEOR.alignment)  # for all metrics that read it
CUTS = ("truncated text", "text too long to parse whole, cut", "too many paraphrases, left out")
ENCODED = ("bertscore", "wmd", "sss", "esim", "svr", "tertium-small", "bertscore:encoder=glove")


@pytest.mark.parametrize("subject", subjects(), ids=lambda s: s.spec.rpartition("/")[2])
def test_a_line_of_five_thousand_words_has_a_score(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends, in a number; whatever cannot read such a line whole counts it as cut."""
    monkeypatch.setattr(METEOR, "alignment", ALIGNED)
    name = subject.spec.rpartition("/")[2]
    with short_windows() if name == "tertium-multi" else nullcontext():
        try:
            loaded = subject.loaded
            segments = [Segment(BOOK, OTHER, (OTHER,)), Segment(REPEATED, OTHER, (OTHER,))]
            if subject.kind == "ranker":
                values = loaded.prefer(segments[:1], segments[1:])
            else:
                twice = name in WHOLE and not name.endswith("-r")  # which read the same
                values = loaded.score(segments[: 1 + twice]).segments
        except (MissingResourceError, ModelError) as error:
            pytest.skip(str(error))
        assert np.isfinite(values).all()
        assert (name in WHOLE) != any(loaded.warnings(segments).get(cut) for cut in CUTS)


@pytest.mark.parametrize("spec", ENCODED)
def test_a_cut_is_counted(spec: str) -> None:
    assert load_metric(spec).warnings([LONG])["truncated text"] == 1


def test_a_ranker_counts_what_its_metrics_cut() -> None:
    counts = load_ranker("pairwise").warnings([LONG, Segment("", None, ("a",))])
    assert counts == {"empty hypothesis": 1, "truncated text": 1}
    assert load_ranker("rte-r").warnings([LONG])["text too long to parse whole, cut"] == 1


@pytest.mark.parametrize("spec", ["glove", "use"])
def test_an_encoder_without_a_length_reads_so_many_pieces(spec: str) -> None:
    encoder = load_encoder(spec)
    assert [len(pieces) for pieces in encoder.tokenize([BOOK])] == [MAX_ENCODED_TOKENS]
    assert encoder.count_truncated([BOOK, "a cat"]) == 1


def test_windows_end_with_the_bound() -> None:
    encoder = load_encoder("minilm", long="window")
    assert [len(pieces) for pieces in encoder.tokenize([BOOK])] == [MAX_ENCODED_TOKENS]
    assert encoder.count_truncated([BOOK, " ".join(WORDS * 100)]) == 1


@pytest.mark.parametrize("spec", ["bertscore", "esim", "tertium-small"])
def test_a_text_of_unknown_pieces_is_counted(spec: str) -> None:
    one = Segment("x" * 5_000, "Hallo.", ("y" * 5_000,))
    opaque = "text of unknown pieces only"
    assert load_metric(spec).warnings([one])[opaque] == 2
    assert opaque not in load_metric(spec).warnings([Segment("a cat", "Hallo.", ("a cat",))])
