"""The table of laws: operations, their properties, and the subjects they apply to.

The tests check a fixed selection of inputs; `make fuzz` checks random ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.laws import field_laws, output_laws, scoring_laws, training_laws
from tests.laws.trial import LawViolation, Subject, Trial

from tertium.core.errors import MissingInputError, TertiumError
from tertium.data.testset import TestSet
from tertium.metrics.base.capabilities import Explains

Check = Callable[[Trial], int]
Applies = Callable[[Subject], bool]


@dataclass(frozen=True)
class Law:
    """A property of an operation.

    `check` returns the number of cases and raises `LawViolation`. `applies` selects the subjects.
    `systems` is the minimum number of systems. Expensive laws encode again, run commands or train.
    """

    operation: str
    check: Check
    applies: Applies
    systems: int = 1
    is_expensive: bool = False

    @property
    def name(self) -> str:
        return self.check.__name__.replace("_", " ")

    def __str__(self) -> str:
        return f"{self.operation}: {self.name}"


def is_metric(subject: Subject) -> bool:
    return subject.kind == "metric"


def any_subject(subject: Subject) -> bool:
    return True


def scores_independently(subject: Subject) -> bool:
    """Return whether the metric scores segments independently."""
    return is_metric(subject) and not subject.metric.reads_corpus


def rates_reference_highest(subject: Subject) -> bool:
    """Return whether a metric is reference-based and scores segments independently.

    NIST is excluded: its information weights depend on the corpus, so leaving out a frequent word
    can raise the score. Variants with other settings are excluded as well: BLEU without effective
    order gives 0 to a perfect text of three words.
    """
    reads_references = is_metric(subject) and subject.metric.required_inputs != {"source"}
    return reads_references and scores_independently(subject) and ":" not in subject.spec


def bounds_scores(subject: Subject) -> bool:
    """Return whether a metric has a worst score; TER is an error rate without a bound."""
    return is_metric(subject) and subject.metric.name != "ter"


def is_ranker(subject: Subject) -> bool:
    return subject.kind == "ranker"


def explains(subject: Subject) -> bool:
    return is_metric(subject) and isinstance(subject.metric, Explains)


LAWS: tuple[Law, ...] = (
    Law("score", scoring_laws.scores_are_finite, is_metric),
    Law("score", scoring_laws.aggregate_equals_loop, is_metric),
    Law("score", scoring_laws.rescoring_gives_equal_scores, is_metric),
    Law("score", scoring_laws.scores_do_not_depend_on_order, is_metric),
    Law("score", scoring_laws.scores_do_not_depend_on_other_segments, scores_independently),
    Law("score", scoring_laws.duplicates_get_equal_scores, is_metric),
    Law("score", scoring_laws.scores_do_not_depend_on_batch_size, is_metric, is_expensive=True),
    Law("score", scoring_laws.scores_do_not_depend_on_threads, is_metric, is_expensive=True),
    Law("score", scoring_laws.scores_do_not_depend_on_cache, is_metric, is_expensive=True),
    Law("score", scoring_laws.reference_scores_highest, rates_reference_highest),
    Law("score", scoring_laws.empty_hypotheses_are_counted, is_metric),
    Law("score", scoring_laws.empty_translations_score_worst, bounds_scores),
    Law("rank", scoring_laws.empty_translations_always_lose, is_ranker),
    Law("score", scoring_laws.signature_is_well_formed, is_metric),
    Law("score", output_laws.score_command_equals_library, is_metric, is_expensive=True),
    Law("score", output_laws.missing_input_is_a_one_line_error, is_metric, is_expensive=True),
    Law("formats", output_laws.printed_tables_equal_library, is_metric, is_expensive=True),
    Law("formats", output_laws.written_files_equal_library, is_metric, is_expensive=True),
    Law("formats", output_laws.texts_survive_a_round_trip, any_subject, is_expensive=True),
    Law("compare", output_laws.comparisons_are_valid, is_metric, systems=2),
    Law(
        "compare",
        output_laws.compare_command_equals_library,
        is_metric,
        systems=2,
        is_expensive=True,
    ),
    Law("rank", output_laws.rankings_are_valid, any_subject, systems=2),
    Law("rank", output_laws.rank_command_equals_library, any_subject, systems=2, is_expensive=True),
    Law("explain", output_laws.explanations_are_valid, explains, is_expensive=True),
    Law("report", output_laws.reports_are_well_formed, is_metric, is_expensive=True),
    Law("notebook", output_laws.notebook_output_is_well_formed, is_metric, is_expensive=True),
    Law("meta", training_laws.agreement_is_valid, is_metric, systems=2, is_expensive=True),
    Law(
        "train",
        training_laws.training_is_valid,
        training_laws.is_trainable,
        systems=2,
        is_expensive=True,
    ),
    Law("specs", scoring_laws.spec_rebuilds_metric, is_metric),
    Law("specs", field_laws.every_field_round_trips, any_subject, is_expensive=True),
)


def find_law(text: str) -> Law:
    """Return the law of this name."""
    return next(law for law in LAWS if str(law) == text)


def check_law_on(law: Law, subject: Subject, testset: TestSet, seed: int = 0) -> int:
    """Check a law on a subject and a test set; return the number of cases."""
    with TemporaryDirectory() as folder:
        return check_law(law, Trial(subject, testset, seed, Path(folder)))


def check_law(law: Law, trial: Trial) -> int:
    """Check a law on a trial; an error for valid texts is a violation too.

    Return 0 if the test set lacks an input of the metric, such as English references.
    """
    if not law.applies(trial.subject) or len(trial.testset.systems) < law.systems:
        return 0
    try:
        return law.check(trial)
    except MissingInputError:
        return 0
    except Exception as error:
        kind = f"{type(error).__name__}: "
        kind = "error for valid texts: " if isinstance(error, TertiumError) else kind
        kind = "" if isinstance(error, LawViolation) else kind
        raise LawViolation(f"{law}, {trial.subject.spec}: {kind}{error}") from error
