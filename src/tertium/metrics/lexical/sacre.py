"""The bridge to sacrebleu: its tokenizers and match statistics, each distinct pair once.

sacrebleu computes a row of counts for a hypothesis against its references and sums the rows. We
take its tokens, and where arrays do not count them the rows through its own functions, so that
scores are its scores, but share the work on references and on repeated outputs among all systems
of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from tertium.arrays import FloatArray
from tertium.errors import MissingResourceError
from tertium.metrics.base.odd_texts import leave_tokenized
from tertium.runtime import task
from tertium.segment import Segment
from tertium.text.scripts import runs_on

TOKENIZER_PACKAGES: Mapping[str, str] = {
    "ja-mecab": "sacrebleu[ja]",
    "ko-mecab": "sacrebleu[ko]",
    **dict.fromkeys(("spm", "flores101", "flores200", "spBLEU-1K"), "sentencepiece"),
}
# what sacrebleu takes where it is told the target language and no tokenizer
TOKENIZERS_BY_LANGUAGE: Mapping[str, str] = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
LONGEST = 100  # n-grams that can be asked for: hardly a longer one is ever shared
SPLIT_AT_BLANKS = frozenset({"13a", "intl", "none"})  # tokenizers that know no other words


def count_unsplit(segments: Sequence[Segment]) -> dict[str, int]:
    """A warning of references whose words a metric that goes by blanks does not see, if any."""
    count = sum(any(map(runs_on, segment.references)) for segment in segments)
    return {"no blanks to split words at": count} if count else {}


def warn_by_tokenizer(
    counts: Mapping[str, int], segments: Sequence[Segment], name: str
) -> dict[str, int]:
    """The warnings of a metric as its tokenizer changes them: without any, texts should be cut."""
    unsplit = count_unsplit(segments) if name in SPLIT_AT_BLANKS else {}
    return {**(leave_tokenized(counts) if name == "none" else counts), **unsplit}


def match_statistics(sacre: Any, segments: Sequence[Segment], title: str) -> FloatArray:
    """sacrebleu's statistics of each segment, (n, k), computing each distinct segment once."""
    places: dict[tuple[str, ...], dict[str, list[int]]] = {}
    for n, segment in enumerate(segments):
        places.setdefault(segment.references, {}).setdefault(segment.hypothesis, []).append(n)
    rows: list[list[float]] = [[] for _ in segments]
    with task(title, total=len(segments)) as advance:
        for references, hypotheses in places.items():
            info = sacre._extract_reference_info([*map(sacre._preprocess_segment, references)])
            for hypothesis, equal in hypotheses.items():
                text = sacre._preprocess_segment(hypothesis)
                row = sacre._compute_segment_statistics(text, info)
                for n in equal:
                    rows[n] = row
            advance(sum(map(len, hypotheses.values())))
    return np.array(rows, dtype=np.float64)


@lru_cache(maxsize=16, typed=True)
def load_sacre_bleu(**settings: Any) -> Any:
    """sacrebleu's BLEU, one for all who ask for these settings: its tokenizer may be a model."""
    from sacrebleu.metrics.bleu import BLEU as SacreBLEU

    with explain_tokenizer(settings["tokenize"]):
        return SacreBLEU(force=True, **settings)


@contextmanager
def explain_tokenizer(name: str) -> Iterator[None]:
    """Say how to come by what a tokenizer of sacrebleu lacks while it is made."""
    try:
        yield
    except (ImportError, RuntimeError):
        package = TOKENIZER_PACKAGES.get(name, "sacrebleu")
        raise MissingResourceError(
            f"tokenize={name} needs a package that is not installed: run pip install '{package}', "
            "or choose another tokenizer, such as tokenize=char"
        ) from None
    except (OSError, SystemExit) as error:
        raise MissingResourceError(
            f"tokenize={name} needs a model that sacrebleu fetches from the network, which failed "
            f"({error}): run it once with a network, or choose another tokenizer"
        ) from None


def sacre_signature(sacre: Any) -> Mapping[str, str]:
    """sacrebleu's own signature without the parts that tertium prints itself."""
    sacre.num_refs = 1
    info = sacre.get_signature().info
    names = {True: "yes", False: "no"}
    fields = {
        key: names.get(value, value) if isinstance(value, bool) else str(value)
        for key, value in info.items()
        if value is not None and key not in ("nrefs", "version")
    }
    return {**fields, "sacrebleu": info["version"]}
