"""Options for significance tests of systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from tertium.core.arrays import in_open_unit_interval
from tertium.core.errors import UsageError
from tertium.core.options import Option

Test = Literal["bootstrap", "randomization"]
DEFAULT_RESAMPLES: Mapping[str, int] = {"bootstrap": 1000, "randomization": 10_000}


def check_test_options(test: object, alpha: object, resamples: int | None = None) -> None:
    """Raise an error for an unknown test, a significance level outside (0, 1), or bad resamples."""
    if resamples is not None:
        from tertium.core.resampling import check_resamples

        check_resamples(resamples)
    if test not in [*DEFAULT_RESAMPLES]:
        raise UsageError(f"unknown test {test!r}: choose bootstrap or randomization")
    if not in_open_unit_interval(alpha):
        raise UsageError(
            f"alpha, the significance level, must be a number between 0 and 1, got {alpha!r}"
        )


@dataclass(frozen=True, kw_only=True)
class SignificanceTests:
    """Significance tests of systems, also on slices of the segments.

    Attributes
    ----------
    by
        Also show results by document, length, language, domain or any field of the records;
        NAME=FILE reads one label per segment.
    paired_bs
        Test against the first system: paired bootstrap (default in compare).
    paired_ar
        Test against the first system: approximate randomization.
    resamples
        Resamples of tests and intervals (default: 1000 for the bootstrap, 10000 for randomization).
    seed
        Random seed.
    alpha
        Significance level of marks and ranks.
    """

    group: ClassVar[str] = "Statistics"
    by: Annotated[tuple[str, ...], Option(metavar="COLUMN", file="read")] = ()
    paired_bs: bool = False
    paired_ar: bool = False
    resamples: Annotated[
        int | None, Option("--resamples", "--confidence-n", "--paired-bs-n", "--paired-ar-n")
    ] = None
    seed: int = 12345
    alpha: float = 0.05

    def __post_init__(self) -> None:
        if self.paired_bs and self.paired_ar:
            raise UsageError("--paired-bs and --paired-ar: give only one of them")
        check_test_options(self.test, self.alpha, self.resamples)

    @property
    def test(self) -> Test:
        """The paired test; the bootstrap is the default."""
        return "randomization" if self.paired_ar else "bootstrap"

    @property
    def is_requested(self) -> bool:
        """Whether a paired test is requested."""
        return self.paired_bs or self.paired_ar
