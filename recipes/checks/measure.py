"""Measure the checks: `python -m recipes.checks.measure --data DIR`.

False alarms: findings per 1,000 human translations, of FLORES from and into English and of WMT
references, without blanks at the ends of lines. Found share: the share of damaged
translations in which the check reports a finding, for human translations and for outputs of
systems. Prints the table of docs/metrics/checks.md. Checks are tuned on the dev part of FLORES and
other WMT sets (`--part dev`); the table is of the test part.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import math
import os
import random
import re
import tarfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from recipes.languages.lines import FLORES_DEV_LINES, read_flores
from tertium.checks.check import CheckRunner, TranslationPair
from tertium.checks.check_settings import CHECKS, CHECKS_BY_ID
from tertium.checks.numbers import NUMBER, may_be_spelled_out, read_numbers
from tertium.checks.punctuation import REPEATABLE_WORDS
from tertium.text.scripts import is_unspaced_script

Damage = Callable[[TranslationPair, random.Random], TranslationPair | None]
INSERTIONS = {
    "placeholders": "{count} {{user}} ${total} %s %d %1$s %(name)s %@ {0} {} {price:.2f}".split(),
    "tags": ["<b>", "</b>", "<br/>", '<x id="1"/>', "<i>", '<a href="#">', "</a>", '<ph id="2"/>'],
    "entities": ["&amp;", "&lt;", "&gt;"],
    "urls": ["https://example.org/a?b=c", "http://example.com/help", "www.example.net/x"],
    "emails": ["help@example.org", "a.b@example.co.uk"],
    "paths": ["/usr/local/bin", "C:\\Temp\\file.txt", "report.pdf"],
    "code": ["`make test`", "`x = 1`"],
    "identifiers": ["max_size", "iPhone", "H5N1"],
    "acronyms": ["PDF", "USB", "HTTPS"],
}
PHRASES = (
    "Here is the translation:",
    "Sure! Here's the translation of the text:",
    "Translation:",
    "I'm sorry, but I cannot",
    "```",
)


def with_hypothesis(pair: TranslationPair, text: str) -> TranslationPair:
    return TranslationPair(pair.source, text, pair.source_language, pair.target_language)


def insert(text: str, token: str, rng: random.Random) -> str:
    """Insert a token between two words, or between characters of unspaced scripts."""
    spots = [m.start() for m in re.finditer(r"\s", text)]
    place = rng.choice(spots) if spots else rng.randrange(len(text) + 1)
    return f"{text[:place]} {token} {text[place:]}"


def drop_token(kind: str) -> Damage:
    """Insert a token into both texts, then drop, change or repeat it in the translation."""

    def damage(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
        token = rng.choice(INSERTIONS[kind])
        source = insert(pair.source, token, rng)
        broken = rng.choice([token[:-2], "", token[1:]])
        if kind in ("identifiers", "acronyms"):
            broken = ""
        text = insert(pair.hypothesis, broken, rng) if broken else pair.hypothesis
        return TranslationPair(source, text, pair.source_language, pair.target_language)

    return damage


def change_digit(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
    """Replace one digit of a number that both texts contain."""
    shared = {*NUMBER.findall(pair.source)}
    matches = [m for m in NUMBER.finditer(pair.hypothesis) if m[0] in shared]
    if not matches:
        return None
    match = rng.choice(matches)
    places = [n for n, c in enumerate(match[0]) if c.isdigit()]
    place = match.start() + rng.choice(places)
    digit = rng.choice([d for d in "123456789" if d != pair.hypothesis[place]])
    return with_hypothesis(pair, pair.hypothesis[:place] + digit + pair.hypothesis[place + 1 :])


def drop_number(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
    """Delete a number that both texts contain and that is not written as a word."""
    numbers = read_numbers(pair.source)
    shared = {number.text for number in numbers if not may_be_spelled_out(number)}
    matches = [m for m in NUMBER.finditer(pair.hypothesis) if m[0] in shared]
    if not matches or Counter(NUMBER.findall(pair.hypothesis))[matches[0][0]] > 1:
        return None
    start, end = matches[0].span()
    return with_hypothesis(pair, pair.hypothesis[:start] + pair.hypothesis[end:])


def change_unit(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
    """Add a quantity to both texts, with another unit in the translation."""
    number = rng.randrange(2, 900)
    units = rng.sample(rng.choice((["GB", "MB", "TB"], ["kg", "mg"], ["€", "$", "£"])), 2)
    source, target = insert(pair.source, f"{number} {units[0]}", rng), f"{number} {units[1]}"
    target = insert(pair.hypothesis, target, rng)
    return TranslationPair(source, target, pair.source_language, pair.target_language)


def add_sentences(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
    """Append the translation in another order of words, as two more sentences."""
    words = pair.hypothesis.rstrip(".!?。").split()
    if is_unspaced_script(pair.hypothesis) or len(words) < 6:
        return None
    rng.shuffle(words)
    return with_hypothesis(pair, f"{pair.hypothesis} {' '.join(words)}. {' '.join(words[::-1])}.")


def copy_source(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
    return with_hypothesis(pair, pair.source)


def add_chatter(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
    return with_hypothesis(pair, f"{rng.choice(PHRASES)} {pair.hypothesis}")


def cut(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
    return with_hypothesis(pair, pair.hypothesis[: len(pair.hypothesis) // 3])


def loop(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
    words = [*pair.hypothesis] if is_unspaced_script(pair.hypothesis) else pair.hypothesis.split()
    size = rng.randint(1, 4)
    start = rng.randrange(max(1, len(words) - size))
    mark = "" if is_unspaced_script(pair.hypothesis) else " "
    return with_hypothesis(pair, mark.join([*words[:start], *words[start : start + size] * 12]))


def encode_wrongly(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
    if pair.hypothesis.isascii():
        return None
    return with_hypothesis(pair, pair.hypothesis.encode().decode("latin-1"))


def remove_end(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
    if not pair.source.endswith((".", "?", "!")) or not pair.hypothesis.endswith(
        (".", "?", "!", "。")
    ):
        return None
    return with_hypothesis(pair, pair.hypothesis[:-1])


def drop_bracket(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
    if pair.hypothesis.count(")") != 1 or pair.hypothesis.count("(") != 1:
        return None
    return with_hypothesis(pair, pair.hypothesis.replace(")", ""))


def double_word(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
    words = pair.hypothesis.split()
    n = rng.randrange(len(words))
    if not words[n].isalpha() or words[n][0].isupper() or len(words[n]) < 4:
        return None
    return with_hypothesis(pair, " ".join([*words[:n], words[n], *words[n:]]))


DAMAGES: dict[str, Sequence[Damage]] = {
    **{kind: (drop_token(kind),) for kind in INSERTIONS},
    "numbers": (change_digit, drop_number),
    "units": (change_unit,),
    "added-text": (add_sentences,),
    "untranslated": (copy_source,),
    "chatter": (add_chatter,),
    "length-ratio": (cut,),
    "repetition": (loop,),
    "mojibake": (encode_wrongly,),
    "end-mark": (remove_end,),
    "brackets": (drop_bracket,),
    "double-words": (double_word,),
}
ONE_LANGUAGE = {
    "double-words": REPEATABLE_WORDS,
    "end-mark": ("de", "en", "fr", "ru"),
    "mojibake": ("de", "fr", "cs"),
    "acronyms": ("cs", "de", "en", "fr", "ja", "ru", "zh"),
}
WMT_SETS = {
    "dev": ("da/wmt16", "modern/train/esa/wmt24"),
    "test": ("da/wmt17", "modern/dev/esa/wmt24", "modern/dev/da/wmt22", "modern/dev/mqm/ted21"),
}
MAX_SAMPLE, MAX_TRIALS = 12_000, 4_000
HEADER = """\
| check | FLORES | worst pair | WMT | found | found in outputs |
| --- | ---: | --- | ---: | ---: | ---: |"""


def make_pairs(lines: dict[str, list[str]], languages: Sequence[str]) -> Iterator[TranslationPair]:
    """Yield pairs from and into English."""
    for language in languages:
        if language != "en":
            for english, other in zip(lines["en"], lines[language], strict=True):
                yield TranslationPair(english, other, "en", language)
                yield TranslationPair(other, english, language, "en")


def read_wmt(data: Path, part: str, field: str) -> list[TranslationPair]:
    """Return sources with their references or outputs (`field`), each pair of texts once."""
    pairs: dict[tuple[str, str, str, str], None] = {}
    for file in (file for name in WMT_SETS[part] for file in sorted((data / name).glob("*.gz"))):
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            for row in map(json.loads, stream):
                if row.get(field) and row["source"]:
                    source, _, target = row["lp"].partition("-")
                    pairs[row["source"].strip(), row[field].strip(), source, target] = None
    return [TranslationPair(*texts) for texts in pairs]


def read_outputs(data: Path, lines: dict[str, list[str]], part: slice) -> list[TranslationPair]:
    """Return outputs of systems for lines of FLORES."""
    pairs = []
    with tarfile.open(data / "parallel" / "flores.tar.xz") as archive:
        for member in archive:
            if not member.name.startswith("outputs/") or not member.isfile():
                continue
            languages = Path(member.name).name.split(".")[0].replace("nb", "no").split("-")
            if not {*languages} <= {*lines}:
                continue
            stream = archive.extractfile(member)
            assert stream is not None
            texts = io.TextIOWrapper(stream, encoding="utf-8").read().split("\n")[part]
            both = zip(lines[languages[0]], texts, strict=False)
            source, target = languages
            pairs += [TranslationPair(a, b.strip(), source, target) for a, b in both if b.strip()]
    return pairs


def replace_language(lines: dict[str, list[str]]) -> Damage:
    """Replace the translation by a line in another language."""

    def damage(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
        languages = {pair.source_language, pair.target_language}
        other = rng.choice([code for code in sorted(lines) if code not in languages])
        return with_hypothesis(pair, rng.choice(lines[other]))

    return damage


def measure_recall(
    pairs: Sequence[TranslationPair], all_damages: dict[str, Sequence[Damage]], show: str = ""
) -> dict[str, float]:
    """Return the share of damaged translations that each check reports.

    Translations with a finding before the damage do not count.
    """
    shares: dict[str, float] = {}
    for kind, damages in all_damages.items():
        check, rng, trials, hits = CHECKS_BY_ID[kind], random.Random(1), 0, 0
        runner = CheckRunner([check])
        for n, pair in enumerate(pairs):
            if kind in ONE_LANGUAGE and pair.target_language not in ONE_LANGUAGE[kind]:
                continue
            if trials == MAX_TRIALS or next(runner.run([pair])):
                continue
            damaged = damages[n % len(damages)](pair, rng)
            if damaged is not None:
                trials += 1
                is_found = bool(next(runner.run([damaged])))
                hits += is_found
                if kind == show and not is_found:
                    print(f"not found: {damaged.source}\n  {damaged.hypothesis}")
        shares[kind] = hits / trials if trials else math.nan
    return shares


def count_findings(
    pairs: Sequence[TranslationPair], show: str = ""
) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Count the segments with findings of each check by language pair, and all segments."""
    alarms: dict[str, Counter[str]] = {check.id: Counter() for check in CHECKS}
    sizes: Counter[str] = Counter()
    for pair, spans in zip(pairs, CheckRunner(CHECKS).run(pairs), strict=True):
        languages = f"{pair.source_language}-{pair.target_language}"
        sizes[languages] += 1
        for kind in {span.category for span in spans}:
            alarms[kind][languages] += 1
            if kind == show:
                own = next(span for span in spans if span.category == kind)
                print(f"{languages}: {own.message}\n  {pair.source}\n  {pair.hypothesis}")
    return alarms, sizes


def measure_speed(pairs: Sequence[TranslationPair]) -> float:
    """Return the largest number of segments per second in several runs of all checks."""
    texts = [(p.source, p.hypothesis, p.source_language, p.target_language) for p in pairs]
    runner, seconds = CheckRunner(CHECKS), math.inf
    for _ in range(5):
        start = time.process_time()
        deque(runner.run(TranslationPair(*text) for text in texts), maxlen=0)
        seconds = min(seconds, time.process_time() - start)
    return len(texts) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("TERTIUM_DATA"))
    parser.add_argument("--languages", nargs="+", help="default: all languages of FLORES")
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--step", type=int, default=1, help="measure every Nth line")
    parser.add_argument("--show", metavar="ID", default="", help="print errors of one check")
    args = parser.parse_args()
    part = slice(0, FLORES_DEV_LINES, args.step)
    if args.part == "test":
        part = slice(FLORES_DEV_LINES, None, args.step)
    lines = read_flores(args.data, part)
    lines = {code: [t.strip() for t in texts if t] for code, texts in lines.items()}
    pairs = [*make_pairs(lines, args.languages or [*lines])]
    wmt = read_wmt(args.data, args.part, "reference")[:: args.step]
    alarms, sizes = count_findings(pairs, args.show)
    wmt_alarms, wmt_sizes = count_findings(wmt, args.show)
    outputs = read_outputs(args.data, lines, part)[:: 4 * args.step]
    outputs += read_wmt(args.data, args.part, "hypothesis")[:: args.step]
    random.Random(2).shuffle(outputs)
    damages = {**DAMAGES, "wrong-language": (replace_language(lines),)}
    sample = random.Random(2).sample(pairs, min(len(pairs), MAX_SAMPLE))
    shares = [measure_recall(own, damages, args.show) for own in (sample, outputs[:MAX_SAMPLE])]
    if args.show:
        return
    print(HEADER)
    for check in CHECKS:
        counts = alarms[check.id]
        worst = max(counts, key=lambda pair: counts[pair] / sizes[pair], default="")
        cells = (
            f"{1000 * counts.total() / sizes.total():.2f}",
            f"{worst} {1000 * counts[worst] / sizes[worst]:.1f}" if worst else "",
            f"{1000 * wmt_alarms[check.id].total() / wmt_sizes.total():.2f}",
            *(f"{own[check.id]:.3f}" if check.id in own else "" for own in shares),
        )
        print(f"| `{check.id}` | {' | '.join(cells)} |")
    speed = measure_speed(sample)
    counts_text = f"{sizes.total():,} FLORES and {wmt_sizes.total():,} WMT segments"
    print(f"\n{counts_text}, {len(outputs):,} outputs, {speed:,.0f} segments per second")


if __name__ == "__main__":
    main()
