"""Options for significance tests of systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from tertium.core.errors import UsageError
from tertium.core.options import Option
from tertium.evaluation.paired_tests import Test, check_test_options
from tertium.evaluation.system_scores import Evaluation
from tertium.files.text_inputs import column_names

if TYPE_CHECKING:
    from tertium.evaluation.slice_scores import Slices


@dataclass(frozen=True, kw_only=True)
class Tests:
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

    def slice(self, results: Evaluation) -> list[Slices]:
        """Slice results by each column; slices are tested by randomization by default."""
        if not self.by:
            return []
        from tertium.evaluation.slice_scores import slice_results

        test: Test = "bootstrap" if self.paired_bs else "randomization"
        return [
            slice_results(results, column, test=test, resamples=self.resamples)
            for column in column_names(self.by)
        ]
