"""The table of laws: operations, their properties, and the subjects they apply to.

A fixed selection of it runs with the tests, and any amount of it at random with `make fuzz`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.laws import field_laws, learning_laws, scoring_laws, showing_laws
from tests.laws.trial import Broken, Subject, Trial

from tertium.data.testset import TestSet
from tertium.errors import MissingInputError, TertiumError

Check = Callable[[Trial], int]
Applies = Callable[[Subject], bool]


@dataclass(frozen=True)
class Law:
    """A property of an operation.

    `check` returns the number of cases and raises `Broken`; `applies` says to whom; `systems` is
    how many systems a test set must have; `costly` laws encode again, run commands or train.
    """

    operation: str
    check: Check
    applies: Applies
    systems: int = 1
    costly: bool = False

    @property
    def name(self) -> str:
        return self.check.__name__.replace("_", " ")

    def __str__(self) -> str:
        return f"{self.operation}: {self.name}"


def is_metric(subject: Subject) -> bool:
    return subject.kind == "metric"


def anyone(subject: Subject) -> bool:
    return True


def scores_independently(subject: Subject) -> bool:
    """Return whether the metric scores segments independently."""
    return is_metric(subject) and not subject.metric.reads_corpus


def is_topped_by_the_reference(subject: Subject) -> bool:
    """Return whether a metric is reference-based and scores segments independently.

    NIST does not: it divides information that the whole set decides by the length of a hypothesis,
    and to leave out a frequent word raises the mean. Nor do settings that a user may choose, such
    as BLEU's full order, which gives 0 to a perfect text of three words.
    """
    return scores_independently(subject) and ":" not in subject.spec


def explains(subject: Subject) -> bool:
    return is_metric(subject) and subject.metric.can_explain


LAWS: tuple[Law, ...] = (
    Law("score", scoring_laws.scores_are_finite, is_metric),
    Law("score", scoring_laws.an_aggregate_is_a_loop, is_metric),
    Law("score", scoring_laws.scoring_again_changes_nothing, is_metric),
    Law("score", scoring_laws.order_changes_nothing, is_metric),
    Law("score", scoring_laws.neighbors_change_nothing, scores_independently),
    Law("score", scoring_laws.duplicates_get_equal_scores, is_metric),
    Law("score", scoring_laws.batches_change_nothing, is_metric, costly=True),
    Law("score", scoring_laws.threads_change_nothing, is_metric, costly=True),
    Law("score", scoring_laws.the_cache_changes_nothing, is_metric, costly=True),
    Law("score", scoring_laws.a_perfect_hypothesis_is_not_beaten, is_topped_by_the_reference),
    Law("score", scoring_laws.empty_hypotheses_are_counted, is_metric),
    Law("score", scoring_laws.a_signature_is_made_of_fields, is_metric),
    Law("score", showing_laws.the_command_scores_as_the_library, is_metric, costly=True),
    Law("score", showing_laws.own_errors_alone, is_metric, costly=True),
    Law("formats", showing_laws.tables_hold_what_the_library_returns, is_metric, costly=True),
    Law("formats", showing_laws.files_hold_what_the_library_returns, is_metric, costly=True),
    Law("formats", showing_laws.texts_come_back_from_a_file, anyone, costly=True),
    Law("compare", showing_laws.comparisons_are_sound, is_metric, systems=2),
    Law(
        "compare",
        showing_laws.the_command_compares_as_the_library,
        is_metric,
        systems=2,
        costly=True,
    ),
    Law("rank", showing_laws.rankings_are_sound, anyone, systems=2),
    Law("rank", showing_laws.the_command_ranks_as_the_library, anyone, systems=2, costly=True),
    Law("explain", showing_laws.explanations_are_sound, explains, costly=True),
    Law("report", showing_laws.reports_are_whole, is_metric, costly=True),
    Law("notebook", showing_laws.displays_are_whole, is_metric, costly=True),
    Law("meta", learning_laws.agreement_is_sound, is_metric, systems=2, costly=True),
    Law("train", learning_laws.training_is_sound, learning_laws.can_learn, systems=2, costly=True),
    Law("specs", scoring_laws.a_spec_rebuilds_it, is_metric),
    Law("specs", field_laws.every_field_round_trips, anyone, costly=True),
)


def law_named(text: str) -> Law:
    """Return the law of this name."""
    return next(law for law in LAWS if str(law) == text)


def try_law(law: Law, subject: Subject, testset: TestSet, seed: int = 0) -> int:
    """Check a law on a subject and a test set; return the number of cases."""
    with TemporaryDirectory() as folder:
        return hold_law(law, Trial(subject, testset, seed, Path(folder)))


def hold_law(law: Law, trial: Trial) -> int:
    """Check a law on a trial; an error for valid texts is a violation too.

    A metric may say that it needs what a set does not have (English references, say); there is
    then nothing to try.
    """
    if not law.applies(trial.subject) or len(trial.testset.systems) < law.systems:
        return 0
    try:
        return law.check(trial)
    except MissingInputError:
        return 0
    except Broken as broken:
        raise Broken(f"{law}, {trial.subject.spec}: {broken}") from None
    except TertiumError as error:
        raise Broken(f"{law}, {trial.subject.spec}: refused whole texts: {error}") from error
    except Exception as error:
        raise Broken(f"{law}, {trial.subject.spec}: {type(error).__name__}: {error}") from error
