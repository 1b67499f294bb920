"""A result with its slices, as commands print and write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tertium.core.atomic import PathLike
from tertium.core.result import Result, Table, make_page
from tertium.evaluation.significance_options import SignificanceTests, Test
from tertium.evaluation.system_scores import Evaluation
from tertium.files.text_inputs import column_names
from tertium.metrics.base.metric import Metric

if TYPE_CHECKING:
    from tertium.evaluation.slice_scores import Slices


RESULT_FILES = (".json", ".md", ".tex", ".html")


@dataclass(frozen=True, eq=False)
class SlicedResult(Result):
    """An evaluation or comparison with its slices by several columns.

    A page shows significance tests, and explanations of the metrics. `segments` tells whether
    records have the scores of segments, and `is_stored` whether these also have a hash of sources
    and references, which a later test with stored scores compares.
    """

    results: Evaluation
    metrics: Sequence[Metric] = ()
    tests: SignificanceTests = field(default_factory=SignificanceTests)
    segments: bool = True
    is_stored: bool = False

    @cached_property
    def slices(self) -> list[Slices]:
        """The results by each column; slices are tested by randomization by default."""
        if not self.tests.by:
            return []
        from tertium.evaluation.slice_scores import slice_results

        test: Test = "bootstrap" if self.tests.paired_bs else "randomization"
        return [
            slice_results(self.results, column, test=test, resamples=self.tests.resamples)
            for column in column_names(self.tests.by)
        ]

    def tables(self) -> list[Table]:
        """Return the tables of the results and of each column."""
        return [*self.results.tables(), *self.slice_tables()]

    def slice_tables(self) -> list[Table]:
        """Return the tables of each column."""
        return [table for own in self.slices for table in own.tables()]

    def file_table(self, suffix: str = "") -> Table:
        """Return the table of the results without slices."""
        return self.results.file_table(suffix)

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the results, then those of the slices."""
        records = self.results.records(segments=self.segments)
        if self.segments and self.is_stored:
            inputs = self.results.testset.hash_inputs()
            records = [{**record, "inputs": inputs} for record in records]
        return records + [record for own in self.slices for record in own.records()]

    def plain_records(self, *, segments: bool) -> Any:
        """Return the records to print; a single one as an object, as sacrebleu does."""
        records = self.results.records(segments=segments)
        records += [record for own in self.slices for record in own.records()]
        return records[0] if len(records) == 1 else records

    def write(self, *paths: PathLike) -> None:
        """Write files; a page compares the systems and explains scores."""
        for path in paths:
            if not str(path).endswith(".html"):
                super().write(path)
                continue
            from tertium.evaluation.comparison import Comparison, add_significance

            if isinstance(self.results, Comparison):
                tested = self
            else:
                comparison = add_significance(self.results, seed=self.tests.seed)
                tested = replace(self, results=comparison)
            page = make_page("scores", tested.results, self.metrics, slices=tested.slices)
            page.write(path)

    def slice_table(self) -> Table:
        """Return all slices as one table; of several columns, the first cells name them."""
        tables = self.slice_tables()
        if len(tables) == 1:
            return tables[0]
        joined: dict[str, list[Any]] = {}
        for table in tables:
            (by, names), *remaining = table.values().items()
            joined.setdefault("by", []).extend([by] * len(names))
            joined.setdefault("slice", []).extend(names)
            for name, values in remaining:
                joined.setdefault(name, []).extend(values)
        return Table.from_values(joined)
