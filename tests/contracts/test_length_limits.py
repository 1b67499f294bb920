"""Very long texts: every metric scores them, and truncation is counted in a warning.

Limits are numbers of tokens, words or cells; nothing is timed.
"""

from __future__ import annotations

import random
from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest
from tests.laws.trial import Subject, subjects
from tests.short_windows import short_windows

from tertium.core.errors import MissingResourceError, ModelError
from tertium.core.segment import Segment
from tertium.encoders.encoder import load_encoder
from tertium.metrics.base.ranker import load_ranker
from tertium.metrics.base.text_warnings import count_flags
from tertium.metrics.lexical.meteor_metric import METEOR
from tertium.text.length_limits import MAX_ENCODED_TOKENS

WORDS = "the parliament rejected a new budget on Tuesday".split()
BOOK = " ".join(WORDS[place * place % len(WORDS)] for place in range(5_000))
LONG = Segment(BOOK, "Das Parlament lehnte ab.", (" ".join(WORDS),))
OTHER = " ".join(random.Random(1).sample(BOOK.split(), 5_000))
REPEATED = " ".join(["the"] * 5_000)
# metrics that never truncate a text
UNTRUNCATED = (
    "bleu",
    "bleu-r",
    "checks",
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
CACHED_ALIGNMENT = cache(METEOR.alignment)  # shared by all metrics that use it
TRUNCATION_WARNINGS = (
    "truncated text",
    "text truncated for parsing",
    "too many paraphrases, left out",
)


@pytest.mark.parametrize("subject", subjects(), ids=lambda s: s.spec.rpartition("/")[2])
def test_text_of_five_thousand_words_gets_a_score(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The score is finite; metrics that truncate the text count a warning."""
    monkeypatch.setattr(METEOR, "alignment", CACHED_ALIGNMENT)
    name = subject.spec.rpartition("/")[2]
    with short_windows() if name == "tertium-multi" else nullcontext():
        try:
            loaded = subject.loaded
            segments = [Segment(BOOK, OTHER, (OTHER,)), Segment(REPEATED, OTHER, (OTHER,))]
            if subject.kind == "ranker":
                values = loaded.prefer(segments[:1], segments[1:])
            else:
                # regressions read the same statistics, so one text is enough for them
                has_both = name in UNTRUNCATED and not name.endswith("-r")
                values = loaded.score(segments[: 1 + has_both]).segments
        except (MissingResourceError, ModelError) as error:
            pytest.skip(str(error))
        assert np.isfinite(values).all()
        assert (name in UNTRUNCATED) != any(
            count_flags(loaded.flags(segments)).get(key) for key in TRUNCATION_WARNINGS
        )


def test_ranker_counts_truncation_of_its_metrics() -> None:
    counts = count_flags(load_ranker("pairwise").flags([LONG, Segment("", None, ("a",))]))
    assert counts == {"empty hypothesis": 1, "truncated text": 1}
    assert count_flags(load_ranker("rte-r").flags([LONG]))["text truncated for parsing"] == 1


@pytest.mark.parametrize("spec", ["glove", "use"])
def test_encoder_without_max_length_uses_the_default_limit(spec: str) -> None:
    encoder = load_encoder(spec)
    assert [len(pieces) for pieces in encoder.tokenize([BOOK])] == [MAX_ENCODED_TOKENS]
    assert encoder.find_truncated([BOOK, "a cat"]) == {BOOK}
