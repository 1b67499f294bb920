"""Check of placeholders, including those of ICU messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tertium.checks.check import Check, Example, Finding, TranslationPair
from tertium.checks.markup import Tokens, compare_tokens

_STAR = r"\*(?:\d+\$)?"  # a width or a precision that is an argument of its own
_PRINTF = (
    rf"[-+0#',]*(?:{_STAR}|\d*)(?:\.(?:{_STAR}|\d+))?"
    r"(?:hh|h|ll|l|q|j|z|t|L)?[@diouxXeEfFgGcsSp]"
)
PLACEHOLDER = re.compile(
    rf"(?P<escape>%%)|\$\{{[^{{}}\s]+\}}|\{{\{{[^{{}}]*\}}\}}|%\(\w+\){_PRINTF}"
    rf"|(?P<printf>(?<!\d)%(?:\d+\$)?{_PRINTF})|%[A-Za-z_]\w+%"
    r"|\{[\w.\[\]]*(?:![rsa])?(?::[^{}\s]*)?\}"
)
ARGUMENT_NUMBER = re.compile(r"%(\d+)\$")
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
    is_numbered = "$" in texts[0] + texts[1] and (
        _has_argument(source, texts[0], numbered=True)
        or _has_argument(target, texts[1], numbered=True)
    )
    if is_numbered:
        findings += _find_mixed_numbering(source, target, texts)
        source = _number_arguments(source, texts[0])
        target = _number_arguments(target, texts[1])
    findings += compare_tokens(
        source, target, "placeholder", can_repeat=lambda token: not _is_argument(token)
    )
    return findings or ([] if is_numbered else _find_reordered_arguments(source, target))


def read_placeholders(text: str) -> Tokens:
    """Return the placeholders outside of ICU messages; printf ones without argument numbers."""
    ranges = [(start, end) for _, _, _, start, end in read_icu_messages(text)]
    tokens: Tokens = []
    for match in ICU_SIMPLE.finditer(text) if "," in text else ():
        tokens.append(("".join(match[0].split()), *match.span()))
    for match in PLACEHOLDER.finditer(text):
        if match["escape"] or any(start <= match.start() < end for start, end in ranges):
            continue
        token = re.sub(r"\d+\$", "", match[0]) if match["printf"] else match[0]
        tokens.append((token, *match.span()))
    return tokens


def _is_argument(token: str) -> bool:
    """Tell whether a placeholder is a printf argument: not `%(name)s` and not `%NAME%`."""
    return token[0] == "%" and token[1] != "(" and token[-1] != "%"


def _has_argument(tokens: Tokens, text: str, *, numbered: bool) -> bool:
    return any(
        _is_argument(token) and bool(ARGUMENT_NUMBER.match(text, start)) == numbered
        for token, start, _ in tokens
    )


def _number_arguments(tokens: Tokens, text: str) -> Tokens:
    """Write printf placeholders with the number of their argument: `%s` becomes `%1$s`.

    An argument may be used more than once by its number; all uses of the same type are one token.
    """
    numbered: Tokens = []
    seen: set[str] = set()
    position = 0
    for token, start, end in tokens:
        if _is_argument(token):
            if match := ARGUMENT_NUMBER.match(text, start):
                number = match[1]
            else:
                position += 1 + token.count("*")
                number = str(position)
            token = f"%{number}${token[1:]}"
            if token in seen:
                continue
            seen.add(token)
        numbered.append((token, start, end))
    return numbered


def _find_mixed_numbering(
    source: Tokens, target: Tokens, texts: tuple[str, str]
) -> Iterator[Finding]:
    """Report a translation that numbers some arguments only, which C does not define."""
    is_mixed = [
        _has_argument(tokens, text, numbered=True) and _has_argument(tokens, text, numbered=False)
        for tokens, text in zip((source, target), texts, strict=True)
    ]
    if is_mixed == [False, True]:
        for token, start, end in target:
            if _is_argument(token) and not ARGUMENT_NUMBER.match(texts[1], start):
                text = f"placeholder {token} has no number: number all arguments (%1$s) or none"
                yield "hypothesis", start, end, text


def _find_reordered_arguments(source: Tokens, target: Tokens) -> list[Finding]:
    """Report unnumbered printf placeholders of different types in another order."""
    order = [token for token, _, _ in source if _is_argument(token)]
    theirs = [entry for entry in target if _is_argument(entry[0])]
    if [token for token, _, _ in theirs] == order:
        return []
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
    ordered_source, ordered_target = (sorted(s, key=lambda m: m[:2]) for s in (source, target))
    for ours, theirs in zip(ordered_source, ordered_target, strict=True):
        kind, branches = ours[1], ours[2]
        other_branches, start, end = theirs[2:]
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
        for name in sorted(({*source} ^ {*target}) - {"other"}):
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
