"""The commands `rank` and `rank candidates`: systems, or candidates, by how often they win."""

from __future__ import annotations

import json
from typing import Annotated

from tertium.core.options import Compute, Display, InFile, Option
from tertium.core.result import View
from tertium.data.candidate_lists import read_candidates
from tertium.data.tables import missing_to_null
from tertium.evaluation.metric_choice import load_scorer, target_texts
from tertium.evaluation.ranking import RankedCandidates, rank, recommend_ranker, rerank
from tertium.files.text_inputs import InputFiles
from tertium.metrics.base.judge_run import JudgeConnection
from tertium.metrics.base.ranker import load_ranker

RankerName = Annotated[
    str | None, Option("-m", "--metrics", "--model", metavar="RANKER", group="Metrics")
]


def rank_files(
    inputs: InputFiles,
    compute: Compute,
    judge: JudgeConnection,
    *,
    ranker: RankerName = None,
    sentence_level: Annotated[bool, Option("-sl", "--sentence-level", group="Output")] = False,
) -> View:
    """Rank systems by their mean probability of winning against each other, segment by segment.

    Parameters
    ----------
    ranker
        Ranker or metric (default: pairwise for English references, otherwise tertium-multi).
    sentence_level
        Print a probability for each segment.

    Examples
    --------
    tertium rank -t a.txt b.txt c.txt -r reference.txt
    tertium rank -s source.txt -t a.txt b.txt
    tertium rank -t a.txt b.txt -r reference.txt -m chrf -sl -f tsv
    tertium rank candidates candidates.jsonl > reordered.jsonl

    Notes
    -----
    RANKER is pairwise, pairwise:model=NAME (pairwise-minilm, a larger network; pairwise-published,
    the network of the paper; a folder with your own), or any metric, whose better score wins.
    """
    if ranker:
        load_ranker(ranker)  # fail before files are read
    texts = inputs.read()
    testset, source, target = texts.testset, texts.source_language, texts.target_language
    first = testset.segments(next(iter(testset.systems)))
    spec = ranker or recommend_ranker(first, target)
    ranking = rank(testset, load_scorer(spec, source, target, target_texts(testset)))
    table = ranking.segment_table() if sentence_level else ranking.tables()[0]
    return View(
        result=ranking,
        printed=[table],
        table=table,
        json=ranking.records(segments=sentence_level),
        warns_aside=sentence_level,
    )


def rank_candidates(
    candidates: InFile,
    /,
    compute: Compute,
    judge: JudgeConnection,
    display: Display,
    *,
    ranker: RankerName = None,
) -> Annotated[View, RankedCandidates]:
    """Sort the candidates of each segment by their mean probability of winning.

    Parameters
    ----------
    candidates
        JSONL file of records with candidates, source and references.
    ranker
        Ranker or metric (default: pairwise for English references, otherwise tertium-multi).

    Examples
    --------
    tertium rank candidates candidates.jsonl > reordered.jsonl
    tertium rank candidates candidates.jsonl -m tertium-multi -o reordered.jsonl

    Notes
    -----
    The output has the candidates from best to worst; other fields of the records stay.
    """
    chosen = load_ranker(ranker) if ranker else None  # fail before files are read
    ranked = rerank(read_candidates(candidates), chosen)
    lines = (json.dumps(missing_to_null(line), ensure_ascii=False) for line in ranked.lines())
    return View(
        result=ranked,
        bare="".join(f"{line}\n" for line in lines) if display.format == "text" else None,
        warns_aside=True,
    )
