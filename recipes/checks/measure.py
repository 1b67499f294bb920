"""Measure the checks: `python -m recipes.checks.measure --data DIR`.

False alarms: findings per 1,000 segments of FLORES (test part), human translations from and into
English, without blanks at the ends of lines. Found share: the share of damaged translations in
which the check reports a finding. Prints the table of docs/guides/checks.md.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from recipes.languages.lines import FLORES_DEV_LINES, read_flores
from tertium.checks.catalog import CHECKS, CHECKS_BY_ID
from tertium.checks.check import CheckRunner, TranslationPair
from tertium.checks.numbers import NUMBER, find_number_errors, may_be_spelled_out, read_numbers
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
        if kind == "identifiers":
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
    "untranslated": (copy_source,),
    "chatter": (add_chatter,),
    "length-ratio": (cut,),
    "repetition": (loop,),
    "mojibake": (encode_wrongly,),
    "end-mark": (remove_end,),
    "brackets": (drop_bracket,),
    "double-words": (double_word,),
}
ONE_LANGUAGE = {"double-words": "de", "end-mark": "de", "mojibake": "fr"}


def make_pairs(lines: dict[str, list[str]], languages: Sequence[str]) -> Iterator[TranslationPair]:
    """Yield pairs from and into English."""
    for language in languages:
        if language != "en":
            for english, other in zip(lines["en"], lines[language], strict=True):
                yield TranslationPair(english, other, "en", language)
                yield TranslationPair(other, english, language, "en")


def replace_language(lines: dict[str, list[str]]) -> Damage:
    """Replace the translation by a line in another language."""

    def damage(pair: TranslationPair, rng: random.Random) -> TranslationPair | None:
        languages = {pair.source_language, pair.target_language}
        other = rng.choice([code for code in sorted(lines) if code not in languages])
        return with_hypothesis(pair, rng.choice(lines[other]))

    return damage


def measure_recall(
    pairs: Sequence[TranslationPair], all_damages: dict[str, Sequence[Damage]]
) -> dict[str, tuple[int, int]]:
    """Return the number of damaged translations and of those that the check reports."""
    counts: dict[str, tuple[int, int]] = {}
    for kind, damages in all_damages.items():
        check, rng, trials, hits = CHECKS_BY_ID[kind], random.Random(1), 0, 0
        for n, pair in enumerate(pairs):
            if kind in ONE_LANGUAGE and pair.target_language != ONE_LANGUAGE[kind]:
                continue
            if kind == "numbers" and find_number_errors(pair):
                continue  # reported already
            damaged = damages[n % len(damages)](pair, rng)
            if damaged is not None:
                trials += 1
                hits += bool(check.find(damaged))
        counts[kind] = trials, hits
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("TERTIUM_DATA"))
    parser.add_argument("--languages", nargs="+", help="default: all languages of FLORES")
    parser.add_argument("--step", type=int, default=1, help="measure every Nth line")
    parser.add_argument("--show", metavar="ID", help="print the false alarms of one check")
    args = parser.parse_args()
    lines = read_flores(args.data, slice(FLORES_DEV_LINES, None, args.step))
    lines = {code: [t.strip() for t in texts if t] for code, texts in lines.items()}
    pairs = [*make_pairs(lines, args.languages or [*lines])]
    alarms: dict[str, Counter[str]] = {check.id: Counter() for check in CHECKS}
    sizes: Counter[str] = Counter()
    run = CheckRunner(CHECKS)
    start = time.process_time()
    for pair, spans in zip(pairs, run.run(pairs), strict=True):
        languages = f"{pair.source_language}-{pair.target_language}"
        sizes[languages] += 1
        for kind in {span.category for span in spans}:
            alarms[kind][languages] += 1
            if kind == args.show:
                own = next(span for span in spans if span.category == kind)
                print(f"{languages}: {own.message}\n  {pair.source}\n  {pair.hypothesis}")
    speed = len(pairs) / (time.process_time() - start)
    if args.show:
        return
    damages = {**DAMAGES, "wrong-language": (replace_language(lines),)}
    recall = measure_recall(random.Random(2).sample(pairs, min(len(pairs), 4000)), damages)
    print("| check | false alarms per 1,000 | worst pair | found |\n| --- | ---: | --- | ---: |")
    for check in CHECKS:
        counts = alarms[check.id]
        rate = 1000 * counts.total() / len(pairs)
        worst = max(counts, key=lambda pair: counts[pair] / sizes[pair], default="")
        rate_of_worst = f"{worst} {1000 * counts[worst] / sizes[worst]:.1f}" if worst else ""
        trials, hits = recall.get(check.id, (0, 0))
        share = f"{hits / trials:.3f}" if trials else ""
        print(f"| `{check.id}` | {rate:.2f} | {rate_of_worst} | {share} |")
    print(f"\n{len(pairs):,} segments, {speed:,.0f} segments per second of one core")


if __name__ == "__main__":
    main()
