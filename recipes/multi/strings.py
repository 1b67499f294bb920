"""Right and wrong translations of short strings and of FLORES lines, as pairs for training.

Short strings come from Tatoeba (one to five words), some with placeholders or numbers, and from a
list of opposite commands of user interfaces. A wrong translation drops a placeholder, changes a
number, belongs to another string, means the opposite, or copies the source.
"""

from __future__ import annotations

import gzip
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recipes.multi.judgments import read_outputs
from tertium.text.perturbations import PERTURBATIONS, PerturbationInput, perturb

MAX_WORDS = 5
LANGUAGES = frozenset(  # of Tatoeba, supported by the encoder
    "afr ara aze bel ben bos bre bul cat ces cmn cym dan deu ell epo est eus fin fra gla gle glg "
    "heb hin hrv hun hye ind isl ita jpn kat kaz khm kor lat lav lit mal mar mkd mon nld nob nno "
    "pes pol por ron rus slv spa sqi srp swe swh tam tgl tha tur uig ukr urd uzb vie yid "
    "zsm".split()
)
KINDS = ("other", "placeholder", "number", "copy", "empty")
KIND_SHARES = (0.3, 0.35, 0.2, 0.1, 0.05)
PLACEHOLDERS = ("{count}", "%s", "{name}", "%d", "{0}", "<b>{user}</b>", "{{value}}", "${size}")
LINES_PER_LANGUAGE = 700
COSTS = {"punctuation": 0.3, "spelling": 0.6, "gender": 0.6}  # of a perturbation; candidates cost 1
COMMANDS = Path(__file__).with_name("commands.toml")


class TextPair(NamedTuple):
    """A right and a wrong translation of a source, with what the wrong one costs."""

    name: str  # set, such as `strings/en-de`
    source: str
    reference: str | None
    right: str
    wrong: str
    cost: float
    key: str  # pairs of one key are held out together


def read_short_strings(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Read (sentence, English) of at most `MAX_WORDS` English words, by language."""
    strings_by_language: dict[str, list[tuple[str, str]]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            language, sentence, english = line.rstrip("\n").split("\t")
            if language in LANGUAGES and len(english.split()) <= MAX_WORDS and sentence != english:
                strings_by_language[language].append((sentence, english))
    return strings_by_language


def short_string_pairs(path: Path, per_language: int, seed: int = 1) -> Iterator[TextPair]:
    """Yield pairs of short strings in both directions."""
    rng = np.random.default_rng(seed)
    for language, strings in sorted(read_short_strings(path).items()):
        if len(strings) < 50:
            continue
        chosen = rng.choice(len(strings), min(per_language, len(strings)), replace=False)
        for n in chosen:
            other = strings[int(rng.integers(len(strings)))]
            forward = bool(rng.random() < 0.6)
            source, right = strings[n][::-1] if forward else strings[n]
            wrong = other[0] if forward else other[1]
            if wrong == right or source == right:
                continue
            kind = rng.choice(KINDS, p=KIND_SHARES)
            name = f"strings/{'en-' if forward else ''}{language}{'' if forward else '-en'}"
            if kind == "placeholder":
                mark = str(rng.choice(PLACEHOLDERS))
                first = rng.random() < 0.5
                put = (lambda t: f"{mark} {t}") if first else (lambda t: f"{t} {mark}")  # noqa: B023
                source, complete = put(source), put(right)
                if rng.random() < 0.3:
                    swapped = str(rng.choice([m for m in PLACEHOLDERS if m != mark]))
                    right, wrong = complete, complete.replace(mark, swapped)
                else:
                    right, wrong = complete, right
            elif kind == "number":
                number, false = rng.choice(np.arange(2, 99), 2, replace=False)
                source, wrong = f"{source} ({number})", f"{right} ({false})"
                right = f"{right} ({number})"
            elif kind == "copy":
                wrong = source
            elif kind == "empty":
                wrong = ""
            yield TextPair(name, source, None, right, wrong, 1.0, " ".join(strings[n]))


def command_pairs() -> Iterator[TextPair]:
    """Yield commands with their opposites, between all languages."""
    table = tomllib.loads(COMMANDS.read_text(encoding="utf-8"))
    for source_language, sources in table.items():
        for language, targets in table.items():
            if source_language == language:
                continue
            for concept, (source, target) in enumerate(zip(sources, targets, strict=True)):
                name = f"commands/{source_language}-{language}"
                for own, right, wrong in zip(source, target, target[::-1], strict=True):
                    if right != wrong and own != right:
                        yield TextPair(name, own, None, right, wrong, 1.0, f"command {concept}")


def flores_pairs(path: Path, seed: int = 1) -> Iterator[TextPair]:
    """Yield FLORES lines with a perturbed copy; the reference is the output of a system."""
    rng = np.random.default_rng(seed)
    names, blocks = read_outputs(path)
    languages = [name for name in names if "-" not in name]
    outputs: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if "-" in name:
            outputs[name.split(".")[0]].append(name)
    kinds = list(PERTURBATIONS)
    for language in languages:
        for n in rng.choice(1_000, LINES_PER_LANGUAGE // 2 if language != "en" else 4000):
            foreign, source_language = _other_languages(languages, language, rng)
            pair = f"{source_language}-{language}"
            systems = outputs.get(pair, [])
            reference = blocks[str(rng.choice(systems))][n] if systems else None
            text, source = blocks[language][n], blocks[source_language][n]
            kind = str(rng.choice(kinds))
            other = blocks[language][int(rng.integers(1_000))]
            original = PerturbationInput(
                text=text, language=language, source=source, other=other, foreign=blocks[foreign][n]
            )
            wrong = perturb(original, kind, rng)
            if wrong is not None and text != reference:
                cost = COSTS.get(kind, 1.0)
                yield TextPair(f"flores/{pair}", source, reference, text, wrong, cost, f"line {n}")


def _other_languages(
    languages: Sequence[str], language: str, rng: np.random.Generator
) -> tuple[str, str]:
    """Return a third language and the language of the source: English, or any for English."""
    candidates = [name for name in languages if name != language]
    source = "en" if language != "en" else str(rng.choice(candidates))
    return str(rng.choice([name for name in candidates if name != source])), source
