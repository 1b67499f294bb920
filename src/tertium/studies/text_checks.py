"""Diagnostics that change texts and score them again: length, bad outputs, references, order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tertium.core.arrays import nan_mean
from tertium.core.errors import DataError
from tertium.core.segment import Segment
from tertium.data.challenge_sets import wrong_language_sentence
from tertium.studies.diagnostic_data import Cell, DiagnosticData, DiagnosticRow
from tertium.text.language_identification import identify_language
from tertium.text.scripts import is_unspaced_script

JOINED = (1, 2, 4, 8)  # numbers of joined segments
GOOD_SHARE = 0.25  # share of translations, by human score, that count as good
MAX_GOOD = 128
MIN_REFERENCES = 10

Rows = dict[str, DiagnosticRow]


def check_length(data: DiagnosticData) -> Rows:
    """Measure the change of the mean score if good translations are joined."""
    cells = data.sample(None)
    least = np.quantile([data.human[data.positions[cell]] for cell, _ in cells], 1 - GOOD_SHARE)
    good = [segment for cell, segment in cells if data.human[data.positions[cell]] >= least]
    longest = max(JOINED)
    segments = good[: min(len(good), MAX_GOOD) // longest * longest]
    if len(segments) < 2 * longest:
        raise DataError(f"fewer than {2 * longest} translations to join")
    spread = data.score([segment for _, segment in data.sample()]).std(axis=1)
    unit = np.where(spread > 0, spread, 1.0)[:, None]
    means = []  # of the longest texts, (metrics, texts)
    for size in JOINED:
        joined = [join_segments(segments[n : n + size]) for n in range(0, len(segments), size)]
        scores = data.score(joined) / unit
        means.append(scores.reshape(len(scores), -1, longest // size).mean(axis=-1))
    names = [str(n) for n in range(means[0].shape[1])]
    return {
        "one segment" if size == 1 else f"{size} segments joined": data.means(own - means[0], names)
        for size, own in zip(JOINED, means, strict=True)
    }


def join_segments(segments: list[Segment]) -> Segment:
    """Join hypotheses, sources, and as many references as all segments have."""

    def join(texts: list[str]) -> str:
        return ("" if is_unspaced_script(texts[0]) else " ").join(texts)

    sources = [segment.source for segment in segments if segment.source is not None]
    references = zip(*(segment.references for segment in segments), strict=False)
    return Segment(
        join([segment.hypothesis for segment in segments]),
        join(sources) if len(sources) == len(segments) else None,
        tuple(join([*texts]) for texts in references),
    )


def check_bad_outputs(data: DiagnosticData) -> Rows:
    """Compare scores of outputs that are not translations with those of real ones."""
    cells = data.sample()
    segments = [segment for _, segment in cells]
    sources = [segment.source or "" for segment in segments]
    first_texts = [segment.hypothesis for segment in segments[:20]]
    languages = [identify_language(" ".join(texts)) for texts in (sources[:20], first_texts)]
    outputs = {
        "empty": [""] * len(cells),
        "fluent but unrelated": [_find_unrelated(cells, n) for n in range(len(cells))],
        "source copied": sources,
        "unrelated, in another language": [
            wrong_language_sentence(n, languages) for n in range(len(cells))
        ],
    }
    if not all(segment.source is not None for segment in segments):
        del outputs["source copied"]
    real = np.sort(data.score(segments), axis=1)
    rows = {}
    for name, texts in outputs.items():
        changed = [replace(s, hypothesis=text) for s, text in zip(segments, texts, strict=True)]
        pairs = zip(real, data.score(changed), strict=True)
        below = np.array([np.searchsorted(own, new, "left") for own, new in pairs])
        rows[name] = data.means(below / len(cells), [item for (_, item), _ in cells])
    return rows


def _find_unrelated(cells: list[tuple[Cell, Segment]], n: int) -> str:
    """Return the next translation of another item."""
    (_, item), segment = cells[n]
    for (_, other_item), other in [*cells[n:], *cells[:n]]:
        if other_item != item and other.hypothesis != segment.hypothesis:
            return other.hypothesis
    raise DataError("all translations are of one item")


def check_references(data: DiagnosticData) -> Rows:
    """Measure Pearson's r with human scores if another text replaces the reference."""
    cells = dict(entry for entry in data.sample() if entry[1].references)
    if len(cells) < MIN_REFERENCES:
        raise DataError("there are no references")
    text_systems = {system for system, _ in data.texts}
    has_text = [system in text_systems for system in data.aligned.systems]
    means = np.where(has_text, nan_mean(data.human), np.nan)
    best = data.aligned.systems[int(np.nanargmax(means))]
    best_outputs = {
        item: s.hypothesis for (system, item), s in data.texts.items() if system == best
    }
    compared = {c: s for c, s in cells.items() if c[0] != best and c[1] in best_outputs} or cells
    references = {"the reference": [s.references for s in compared.values()]}
    for n in range(1, min(len(segment.references) for segment in cells.values())):
        references[f"reference {n + 1} alone"] = [
            s.references[n : n + 1] for s in compared.values()
        ]
    if compared is not cells:
        references["the best system's output"] = [(best_outputs[c[1]],) for c in compared]
    own, half = references["the reference"], len(compared) // 2
    references["the reference of another segment"] = own[half:] + own[:half]
    rows = {}
    for name, texts in references.items():
        changed = [
            replace(s, references=own) for s, own in zip(compared.values(), texts, strict=True)
        ]
        scores = dict(zip(data.metric_names, data.score(changed), strict=True))
        rows[name] = data.agreement(data.make_tables([*compared], scores), "pearson", "none")
    return rows


def check_order(data: DiagnosticData) -> Rows:
    """Measure the largest change of a score in reverse order, and if scored one by one."""
    segments = [segment for _, segment in data.sample(50)]
    batch = data.score(segments)
    backwards = data.score(segments[::-1])[:, ::-1]
    alone = np.concatenate([data.score([segment]) for segment in segments[:10]], axis=1)
    changes = {"in reverse order": batch - backwards, "one by one": batch[:, :10] - alone}
    nothing = np.full((1, len(data.metrics)), np.nan)
    return {
        name: DiagnosticRow(data.metric_names, np.abs(own).max(axis=1), draws=nothing)
        for name, own in changes.items()
    }
