"""Measure agreement with the human scores of WMT25: `python -m recipes.wmt25 FILE`.

    python -m recipes.wmt25 scores.jsonl   # score what is missing, measure, fill in the tables
    python -m recipes.wmt25                # fill in the tables of all pages again

The judgments are modern/dev/esa/wmt25: paragraphs by today's systems, 14 language pairs. All rows
with a reference are used, so human translations are not among the systems. The scores of large
metrics and LLM judges were published by the organizers and stand in the rows; ours are appended to
FILE and are not computed again unless the weights of a metric change. This takes over an hour on
one core. No model may train on this set.

Three figures per language pair, which are averaged with equal weights:

- `r`: Pearson's r over translations.
- `within`: the share of pairs of translations of one source in the order of the human scores.
- `systems`: the share of pairs of systems in the order of the human scores; two systems are
  compared by the mean over the sources that both translated.

Pairs that are tied in the human scores are left out; a tie of the metric counts one half. Intervals
come from a bootstrap over documents. Language pairs with the same source language have documents
in common, which are drawn together.

The results are stored in docs/evidence/wmt25.json. Every page with the lines

    <!-- wmt25: NAME -->
    <!-- end -->

gets a table between them; `TABLES` lists the names.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.record import describe_processor
from papers.ledger import Ledger
from papers.provenance import code_version

from papers import find_table
from recipes.blend import add_scores
from tertium.core.arrays import FloatArray, divide
from tertium.core.atomic import write_text
from tertium.core.resampling import make_rng
from tertium.core.runtime import runtime
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet
from tertium.metrics import load_metric
from tertium.metrics.base.scorer import format_signature

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/evidence/wmt25.json"
SET = "modern/dev/esa/wmt25"
FIGURES = {"r": "r", "within": "same source", "systems": "systems"}
RESAMPLES, CONFIDENCE, SEED = 1000, 0.95, 2025
TIE = 1e-9  # differences of sums up to this are rounding errors
# Into Egyptian Arabic, Bhojpuri and Maasai, of which encoders have seen little text.
RARE_PAIRS = ("en-ar", "en-bho", "en-mas")
BLEU_TOKENIZERS = {"en-ja": ":tokenize=char", "en-zh": ":tokenize=zh"}

SOURCE, REFERENCE, BOTH = (
    f"tertium-multi:against={side}" for side in ("source", "reference", "both")
)
SCORED = ("bleu", "chrf", SOURCE, REFERENCE, BOTH)
BASELINES = ("chrf", BOTH, "metricx24xl", "gemba_commanda", "gemba_gpt41")


@dataclass(frozen=True)
class Entry:
    """How a metric is shown in tables."""

    title: str
    size: str
    inputs: str


METRICS = {
    "gemba_gpt41": Entry("GPT-4.1 as a judge (GEMBA-ESA)", "closed", "source"),
    "gemba_commanda": Entry("Command A as a judge (GEMBA-ESA)", "111B", "source"),
    "metricx24xl": Entry("MetricX-24-Hybrid-XL", "3.7B", "source, reference"),
    "cometkiwi_xl": Entry("CometKiwi-XL", "3.5B", "source"),
    "xcomet_xl": Entry("XCOMET-XL", "3.5B", "source, reference"),
    "chrf": Entry("`chrf`", "–", "reference"),
    "bleu": Entry("`bleu`", "–", "reference"),
    BOTH: Entry("`tertium-multi`", "60 MB", "source, reference"),
    REFERENCE: Entry("`tertium-multi:against=reference`", "60 MB", "reference"),
    SOURCE: Entry("`tertium-multi:against=source`", "60 MB", "source"),
}
PUBLISHED = tuple(name for name in METRICS if name not in SCORED)
# Sums of z-scores within a language pair.
BLENDS = {
    "`chrf` + `tertium-multi`": ("chrf", BOTH),
    "MetricX-24-Hybrid-XL + `chrf`": ("metricx24xl", "chrf"),
    "MetricX-24-Hybrid-XL + `chrf` + `tertium-multi`": ("metricx24xl", "chrf", BOTH),
    "Command A + `chrf` + `tertium-multi`": ("gemba_commanda", "chrf", BOTH),
    "GPT-4.1 + `chrf`": ("gemba_gpt41", "chrf"),
    "GPT-4.1 + `chrf` + `tertium-multi`": ("gemba_gpt41", "chrf", BOTH),
}
NAMES = (*METRICS, *BLENDS)
# Rows of the README without figures on WMT25, which are made for English references.
ENGLISH_METRICS = {
    "bertscore": ("90 MB", "reference"),
    "tertium-small": ("25 MB", "English reference"),
    "tertium-base": ("440 MB", "English reference"),
}


@dataclass(frozen=True)
class DocumentSums:
    """Sums by document of one language pair, from which its figures follow for any weights."""

    moments: FloatArray  # (documents, metrics, 6): 1, h, m, hh, mm, hm
    orders: FloatArray  # (documents, metrics, 2): pairs of one source, in the right order and all
    human_gaps: FloatArray  # (documents, system pairs): difference of the sums of human scores
    metric_gaps: FloatArray  # (documents, metrics, system pairs)

    def figures(self, weights: FloatArray) -> FloatArray:
        """Return r, within and systems for weights of documents, (draws, metrics, 3)."""
        count, h, m, hh, mm, hm = np.moveaxis(np.tensordot(weights, self.moments, 1), -1, 0)
        covariance = hm - divide(h * m, count)
        variances = (hh - divide(h * h, count)) * (mm - divide(m * m, count))
        r = divide(covariance, np.sqrt(np.maximum(variances, 0.0)))
        right, total = np.moveaxis(np.tensordot(weights, self.orders, 1), -1, 0)
        human = _signs(weights @ self.human_gaps)[:, None]
        metric = _signs(np.tensordot(weights, self.metric_gaps, 1))
        shares = (human == metric) + 0.5 * (metric == 0)
        systems = divide((shares * (human != 0)).sum(-1), (human != 0).sum(-1))
        return np.stack([r, divide(right, total), systems], axis=-1)


def _signs(values: FloatArray) -> FloatArray:
    return np.sign(np.where(np.abs(values) > TIE, values, 0.0))


def sum_by_document(one: JudgmentSet, scores: FloatArray, documents: Sequence[str]) -> DocumentSums:
    """Return the sums of one language pair; `scores` is (metrics, judgments)."""
    place = {document: n for n, document in enumerate(documents)}
    document_of = {j.item: place[j.document] for j in one.judgments}
    human = one.scores - one.scores.mean()
    centered = scores - scores.mean(axis=1, keepdims=True)
    products = [np.ones_like(centered), centered * 0 + human, centered]
    products += [centered * 0 + human**2, centered**2, centered * human]
    moments = np.zeros((len(documents), len(scores), 6))
    rows = [document_of[j.item] for j in one.judgments]
    np.add.at(moments, rows, np.stack(products, axis=-1).swapaxes(0, 1))

    human_table = one.to_score_matrix(human, "human").values
    tables = np.stack([one.to_score_matrix(own, "metric").values for own in centered])
    left, right = np.triu_indices(len(human_table), k=1)
    human_gaps = human_table[left] - human_table[right]  # (system pairs, items)
    metric_gaps = tables[:, left] - tables[:, right]  # (metrics, system pairs, items)
    decided = ~np.isnan(human_gaps) & (human_gaps != 0)
    human_signs, metric_signs = np.sign(human_gaps), np.sign(metric_gaps)
    correct = decided * ((human_signs == metric_signs) + 0.5 * (metric_signs == 0))
    by_item = np.stack([correct.sum(1), np.broadcast_to(decided.sum(0), correct[:, 0].shape)], -1)
    items = [document_of[item] for item in one.items]
    orders = np.zeros((len(documents), len(scores), 2))
    np.add.at(orders, items, by_item.swapaxes(0, 1))
    human_sums = np.zeros((len(documents), len(left)))
    np.add.at(human_sums, items, np.nan_to_num(human_gaps).T)
    metric_sums = np.zeros((len(documents), len(scores), len(left)))
    np.add.at(metric_sums, items, np.nan_to_num(np.moveaxis(metric_gaps, -1, 0)))
    return DocumentSums(moments, orders, human_sums, metric_sums)


def draw_documents(documents: Sequence[str], resamples: int) -> FloatArray:
    """Return how often each document is drawn in each resample, (resamples, documents)."""
    share = np.full(len(documents), 1 / len(documents))
    return make_rng(SEED).multinomial(len(documents), share, size=resamples).astype(float)


def read_pairs(data: DatasetFolder) -> list[JudgmentSet]:
    """Return the judgments of translations that have a reference, by language pair."""
    entry = next(e for e in data.sets if e.name == SET)
    return [data.judgments(SET, lp).drop_without_references() for lp in sorted(entry.lps)]


def all_scores(one: JudgmentSet, file: Path) -> FloatArray:
    """Return the scores of all metrics and blends on one language pair, (metrics, judgments)."""
    columns = {name: one.metric_scores()[name] for name in PUBLISHED}
    bleu = f"bleu{BLEU_TOKENIZERS.get(one.lp, '')}"
    (scored,) = add_scores([one], [bleu if name == "bleu" else name for name in SCORED], file)
    own = scored.metric_scores()
    columns |= {name: own[bleu if name == "bleu" else name] for name in SCORED}
    for name, parts in BLENDS.items():
        values = [columns[part] for part in parts]
        columns[name] = np.sum([(v - v.mean()) / v.std() for v in values], axis=0)
    return np.array([columns[name] for name in NAMES])


def measure(pairs: Sequence[JudgmentSet], scores: Sequence[FloatArray]) -> dict[str, Any]:
    """Return figures with intervals, of metrics and of their differences to baselines."""
    values, drawn = [], []
    weights: dict[str, tuple[list[str], FloatArray]] = {}
    for one in pairs:
        language = one.lp.partition("-")[0]
        if language not in weights:
            same = [other for other in pairs if other.lp.startswith(f"{language}-")]
            documents = sorted({j.document for other in same for j in other.judgments})
            weights[language] = documents, draw_documents(documents, RESAMPLES)
    for one, own in zip(pairs, scores, strict=True):
        documents, draws = weights[one.lp.partition("-")[0]]
        sums = sum_by_document(one, own, documents)
        values.append(sums.figures(np.ones((1, len(documents))))[0])
        drawn.append(sums.figures(draws))
    names = [one.lp for one in pairs]
    value, samples = np.array(values), np.array(drawn)  # (pairs, metrics, 3), (pairs, draws, ...)
    differences = {}
    for baseline in BASELINES:
        n = NAMES.index(baseline)
        changes = value - value[:, [n]], samples - samples[:, :, [n]]
        differences[baseline] = _summarize(names, *changes, by_pair=baseline == "chrf")
    return {"figures": _summarize(names, value, samples), "differences": differences}


def _summarize(
    names: Sequence[str], value: FloatArray, samples: FloatArray, *, by_pair: bool = True
) -> dict[str, Any]:
    """Return value and interval by metric, by mean or language pair, and by figure."""
    is_other = np.array([name not in RARE_PAIRS for name in names])
    groups = {"mean": np.ones(len(names), dtype=bool), "mean of others": is_other}
    if by_pair:
        groups |= {name: np.array(names) == name for name in names}
    summary: dict[str, Any] = {metric: {} for metric in NAMES}
    tails = [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)]
    for group, members in groups.items():
        center = value[members].mean(0)
        low, high = np.nanpercentile(samples[members].mean(0), tails, axis=0)
        for n, metric in enumerate(NAMES):
            summary[metric][group] = {
                figure: [round(float(part[n, k]), 4) for part in (center, low, high)]
                for k, figure in enumerate(FIGURES)
            }
    return summary


def describe_pairs(pairs: Sequence[JudgmentSet]) -> dict[str, dict[str, int]]:
    """Return the counts of each language pair."""
    return {
        one.lp: {
            "translations": len(one),
            "sources": len(one.items),
            "documents": len({j.document for j in one.judgments}),
            "systems": len(one.systems),
        }
        for one in pairs
    }


Result = Mapping[str, Any]


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], text_columns: Sequence[int] = (0,)
) -> str:
    """Return a table in Markdown; columns that are not text are aligned right."""
    rules = ["---" if n in text_columns else "---:" for n in range(len(header))]
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, rules, *rows))


def format_figure(entry: Sequence[float], *, sign: bool = False) -> str:
    """Format a value with its interval.

    >>> format_figure([0.4622, 0.4301, 0.5]), format_figure([0.02, -0.0101, 0.05], sign=True)
    ('.462 [.430, .500]', '+.020 [-.010, +.050]')
    """
    value, low, high = (
        f"{number:{'+' if sign else '-'}z.3f}".replace("0.", ".", 1) for number in entry
    )
    return f"{value} [{low}, {high}]"


def _cells(figures: Mapping[str, Sequence[float]], *, sign: bool = False) -> list[str]:
    return [format_figure(figures[figure], sign=sign) for figure in FIGURES]


def readme_table(result: Result) -> str:
    overview = Ledger(ROOT / "docs/results").load_table(find_table("overview", "da/wmt17")).rows
    older = {row.label: f"{row.average:.3f}" for row in overview if row.figures}
    older[BOTH] = older.pop("tertium-multi")
    rows = []
    for name, entry in METRICS.items():
        label = entry.title
        page = label.strip("`").partition(":")[0]
        if name in older:
            label = f"[{label}](docs/metrics/{page}.md)"
        figures = _cells(result["figures"][name]["mean"])
        rows.append([label, entry.size, entry.inputs, *figures, older.get(name, "–")])
    for name, (size, inputs) in ENGLISH_METRICS.items():
        page = "tertium-small" if name == "tertium-base" else name
        label = f"[`{name}`](docs/metrics/{page}.md)"
        rows.append([label, size, inputs, "–", "–", "–", older[name]])
    header = ["metric", "size", "reads", "WMT25 r", *list(FIGURES.values())[1:], "WMT17 r"]
    return markdown_table(header, rows, (0, 2))


def means_table(result: Result) -> str:
    """Return the means of metrics, judges and blends; a blend reads what its parts read."""
    inputs = {name: entry.inputs for name, entry in METRICS.items()}
    for name, parts in BLENDS.items():
        texts = dict.fromkeys(text for part in parts for text in inputs[part].split(", "))
        inputs[name] = ", ".join(sorted(texts, reverse=True))
    titles = {name: entry.title for name, entry in METRICS.items()}
    rows = [
        [titles.get(name, name), read, *_cells(result["figures"][name]["mean"])]
        for name, read in inputs.items()
    ]
    return markdown_table(["metric, judge or blend", "reads", *FIGURES.values()], rows, (0, 1))


def multi_table(result: Result) -> str:
    titles = {
        SOURCE: "source",
        REFERENCE: "reference",
        BOTH: "both",
        "chrf": "chrF, for comparison",
    }
    rows = [[title, *_cells(result["figures"][name]["mean"])] for name, title in titles.items()]
    return markdown_table(["input", *FIGURES.values()], rows)


def differences_table(result: Result, baseline: str) -> str:
    entries = result["differences"][baseline]
    titles = {name: entry.title for name, entry in METRICS.items()} | {n: n for n in BLENDS}
    rows = [
        [title, *_cells(entries[name]["mean"], sign=True)]
        for name, title in titles.items()
        if name != baseline
    ]
    return markdown_table([f"minus {METRICS[baseline].title}", *FIGURES.values()], rows)


def gains_table(result: Result) -> str:
    """Compare blends with their first metric or judge."""
    rows = []
    for name, parts in BLENDS.items():
        entry = result["differences"][parts[0]][name]["mean"]
        rows.append([f"{name}, minus {METRICS[parts[0]].title}", *_cells(entry, sign=True)])
    return markdown_table(["blend", *FIGURES.values()], rows)


def counts_table(result: Result) -> str:
    header = ["pair", "translations", "source paragraphs", "documents", "systems"]
    rows = [
        [lp, *(f"{number:,}" for number in counts.values())]
        for lp, counts in result["pairs"].items()
    ]
    total = sum(counts["translations"] for counts in result["pairs"].values())
    rows.append(["all", f"{total:,}", "", "", ""])
    return markdown_table(header, rows)


SHORT_TITLES = {
    "gemba_gpt41": "GPT-4.1", "gemba_commanda": "Command A", "metricx24xl": "MetricX",
    "cometkiwi_xl": "CometKiwi", "xcomet_xl": "XCOMET", "chrf": "chrF", "bleu": "BLEU",
    BOTH: "multi, both", REFERENCE: "multi, reference", SOURCE: "multi, source",
}  # fmt: skip


def pairs_table(result: Result, figure: str) -> str:
    """Return one figure by language pair; an arrow marks an interval of the difference to chrF."""
    rows = []
    for lp in (*result["pairs"], "mean", "mean of others"):
        row = [lp]
        for name in METRICS:
            value = f"{result['figures'][name][lp][figure][0]:.3f}".replace("0.", ".", 1)
            _, low, high = result["differences"]["chrf"][name][lp][figure]
            mark = "↑" if low > 0 else "↓" if high < 0 else ""
            row.append(f"{value}{mark}")
        rows.append(row)
    return markdown_table(["pair", *(SHORT_TITLES[name] for name in METRICS)], rows)


TABLES: Mapping[str, Callable[[Result], str]] = {
    "readme": readme_table,
    "means": means_table,
    "multi": multi_table,
    "minus chrf": lambda result: differences_table(result, "chrf"),
    "gains": gains_table,
    "counts": counts_table,
    **{f"pairs {figure}": partial(pairs_table, figure=figure) for figure in FIGURES},
}
MARKED = re.compile(r"(<!-- wmt25: ([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill_tables(text: str, result: Result) -> str:
    """Return the text of a page with its tables filled in."""

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}{TABLES[match[2]](result)}{match[3]}"

    return MARKED.sub(fill, text)


def pages() -> Iterator[Path]:
    """Return the Markdown pages that have such tables."""
    files = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("weights/**/*.md")]
    for file in sorted(files):
        if MARKED.search(file.read_text(encoding="utf-8")):
            yield file


def load_result() -> dict[str, Any]:
    """Return the stored results."""
    result: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return result


def store(result: Result) -> None:
    """Write the results, with one line for each metric and language pair."""
    text = json.dumps(result, ensure_ascii=False, indent=1)
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)
    text = re.sub(r"\{\s+([^{}]*?)\s+\}", lambda m: f"{{{' '.join(m[1].split())}}}", text)
    write_text(RESULTS, f"{text}\n", make_folder=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scores", nargs="?", type=Path, help="file of scores, which is extended")
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    if args.scores:
        pairs = read_pairs(DatasetFolder.open(args.data))
        with runtime(device=args.device):
            scores = [all_scores(one, args.scores) for one in pairs]
            segments = pairs[0].segments[:1]
            signatures = {name: format_signature(load_metric(name), segments) for name in SCORED}
        measured = measure(pairs, scores)
        store(
            {
                "set": SET,
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "code": code_version(),
                "machine": describe_processor(),
                "signatures": signatures,
                "bootstrap": {"resamples": RESAMPLES, "confidence": CONFIDENCE, "seed": SEED},
                "pairs": describe_pairs(pairs),
                **measured,
            }
        )
    result = load_result()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        write_text(page, fill_tables(text, result))
        print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
