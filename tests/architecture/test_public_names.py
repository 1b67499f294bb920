"""The public names are pinned, and importing tertium stays light."""

from __future__ import annotations

import subprocess
import sys

import tertium

HEAVY = ("torch", "transformers", "spacy", "sacrebleu", "sklearn", "ot", "scipy", "pyarrow", "ray")


def test_public_names_are_pinned() -> None:
    assert sorted(tertium.__all__) == [
        "AgreementStudy",
        "ChallengeStudy",
        "Comparison",
        "CorpusSummary",
        "Evaluation",
        "Explanation",
        "Judgment",
        "Metric",
        "Preference",
        "Ranker",
        "Ranking",
        "Report",
        "ScoreMatrix",
        "Scores",
        "Segment",
        "SegmentMetric",
        "Span",
        "TertiumError",
        "TestSet",
        "__version__",
        "challenge",
        "compare",
        "explain",
        "load_metric",
        "load_ranker",
        "meta_evaluate",
        "rank",
        "report",
        "score",
        "score_corpus",
        "train",
    ]
    assert all(getattr(tertium, name) is not None for name in tertium.__all__)
    assert len(dir(tertium)) == len({*dir(tertium)})


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_tertium_loads_no_heavy_library() -> None:
    assert not loaded_after("import tertium") & set(HEAVY)


def test_the_command_line_parser_loads_no_heavy_library() -> None:
    assert not loaded_after("import tertium.cli; tertium.cli.make_parser()") & set(HEAVY)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(tertium, "no_such_thing")
