"""Scores, signatures, warnings, error spans and uncertainty are those that were recorded.

`store` explains the golden files in `scores/`, their tolerances, and how to record them again.
Every metric that runs here reads all of `texts.everything()` with source and references, and a
sample with only one of them. Variants of a metric and trained metrics read the sample.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.compat.tiny_comet import FEATURES, save_comet
from tests.contracts.test_trained_models import NAMES, trained
from tests.golden import texts
from tests.golden.store import FOLDER, Rule, check_golden, file_name, is_recording_machine
from tests.laws.trial import Subject, missing_resource, subjects

from tertium.core.errors import TertiumError
from tertium.core.segment import Segment
from tertium.metrics.base.capabilities import can_mark_errors, predict_uncertainty
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.ranker import Ranker
from tertium.metrics.base.text_warnings import kinds_by_segment
from tertium.models.checkpoint import bundled_models_folder

SCORES = FOLDER / "scores"
WITHOUT_NETWORK = {"bleu", "chrf", "chrf++", "ter", "nist", "meteor", "checks"}
SLOW = {"tertium-base", "tertium-multi"}  # these read the sample and one long text
VARIANTS = (
    "bleu:tokenize=zh",
    "bleu:tokenize=char,lowercase=true",
    "bleu:tokenize=intl,smooth_method=floor",
    "bleu:tokenize=none,smooth_method=add-k,max_ngram_order=2",
    "bleu:smooth_method=none,effective_order=false",
    "chrf:char_order=4,beta=1,lowercase=true",
    "chrf:whitespace=true,eps_smoothing=true,word_order=1",
    "ter:normalized=true,no_punct=true,asian_support=true",
    "ter:case_sensitive=true",
    "nist:order=3,tokenize=intl,lowercase=false",
    "meteor:language=de",
    "meteor:language=other,lowercase=false",
    "meteor:synonyms=false,normalise=false",
    "meteor:alpha=0.5,beta=1,gamma=0.3,delta=0.5,beam=3",
    "checks:measure=penalty,lp=de-en",
    "checks:select=numbers+placeholders",
    "tertium-small:scale=mqm,references=mean",
    "tertium-small:length=free",
    "tertium-small:precision=fp32",
    "tertium-multi:scale=mqm,references=mean",
    "tertium-multi:lp=de-en,marks=esa,all_spans=true",
    "tertium-multi:against=source,marks=words",
    "bertscore:encoder=toy,idf=true",
    "bertscore:encoder=minilm,measure=precision,special=false",
    "bertscore:encoder=minilm,rescale=true",
    "bertscore:encoder=e5,centre=none,wrong_language_penalty=0,references=mean",
    "bertr:encoder=minilm,references=mean",
    "sentsim:sentence=smd,token=wmd,combine=plain,encoder=toy",
    "sentsim:normalise=corpus,encoder=e5",
    "sss:encoder=use",
    "wmd:encoder=glove",
    "wmdo:encoder=toy,gamma=0.5",
    "svr:references=mean",
    "esim:references=mean",
)
SUBJECTS = [subject for subject in subjects() if subject.spec != "chrfpp"]  # chrf++ again


@pytest.fixture(params=SUBJECTS, ids=lambda s: Path(s.spec).name)
def subject(request: pytest.FixtureRequest) -> Subject:
    if reason := missing_resource(request.param):
        pytest.skip(reason)
    return request.param


def find_rule(scorer: Metric | Ranker) -> Rule:
    """Return how exactly the scores of a metric are compared."""
    if scorer.name in WITHOUT_NETWORK:
        return "exact"
    return (
        "int8"
        if "tertium-" in repr(scorer) or getattr(scorer, "precision", "") == "int8"
        else "fp32"
    )


def test_scores_of_all_texts(subject: Subject) -> None:
    path = SCORES / f"{file_name(Path(subject.spec).name)}.json"
    if not (path.is_file() or is_recording_machine()):
        pytest.skip("its weights were not installed where scores were recorded")
    if subject.kind == "ranker":
        segments = texts.with_inputs(texts.sample(), "both")
        check_golden(
            path,
            {"both": describe_preferences(subject.ranker, segments)},
            find_rule(subject.ranker),
        )
        return
    metric = subject.metric
    most = texts.sample_with_a_long_text() if metric.name in SLOW else texts.everything()
    found = {
        "both": describe_scores(metric, texts.with_inputs(most, "both")),
        "reference": describe_scores(metric, texts.with_inputs(texts.sample(), "reference")),
        "source": describe_scores(metric, texts.with_inputs(texts.sample(), "source")),
    }
    check_golden(path, found, find_rule(metric))


@pytest.mark.parametrize("spec", VARIANTS)
def test_scores_of_variants(spec: str) -> None:
    if reason := missing_resource(Subject(spec)):
        pytest.skip(reason)
    metric = load_metric(spec)
    found = {"both": describe_scores(metric, texts.with_inputs(texts.sample(), "both"))}
    check_golden(SCORES / f"{file_name(spec)}.json", found, find_rule(metric))


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_trained_metrics(name: str) -> None:
    if name == "tertium-multi-adapted" and not is_recording_machine():
        pytest.skip("trained on int8 states, which differ between kinds of processors")
    model = trained(name)
    segments = texts.with_inputs(texts.sample(), "both")
    describe = describe_scores if isinstance(model, Metric) else describe_preferences
    path = SCORES / f"trained-{file_name(name)}.json"
    check_golden(path, {"both": describe(model, segments)}, find_rule(model))


@pytest.mark.parametrize("kind", FEATURES)
def test_scores_of_comet_checkpoints(kind: str, tmp_path: Path) -> None:
    metric = load_metric("comet", model=str(save_comet(tmp_path / "model", kind)))
    segments = texts.with_inputs(texts.sample(), "both")
    path = SCORES / f"comet-{file_name(kind)}.json"
    check_golden(path, {"both": describe_scores(metric, segments)}, "fp32")


def describe_scores(metric: Metric, segments: Sequence[Segment]) -> dict[str, Any]:
    """Return everything that a metric says about segments, as JSON."""
    try:
        scores = metric.score(segments)
    except TertiumError as error:
        message = str(error).replace(str(bundled_models_folder()), "MODELS")
        return {"error": f"{type(error).__name__}: {message}"}
    kinds = kinds_by_segment(scores.flags, len(segments))
    spans = metric.mark_errors(segments) if can_mark_errors(metric) else [()] * len(segments)
    uncertainty = predict_uncertainty(metric, scores.segments, segments)
    rows = []
    for number, score in enumerate(scores.segments.tolist()):
        row: dict[str, Any] = {"score": score}
        if uncertainty is not None:
            row["uncertainty"] = float(uncertainty[number])
        if kinds[number]:
            row["warnings"] = [*kinds[number]]
        if spans[number]:
            row["spans"] = [
                [s.start, s.end, s.side, s.severity, s.category, s.chance, s.message]
                for s in spans[number]
            ]
        rows.append(row)
    return {
        "signature": hide_versions(scores.signature),
        "system": scores.system,
        "half": float(scores.aggregate(np.arange(len(segments)) % 2)),
        "columns": " ".join(scores.columns),
        "warnings": dict(scores.warnings),
        "verbose": scores.verbose,
        "rows": rows,
    }


def describe_preferences(ranker: Ranker, segments: Sequence[Segment]) -> dict[str, Any]:
    """Return the probability that each segment is better than one with another translation."""
    others = [
        replace(segment, hypothesis=segments[number - 1].hypothesis)
        for number, segment in enumerate(segments)
    ]
    return {
        "signature": hide_versions(ranker.signature(segments)),
        "rows": [{"score": chance} for chance in ranker.prefer(segments, others).tolist()],
    }


def hide_versions(signature: str) -> str:
    """Remove the version of the package and hashes of weights that were not saved."""
    signature = re.sub(r"unsaved-\w+@\w+", "unsaved", signature)
    return re.sub(r"version:[^|]*$", "version:*", signature)


def test_every_golden_file_belongs_to_a_test() -> None:
    names = [Path(subject.spec).name for subject in SUBJECTS]
    names += [*VARIANTS, *(f"trained-{name}" for name in NAMES)]
    names += [f"comet-{kind}" for kind in FEATURES]
    assert {path.stem for path in SCORES.iterdir()} <= {file_name(name) for name in names}
