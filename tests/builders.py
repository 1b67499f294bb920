"""Files, data and tools that tests of several folders build; small and deterministic."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.decisions.judged_files import make_rows

from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Judgment, Preference, Segment
from tertium.data.human_data_files import read_human_data
from tertium.data.judgments import JudgmentSet
from tertium.data.testset import TestSet
from tertium.meta.aligned_scores import AlignedScores

Content = str | bytes | Iterable[Mapping[str, Any]]

EXAMPLES = Path(__file__).parents[1] / "examples"
SYSTEMS = ("good", "fair", "poor")  # of the example
WORKSPACE_LINES = 6  # of each example file
SHORT_NAMES = {
    "a": "system-good.en",
    "b": "system-fair.en",
    "c": "system-poor.en",
    "src": "source.de",
    "r1": "reference-a.en",
    "r2": "reference-b.en",
    "docs": "documents",
}
WORDS = "the cat sat on a mat while two dogs barked at it and nobody came home before noon".split()
# Titles of products have no function words, by which English is recognized.
TITLES = [
    f"{color} {product}"
    for color in ("Blue", "Dark green")
    for product in (
        "cotton shirt large", "leather wallet slim", "ceramic coffee mug", "running shoes black",
        "steel water bottle", "garden hose heavy duty", "laptop stand aluminum", "yoga mat thick",
        "rain jacket waterproof", "desk lamp dimmable",
    )
]  # fmt: skip


def make_judgments(count: int = 12, seed: int = 1) -> list[Judgment]:
    """Make translations with 0 to 3 missing words, each with its own reference.

    The human score is minus the number of missing words, plus a ninth of the seed.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for n in range(count):
        words = [*rng.permutation(WORDS)[:8], f"{seed} {n}"]
        segment = Segment(" ".join(words[: 8 - n % 4]), f"x {n}", (" ".join(words),))
        rows.append(Judgment(segment, -float(n % 4) + seed / 9))
    return rows


def make_preferences(count: int = 12, seed: int = 1) -> list[Preference]:
    """Make comparisons of these translations with their first nine characters, in both orders."""
    pairs = []
    for n, row in enumerate(make_judgments(count, seed)):
        better, worse = row.segment, replace(row.segment, hypothesis=row.segment.hypothesis[:9])
        pair = (better, worse, 1.0) if n % 2 else (worse, better, 0.0)
        pairs.append(Preference(*pair, item=str(n)))
    return pairs


def change_json(file: Path, **changes: Any) -> None:
    """Replace values of a JSON object in a file; nested objects are changed, None removes a key."""

    def change(value: dict[str, Any], changes: dict[str, Any]) -> None:
        for key, new in changes.items():
            if new is None:
                del value[key]
            elif isinstance(new, dict) and isinstance(value.get(key), dict):
                change(value[key], new)
            else:
                value[key] = new

    content = json.loads(file.read_text(encoding="utf-8"))
    change(content, changes)
    file.write_text(json.dumps(content), encoding="utf-8")


def record_calls(patch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """Return a list that gets the positional arguments of each call; the function still runs."""
    calls: list[tuple[Any, ...]] = []
    function = getattr(owner, name)

    def record(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return function(*args, **kwargs)

    patch.setattr(owner, name, record)
    return calls


def read_cases(text: str) -> list[tuple[str, str]]:
    """Read a table of `command => expected text`; an arrow may begin the next line.

    >>> read_cases("score => no -t\\n\\n# comment\\nrank x\\n    => y")
    [('score', 'no -t'), ('rank x', 'y')]
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\n    =>", " =>")
    pairs = [line.rpartition(" => ") for line in joined.splitlines()]
    return [(command.strip(), expected) for command, _, expected in pairs]


def write_lines(path: Path | str, lines: Iterable[str]) -> str:
    """Write lines of text; return the path."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def write_jsonl(path: Path | str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Write records, one JSON object per line; return the path."""
    return write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))


def write_tsv(path: Path | str, header: str, rows: Iterable[Iterable[object]]) -> str:
    """Write a table of tab-separated values; `header` has the names, separated by blanks."""
    lines = ["\t".join(map(str, row)) for row in rows]
    return write_lines(path, ["\t".join(header.split()), *lines])


def example_ratings(names: Sequence[str] = SYSTEMS) -> list[dict[str, Any]]:
    """Return the invented ratings of the example: system, segment, annotator and score."""
    lines = (EXAMPLES / "ratings.csv").read_text(encoding="utf-8").splitlines()[1:]
    rows = (line.split(",") for line in lines)
    return [
        {"system": system, "segment": segment, "annotator": annotator, "score": float(score)}
        for system, segment, annotator, score in rows
        if system in names
    ]


def example_texts(name: str) -> list[str]:
    """Return the lines of an example file, such as `system-good.en`."""
    return (EXAMPLES / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def write_workspace(folder: Path) -> None:
    """Write small files under short names: systems, references, judgments, localization files."""
    for short, name in SHORT_NAMES.items():
        write_lines(folder / f"{short}.txt", example_texts(name)[:WORKSPACE_LINES])
    write_lines(folder / "short.txt", example_texts(SHORT_NAMES["r1"])[:2])
    shutil.copy(folder / "a.txt", folder / "same.txt")
    for short in ("a", "b", "r1"):
        shutil.copy(EXAMPLES / f"{SHORT_NAMES[short]}.txt", folder / f"long-{short[0]}.txt")
    localization = {"app.xliff": "app.de.xliff", "app.po": "app.pl.po"}
    for name in ("app.xliff", "app.po", "de.json", "en.json"):
        shutil.copy(EXAMPLES / "localization" / localization.get(name, name), folder / name)
    shutil.copy(EXAMPLES / "preferences.tsv", folder)
    write_lines(folder / "terms.csv", ["source,target", "Markt,market"])
    write_lines(folder / "names.txt", ["Berlin", "Yıldız"])
    texts = [folder / f"{short}.txt" for short in SHORT_NAMES]
    testset = TestSet.read(texts[:3], texts[4:6], texts[3], texts[6])
    testset.write(folder / "systems.jsonl")
    _write_human_scores(folder)
    _write_candidates(folder, testset)


def _write_human_scores(folder: Path) -> None:
    """Write human scores with texts, of the example and of `judged_files`."""
    ratings = [row for row in example_ratings() if int(row["segment"]) <= WORKSPACE_LINES]
    lines = [f"{r['system']},{r['segment']},{r['annotator']},{r['score']:g}" for r in ratings]
    write_lines(folder / "ratings.csv", ["system,segment,annotator,score", *lines])
    columns = {"src": "source.de", "ref": "reference-a.en"}
    rows = []
    for rating in ratings:
        number = int(rating["segment"])
        names = {**columns, "mt": f"system-{rating['system']}.en"}
        texts = {key: example_texts(name)[number - 1] for key, name in names.items()}
        domain = "news" if number % 2 else "sport"
        rows.append({"lp": "de-en", **rating, **texts, "domain": domain})
    write_jsonl(folder / "judgments.jsonl", rows)
    write_jsonl(folder / "human" / "da" / "wmt16" / "de-en.jsonl", rows)
    write_jsonl(folder / "judged.jsonl", make_rows(120))
    write_jsonl(folder / "few.jsonl", make_rows(20))
    scores = dict.fromkeys((row["system"], row["segment"], len(row["mt"])) for row in rows)
    write_tsv(folder / "scores.tsv", "system segment score", scores)


def _write_candidates(folder: Path, testset: TestSet) -> None:
    """Write the outputs of the systems as candidate lists, and comparisons of all pairs."""
    outputs = [*zip(*testset.systems.values(), strict=True)]
    lists = [
        {"candidates": texts, "references": references[:1]}
        for texts, references in zip(outputs, testset.references, strict=True)
    ]
    write_jsonl(folder / "candidates.jsonl", lists)
    pairs = []
    for number, texts in enumerate(outputs):
        for left, right in ((0, 1), (1, 2), (2, 0)):
            pair = {"segment": str(number), "system_a": SYSTEMS[left]}
            pair |= {"system_b": SYSTEMS[right], "preference": "a" if left < right else "b"}
            pair |= {"hypothesis_a": texts[left], "hypothesis_b": texts[right]}
            pairs.append(pair | {"judge": "x", "reference": testset.references[number][0]})
    write_jsonl(folder / "pairs.jsonl", pairs)


def write_file(path: Path, content: Content) -> Path:
    """Write a text, bytes, or records as JSON Lines; missing folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        text = content if isinstance(content, str) else "".join(map(_format_record, content))
        path.write_text(text, encoding="utf-8", newline="")
    return path


def _format_record(record: Mapping[str, Any]) -> str:
    return json.dumps(record) + "\n"


def write_files(folder: Path, contents: Mapping[str, Content]) -> Path:
    """Write several files by their path in a folder, and return the folder."""
    for name, content in contents.items():
        write_file(folder / name, content)
    return folder


def read_one(source: Any, **options: Any) -> Any:
    """Read human data that have a single set, and return that set."""
    (human_data,) = read_human_data(source, **options)
    return human_data


def make_judgment_set(*rows: tuple[str, str, float], name: str = "x", **fields: Any) -> JudgmentSet:
    """Make a set from rows of system, item and score; its texts are `system item`."""
    judgments = (
        Judgment(Segment(f"{system} {item}", None, ("r",)), score, item, system, **fields)
        for system, item, score in rows
    )
    return JudgmentSet(name=name, judgments=tuple(judgments))


def make_aligned_scores(
    name: str, seed: int, noise: Mapping[str, float], systems: str = "ABCD", items: int = 50
) -> AlignedScores:
    """Make random human scores, and metrics that add noise of the given deviation to them."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(len(systems), items))
    metrics = [
        ScoreMatrix(metric, tuple(systems), truth + rng.normal(0, deviation, truth.shape))
        for metric, deviation in noise.items()
    ]
    return AlignedScores.align(name, metrics, human=ScoreMatrix("da", tuple(systems), truth))
