"""Find systems whose translations equal the reference too often to be a fair result.

A good system equals the reference in few segments: in WMT17 and WMT18 in at most 4 %, and where
segments are short, other systems do too. Many more equal segments come from a wrong file, from a
model that was trained on the test set, or from a reference that was made from this system's output.
"""

from __future__ import annotations

from statistics import median

from tertium.data.testset import TestSet

MIN_COPIES = 10  # segments
MIN_SHARE = 0.25  # of the segments
MIN_SHARE_ALONE = 0.5  # without another system to compare with
MIN_RATIO = 4  # to the median of the other systems
NEARLY_ALL = 0.9  # whatever other systems have


def find_reference_copies(testset: TestSet) -> dict[str, str]:
    """Return systems that equal the reference in far too many segments, with a sentence on each.

    Texts are compared without white space around them, with any of the references. A system is
    named if at least 10 segments are equal, and these are at least 25 % of the segments and four
    times the median of the other systems (without others, 50 %). 90 % are always enough.

    >>> texts = [f"sentence {n}" for n in range(40)]
    >>> systems = {"old": [f"a {text}" for text in texts], "new": texts}
    >>> [*find_reference_copies(TestSet.from_lists(systems, references=texts))]
    ['new']
    """
    counts = {
        system: sum(
            bool(segment.hypothesis.strip())
            and segment.hypothesis.strip() in map(str.strip, segment.references)
            for segment in testset.segments(system)
        )
        for system in testset.systems
    }
    sentences: dict[str, str] = {}
    size = len(testset)
    for system, count in counts.items():
        other_shares = [counts[other] / size for other in counts if other != system]
        least = MIN_SHARE_ALONE
        if other_shares:
            least = min(NEARLY_ALL, max(MIN_SHARE, MIN_RATIO * median(other_shares)))
        if count >= MIN_COPIES and count >= least * size:
            sentences[system] = (
                f"{count:,} of {size:,} translations of {system} equal the reference: rule out a "
                "wrong file and training on the test set before using its scores"
            )
    return sentences
