"""Check of placeholders, including those of ICU messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tertium.checks.check import Check, Example, Finding, TranslationPair
from tertium.checks.markup import Tokens, compare_tokens

_PRINTF = r"[-+0#]*\d*(?:\.\d+)?(?:hh|h|ll|l|q|j|z|t|L)?[@diouxXeEfFgGcsSp]"
PLACEHOLDER = re.compile(
    rf"(?P<escape>%%)|\$\{{[^{{}}\s]+\}}|\{{\{{[^{{}}]*\}}\}}|%\(\w+\){_PRINTF}"
    rf"|(?P<printf>(?<!\d)%(?:\d+\$)?{_PRINTF})|%[A-Za-z_]\w+%"
    r"|\{[\w.\[\]]*(?:![rsa])?(?::[^{}\s]*)?\}"
)
ICU = re.compile(r"\{\s*([\w.-]+)\s*,\s*(plural|select|selectordinal)\s*,")
ICU_SIMPLE = re.compile(
    r"\{\s*([\w.-]+)\s*,\s*(number|date|time|spellout|ordinal|duration)\b[^{}]*\}"
)
ICU_BRANCH = re.compile(r"\s*(?:offset:\d+\s+)?([\w=.-]+)\s*\{")
PLURAL_CATEGORIES = frozenset("zero one two few many other".split())


def find_placeholder_errors(pair: TranslationPair) -> list[Finding]:
    """Compare the placeholders of both texts; ICU messages are compared branch by branch."""
    texts = pair.source, pair.hypothesis
    findings: list[Finding] = []
    source, target = (read_placeholders(text) for text in texts)
    messages = [[*read_icu_messages(text)] for text in texts]
    if messages[0] or messages[1]:
        findings += _compare_icu(messages[0], messages[1], texts)
    findings += compare_tokens(
        source, target, "placeholder", can_repeat=lambda t: not t.startswith("%") or t[1] == "("
    )
    return findings or _find_reordered_arguments(source, target)


def read_placeholders(text: str) -> Tokens:
    """Return the placeholders outside of ICU messages; numbered printf ones without number."""
    ranges = [(start, end) for _, _, _, start, end in read_icu_messages(text)]
    tokens: Tokens = []
    for match in ICU_SIMPLE.finditer(text) if "," in text else ():
        tokens.append(("".join(match[0].split()), *match.span()))
    for match in PLACEHOLDER.finditer(text):
        if match["escape"] or any(start <= match.start() < end for start, end in ranges):
            continue
        token = re.sub(r"^%\d+\$", "%", match[0]) if match["printf"] else match[0]
        tokens.append((token, *match.span()))
    return tokens


def _find_reordered_arguments(source: Tokens, target: Tokens) -> list[Finding]:
    """Report unnumbered printf placeholders of different types in another order."""
    order = [token for token, _, _ in source if token[0] == "%" and token[1] not in "("]
    if len({*order}) < 2:
        return []
    theirs = [entry for entry in target if entry[0][0] == "%" and entry[0][1] not in "("]
    if [t for t, _, _ in theirs] == order or any(e - s > len(t) for t, s, e in theirs):
        return []  # the same order, or numbered arguments
    moved = next(entry for entry, t in zip(theirs, order, strict=True) if entry[0] != t)
    text = f"placeholder {moved[0]} is in another position: number the arguments (%1$s)"
    return [("hypothesis", moved[1], moved[2], text)]


Message = tuple[str, str, dict[str, str], int, int]  # argument, type, branches, start, end


def read_icu_messages(text: str) -> Iterator[Message]:
    """Yield the outermost plural and select messages of a text.

    >>> [(m[0], m[1], m[2]) for m in read_icu_messages("{n, plural, one {a file} other {# files}}")]
    [('n', 'plural', {'one': 'a file', 'other': '# files'})]
    """
    end = 0
    for match in ICU.finditer(text) if "," in text and "{" in text else ():
        if match.start() < end:
            continue  # inside another message
        branches, end = _read_branches(text, match.end())
        yield match[1], match[2], branches, match.start(), end


def _read_branches(text: str, place: int) -> tuple[dict[str, str], int]:
    branches: dict[str, str] = {}
    while branch := ICU_BRANCH.match(text, place):
        depth, place = 1, branch.end()
        while place < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            place += 1
        branches[branch[1]] = text[branch.end() : place - (depth == 0)]
    closing = re.compile(r"\s*\}").match(text, place)
    return branches, closing.end() if closing else len(text)


def _compare_icu(
    source: Sequence[Message], target: Sequence[Message], texts: tuple[str, str]
) -> Iterator[Finding]:
    heads = [[(f"{{{m[0]}, {m[1]}}}", m[3], m[4]) for m in side] for side in (source, target)]
    differences = compare_tokens(heads[0], heads[1], "ICU message")
    if differences:
        yield from differences
        return
    theirs = {(m[0], m[1]): m for m in target}
    for argument, kind, branches, _, _ in source:
        _, _, other_branches, start, end = theirs[argument, kind]
        yield from (
            ("hypothesis", start, end, message)
            for message in _compare_branches(kind, branches, other_branches)
        )
        if not texts[1][start:end].endswith("}"):
            yield "hypothesis", start, end, "the ICU message is not closed"


def _compare_branches(kind: str, source: dict[str, str], target: dict[str, str]) -> Iterator[str]:
    if "other" in source and "other" not in target:
        yield "the ICU message has no branch other"
    if kind == "select":
        for name in sorted({*source} ^ {*target} - {"other"}):
            where = "the translation" if name in source else "the source"
            yield f"branch {name} of the ICU message is missing in {where}"
    else:
        for name in target:
            if name not in PLURAL_CATEGORIES and not name.startswith("="):
                yield f"{name} is not a plural category: expected one of zero, one, two, few, many"
    expected = {token for token, _, _ in read_placeholders(source.get("other", ""))}
    needs_number = kind != "select" and "#" in source.get("other", "")
    for name, text in target.items():
        tokens = {token for token, _, _ in read_placeholders(text)}
        reference = source.get(name)
        own = {t for t, _, _ in read_placeholders(reference)} if reference else expected
        for token in sorted(tokens ^ own):
            where = "is missing" if token in own else "is not in the source"
            yield f"placeholder {token} {where} in branch {name}"
        if needs_number and name in ("few", "many", "other") and "#" not in text:
            yield f"# is missing in branch {name}"


CHECKS = (
    Check(
        "placeholders",
        "Every placeholder of the source is in the translation, and no other.",
        "critical",
        Example("%d files in {folder}", "%d Dateien in {folder}"),
        Example("%d files in {folder}", "Dateien in {Ordner}"),
        find_placeholder_errors,
        characters="{%",
    ),
)  # fmt: skip
