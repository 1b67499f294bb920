"""Check of placeholders, including those of ICU messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import itemgetter

from tertium.checks.check import Findings, TranslationPair, declare_check
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


@declare_check(
    "placeholders",
    "critical",
    "%d files in {folder}",
    "%d Dateien in {folder}",
    "Dateien in {Ordner}",
    characters="{%",
)
def find_placeholder_errors(pair: TranslationPair) -> Findings:
    """Every placeholder of the source is in the translation, and no other."""
    texts = pair.source, pair.hypothesis
    source, target = map(read_placeholders, texts)
    messages, translations = map(read_icu_messages, texts)
    findings = [*_compare_icu([*messages], [*translations], pair.hypothesis)]
    numbering, theirs = map(_read_numbering, (source, target), texts)
    is_numbered = True in numbering | theirs
    if is_numbered:
        if len(numbering) < len(theirs) == 2:  # C does not define a mixture
            findings += _find_unnumbered(target, pair.hypothesis)
        source, target = map(_number_arguments, (source, target), texts)
    findings += compare_tokens(
        source, target, "placeholder", can_repeat=lambda token: not _is_argument(token)
    )
    if not findings and not is_numbered:
        findings += _find_reordered_arguments(source, target)
    yield from findings


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


def _read_numbering(tokens: Tokens, text: str) -> set[bool]:
    """Return whether arguments are numbered: none, some of them or all."""
    places = [start for token, start, _ in tokens if _is_argument(token)]
    return {ARGUMENT_NUMBER.match(text, place) is not None for place in places}


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


def _find_unnumbered(tokens: Tokens, text: str) -> Findings:
    """Report the arguments of a translation that have no number, if others have one."""
    for token, start, end in tokens:
        if _is_argument(token) and not ARGUMENT_NUMBER.match(text, start):
            problem = f"placeholder {token} has no number: number all arguments (%1$s) or none"
            yield "hypothesis", start, end, problem


def _find_reordered_arguments(source: Tokens, target: Tokens) -> Findings:
    """Report the first unnumbered printf placeholder of another type than in the source."""
    order = [token for token, _, _ in source if _is_argument(token)]
    arguments = [entry for entry in target if _is_argument(entry[0])]
    for expected, (token, start, end) in zip(order, arguments, strict=True):
        if token != expected:
            text = f"placeholder {token} is in another position: number the arguments (%1$s)"
            yield "hypothesis", start, end, text
            return


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
        depth = 1
        place = branch.end()
        while place < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            place += 1
        branches[branch[1]] = text[branch.end() : place - (depth == 0)]
    closing = re.compile(r"\s*\}").match(text, place)
    return branches, closing.end() if closing else len(text)


def _compare_icu(source: Sequence[Message], target: Sequence[Message], text: str) -> Findings:
    heads, their_heads = (
        [(f"{{{m[0]}, {m[1]}}}", *m[3:]) for m in side] for side in (source, target)
    )
    differences = [*compare_tokens(heads, their_heads, "ICU message")]
    yield from differences
    if differences:
        return
    ordered, ordered_target = (sorted(side, key=itemgetter(0, 1)) for side in (source, target))
    for ours, theirs in zip(ordered, ordered_target, strict=True):
        _, kind, branches, _, _ = ours
        _, _, translations, start, end = theirs
        for message in _compare_branches(kind, branches, translations):
            yield "hypothesis", start, end, message
        if not text[start:end].endswith("}"):
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
    default = source.get("other", "")
    needs_number = kind != "select" and "#" in default
    for name, text in target.items():
        sides = (read_placeholders(side) for side in (source.get(name) or default, text))
        expected, tokens = ({token for token, _, _ in side} for side in sides)
        for token in sorted(tokens ^ expected):
            where = "is missing" if token in expected else "is not in the source"
            yield f"placeholder {token} {where} in branch {name}"
        if needs_number and name in ("few", "many", "other") and "#" not in text:
            yield f"# is missing in branch {name}"
