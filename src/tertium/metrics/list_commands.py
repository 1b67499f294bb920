"""The commands `list` and `list citations`: metrics and rankers, their fields and their papers."""

from __future__ import annotations

import dataclasses
import inspect
import logging
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

from tertium.core.errors import MissingResourceError, UsageError
from tertium.core.fields import describe_fields, format_value, parse_fields, split_spec
from tertium.core.options import Display, Option, Specs
from tertium.core.registry import ALIASES, METRICS, RANKERS, resolve_scorer
from tertium.core.result import Column, Listing, Table, View
from tertium.metrics.base.loading import is_model_folder
from tertium.models.checkpoint import has_bundled_models, read_config

# Recommended metrics, and when to use each.
RECOMMENDED: Mapping[str, str] = {
    "tertium-multi": "about 100 languages; with source, reference or both; marks error spans",
    "tertium-small": "English references; fast on a CPU",
    "tertium-base": "English references; slower than tertium-small and more accurate",
    "chrf": "any language with references; needs no model",
    "bleu": "comparison with published BLEU scores",
    "bertscore": "similarity of token embeddings; not trained on human scores",
    "sentsim": "without references; not trained on human scores",
    "judge": "a language model on a server, local or hosted; marks error spans",
    "blend": "a weighted sum of other metrics, trained on your human scores",
    "comet": "a COMET checkpoint that you have on disk",
}

logger = logging.getLogger(__name__)


def list_metrics(
    metric: Annotated[str | None, Option(metavar="METRIC")] = None,
    /,
) -> Listing:
    """List the recommended metrics, or show one metric with its fields.

    Parameters
    ----------
    metric
        Metric or ranker to describe, by its name or its folder, or `all` to list all of them.

    Examples
    --------
    tertium list
    tertium list all
    tertium list bleu
    tertium list models/mine
    """
    if metric and metric != "all":
        return _describe_metric(metric)
    if metric:
        records = [_summarize(name) for name in (*METRICS, *RANKERS)]
        notes = [f"{alias} is an alias of {spec}" for alias, spec in ALIASES.items()]
        notes.append("rankers compare two translations: tertium rank -m NAME")
    else:
        names = [name for name in RECOMMENDED if name in METRICS]
        records = [{**_summarize(name), "summary": RECOMMENDED[name]} for name in names]
        total = len([*METRICS, *RANKERS])
        notes = [f"`tertium list all` shows all {total} metrics and rankers"]
    columns = [
        Column("metric"),
        Column("needs"),
        Column("better"),
        Column("summary" if metric else "use it for", "summary"),
    ]
    return Listing(table=Table(columns, records, notes=notes), json=records)


def list_citations(
    metrics: Specs,
    /,
    display: Display,
) -> View:
    """Print the BibTeX entries of metrics and rankers.

    Parameters
    ----------
    metrics
        Metrics or rankers.

    Examples
    --------
    tertium list citations bleu
    tertium list citations chrf meteor pairwise > metrics.bib
    """
    citations = {metric: getattr(_resolve_spec(metric)[1], "citation", "") for metric in metrics}
    for metric, citation in citations.items():
        if not citation:
            logger.warning("%s names no paper to cite", metric)
    columns = [Column("metric", itemgetter(0)), Column("citation", itemgetter(1))]
    listing = Listing(table=Table(columns, [*citations.items()]))
    entries = dict.fromkeys(filter(None, citations.values()))
    text = "".join(f"{entry}\n" for entry in entries)
    return View(result=listing, bare=text if display.format == "text" else None)


def _summarize(name: str) -> dict[str, str]:
    is_ranker = name not in METRICS
    record = {"metric": name, "kind": "ranker" if is_ranker else "metric"}
    try:
        cls = resolve_scorer(name)
        better = "ranks" if is_ranker else "higher" if cls.higher_is_better else "lower"
        return {**record, "needs": _needs(cls), "better": better, "summary": _first_sentence(cls)}
    except Exception as error:  # a broken plugin must not hide the others
        if name in METRICS.builtin or name in RANKERS.builtin:
            raise
        reason = str(error).partition("\n")[0]
        return {**record, "needs": "", "better": "", "summary": f"cannot be loaded: {reason}"}


def _needs(cls: Any) -> str:
    try:
        return " + ".join(sorted(cls().required_inputs)) or "references or source"
    except MissingResourceError:
        return "training" if has_bundled_models() else "tertium-models"


def _first_sentence(cls: Any) -> str:
    """Return the first line of the module's docstring, or of the class if it shares a module."""
    if sum(target.startswith(f"{cls.__module__}:") for target in METRICS.values()) > 1:
        return f"{cls.title}: {_first_line(cls.__doc__)}"
    return _first_line(getattr(inspect.getmodule(cls), "__doc__", None))


def _first_line(text: str | None) -> str:
    return (text or "").split("\n")[0].rstrip(".")


def _resolve_spec(spec: str) -> tuple[str, Any]:
    """Return name and class of a metric or ranker; invalid fields are an error."""
    name = _scorer_name(spec)
    cls = resolve_scorer(name)
    fields = parse_fields(cls, name, {} if is_model_folder(spec) else split_spec(spec)[1])
    if fields:
        cls(**fields)  # checks values, such as the name of a tokenizer
    return name, cls


def _scorer_name(spec: str) -> str:
    """Return the name of a metric or ranker, given a spec, an alias or a folder."""
    name = spec if is_model_folder(spec) else split_spec(spec)[0]
    if is_model_folder(name):
        config = read_config(Path(name))
        return str(config.get("metric") or config.get("ranker"))
    if "/" in name:
        raise UsageError(f"{name}: not the folder of a saved metric (no config.json)")
    return split_spec(ALIASES.get(name, name))[0]


def _describe_metric(spec: str) -> Listing:
    name, cls = _resolve_spec(spec)
    about, types = inspect.getdoc(cls), describe_fields(cls)
    fields = [
        {"field": field.name, "type": types[field.name], "default": format_value(field.default)}
        for field in dataclasses.fields(cls)
        if field.init
    ]
    return Listing(
        table=Table([Column("field"), Column("type"), Column("default")], fields),
        heading=f"{cls.title} ({name})\n\n{about}",
        json={**_summarize(name), "about": about, "fields": fields},
    )
