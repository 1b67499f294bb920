"""Checks of text that programs read: placeholders, tags, entities, addresses, paths, Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tertium.checks.check import Check, Example, Finding, TranslationPair

Token = tuple[str, int, int]  # normalized text, start, end
Tokens = list[Token]

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

TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)((?:\s[^<>]*?)?)(/?)>")
ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*("[^"]*"|'[^']*')""")
# attributes that a translator does not change
FIXED_ATTRIBUTES = frozenset("id rid class src name type ctype equiv-text i ref".split())
VOID_TAGS = frozenset(
    "area base br col embed hr img input link meta source track wbr x bx ex bpt ept ph it".split()
)
ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}\d?|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
# characters that have to stay escaped; others may be written in any way
RESERVED_ENTITIES = frozenset({"&amp;", "&lt;", "&gt;"})

URL = re.compile(r"(?:https?|ftp)://[!-~]+|www\.[!-~]+", re.IGNORECASE)
LANGUAGE_IN_PATH = re.compile(r"(?<=[/.=])[a-z]{2}(?:[-_][A-Za-z]{2})?(?=[/.&?]|$)")
EMAIL = re.compile(r"(?<![@\w.+-])[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
PATH = re.compile(
    r"(?<![\w:/\\.<])(?:[A-Za-z]:\\|~/|\.{1,2}/|/)[A-Za-z0-9_.-]+(?:[/\\][A-Za-z0-9_.-]+)+"
    r"|\b[A-Za-z0-9_-]+\.(?:txt|pdf|py|js|ts|json|ya?ml|xml|html?|csv|tsv|docx?|xlsx?|pptx?|zip|exe"
    r"|dll|png|jpe?g|gif|svg|mp[34]|md|sh|bat|ini|cfg|conf|toml|log|sql|php|css|java|cpp)\b"
)
FILE_SUFFIX = re.compile(r"\.[a-z]{2}")
CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+)\1(?!`)")
MARKDOWN = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|\]\(|~~|^#{1,6} |^\s*\* (?=\S)", re.MULTILINE)


def compare_tokens(
    source: Sequence[Token],
    target: Sequence[Token],
    label: str,
    *,
    can_repeat: Callable[[str], bool] = lambda token: False,
    can_add: bool = False,
) -> list[Finding]:
    """Report tokens of the source that the translation lacks, and tokens that it adds.

    >>> compare_tokens([("%s", 0, 2)], [], "placeholder")
    [('source', 0, 2, 'placeholder %s is missing in the translation')]
    """
    missing = Counter(token for token, _, _ in source)
    extra = Counter(token for token, _, _ in target)
    if missing == extra:
        return []
    missing, extra = missing - extra, extra - missing
    findings: list[Finding] = []
    added: list[Finding] = []
    for token, start, end in reversed(source):
        if missing[token] > 0:
            missing[token] -= 1
            text = f"{label} {token} is missing in the translation"
            findings.append(("source", start, end, text))
    source_tokens = {token for token, _, _ in source}
    for token, start, end in reversed(() if can_add else target):
        if extra[token] > 0:
            extra[token] -= 1
            if not (token in source_tokens and can_repeat(token)):
                text = f"{label} {token} is not in the source"
                added.append(("hypothesis", start, end, text))
    return findings[::-1] + added[::-1]


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


def read_tags(text: str) -> Tokens:
    """Return the XML or HTML tags of a text, with attributes that a translator does not change."""
    tokens: Tokens = []
    for match in TAG.finditer(text):
        closing, name, attributes, empty = match.groups()
        fixed = sorted(
            f" {key}={value[1:-1]}"
            for key, value in (ATTRIBUTE.findall(attributes) if attributes else ())
            if key.lower() in FIXED_ATTRIBUTES
        )
        is_void = bool(empty) or name.lower() in VOID_TAGS
        tokens.append((f"<{closing}{name}{''.join(fixed)}{'/' * is_void}>", *match.span()))
    return tokens


def find_tag_errors(pair: TranslationPair) -> list[Finding]:
    """Compare the tags of both texts, then their nesting."""
    source, target = read_tags(pair.source), read_tags(pair.hypothesis)
    findings = compare_tokens(source, target, "tag")
    if findings or find_bad_nesting(source) is not None:
        return findings
    broken = find_bad_nesting(target)
    if broken is None:
        return []
    return [("hypothesis", broken[1], broken[2], f"tag {broken[0]} is not nested as in the source")]


def find_bad_nesting(tokens: Sequence[Token]) -> Token | None:
    """Return the first tag that does not close the last open one, or an open one at the end.

    >>> find_bad_nesting(read_tags("<b><i>x</b></i>"))
    ('</b>', 7, 11)
    """
    opened: list[Token] = []
    for token in tokens:
        text = token[0]
        if text.startswith("</"):
            if not opened or opened.pop()[0][1:].rstrip(">").split(" ")[0] != text[2:-1]:
                return token
        elif not text.endswith("/>"):
            opened.append(token)
    return opened[-1] if opened else None


def find_entity_errors(pair: TranslationPair) -> list[Finding]:
    """Compare escaped characters that have to stay escaped; find those that are new."""
    source, target = (
        [(m[0], *m.span()) for m in ENTITY.finditer(text)]
        for text in (pair.source, pair.hypothesis)
    )
    if not source:
        target = target if "&" not in pair.source else []
        return [("hypothesis", a, b, f"entity {t} is not in the source") for t, a, b in target]
    reserved = [[t for t in side if t[0] in RESERVED_ENTITIES] for side in (source, target)]
    findings = compare_tokens(reserved[0], reserved[1], "entity")
    double = [m.span() for m in re.finditer(r"&amp;(?=[a-z]{2,8};|#\d)", pair.hypothesis)]
    if double and "&amp;" + "amp;" not in pair.source:
        findings = [("hypothesis", a, b, "the entity is escaped twice") for a, b in double]
    return findings


def _read_urls(text: str) -> Tokens:
    tokens: Tokens = []
    for match in URL.finditer(text):
        url = re.split(r"[<>\"'`]", match[0])[0].rstrip(".,;:!?*_")
        while url.endswith((")", "]", "}")) and url.count(url[-1]) > url.count(
            {")": "(", "]": "[", "}": "{"}[url[-1]]
        ):
            url = url[:-1].rstrip(".,;:!?")
        tokens.append((LANGUAGE_IN_PATH.sub("*", url), match.start(), match.start() + len(url)))
    return tokens


def find_url_errors(pair: TranslationPair) -> list[Finding]:
    """Compare web addresses; language codes in paths may differ."""
    source, target = pair.source, pair.hypothesis
    if not ("://" in source or "://" in target or "www." in source or "www." in target):
        return []
    return compare_tokens(
        _read_urls(pair.source), _read_urls(pair.hypothesis), "URL", can_repeat=lambda token: True
    )


def find_email_errors(pair: TranslationPair) -> list[Finding]:
    """Compare e-mail addresses."""
    return _compare_matches(EMAIL, pair, "e-mail address")


def find_path_errors(pair: TranslationPair) -> list[Finding]:
    """Compare file names and paths outside of URLs and tags."""
    text = pair.source
    if not ("/" in text or "\\" in text) and FILE_SUFFIX.search(text) is None:
        return []
    if PATH.search(pair.source) is None:
        return []
    hidden = re.compile(rf"{URL.pattern}|<[^<>]*>|{EMAIL.pattern}")
    source, target = (
        [
            (m[0].rstrip("."), m.start(), m.start() + len(m[0].rstrip(".")))
            for m in PATH.finditer(hidden.sub(lambda m: " " * len(m[0]), text))
        ]
        for text in (pair.source, pair.hypothesis)
    )
    missing = [token for token in source if token[0] not in pair.hypothesis]
    return compare_tokens(missing, [], "path") if missing or target else []


def find_code_errors(pair: TranslationPair) -> list[Finding]:
    """Compare code between backticks."""
    source, target = (
        [(f"`{m[2]}`", *m.span()) for m in CODE_SPAN.finditer(text)]
        for text in (pair.source, pair.hypothesis)
    )
    return compare_tokens(source, target, "code", can_repeat=lambda token: True)


def find_markdown_errors(pair: TranslationPair) -> list[Finding]:
    """Compare the number of Markdown marks: bold, links, headings, list items."""
    source, target = (
        [(m[0].strip(), m.start(), m.start() + len(m[0])) for m in MARKDOWN.finditer(text)]
        for text in (pair.source, pair.hypothesis)
    )
    return compare_tokens(source, target, "Markdown mark")


def _compare_matches(pattern: re.Pattern[str], pair: TranslationPair, label: str) -> list[Finding]:
    source, target = (
        [(m[0], *m.span()) for m in pattern.finditer(text)]
        for text in (pair.source, pair.hypothesis)
    )
    return compare_tokens(source, target, label, can_repeat=lambda token: True)


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
    Check(
        "tags",
        "The translation has the XML or HTML tags of the source, correctly nested.",
        "critical",
        Example("Press <b>OK</b>.", "Drücken Sie <b>OK</b>."),
        Example("Press <b>OK</b>.", "Drücken Sie <b>OK<b>."),
        find_tag_errors,
        characters="<",
    ),
    Check(
        "entities",
        "Escaped characters such as &amp; stay escaped, once.",
        "major",
        Example("Terms &amp; conditions", "Bestimmungen &amp; Bedingungen"),
        Example("Terms &amp; conditions", "Bestimmungen &amp;amp; Bedingungen"),
        find_entity_errors,
        characters="&",
    ),
    Check(
        "urls",
        "The translation has the web addresses of the source; language codes in them may differ.",
        "major",
        Example("See https://example.org/en/help.", "Siehe https://example.org/de/help."),
        Example("See https://example.org/help.", "Siehe https://example.org/hilfe."),
        find_url_errors,
    ),
    Check(
        "emails",
        "The translation has the e-mail addresses of the source.",
        "major",
        Example("Write to help@example.org.", "Schreiben Sie an help@example.org."),
        Example("Write to help@example.org.", "Schreiben Sie an hilfe@example.org."),
        find_email_errors,
        characters="@",
    ),
    Check(
        "paths",
        "File names and paths of the source are copied.",
        "major",
        Example("Open /etc/app/main.conf.", "Öffnen Sie /etc/app/main.conf."),
        Example("Open /etc/app/main.conf.", "Öffnen Sie /etc/app/haupt.conf."),
        find_path_errors,
    ),
    Check(
        "code",
        "Code between backticks is copied.",
        "major",
        Example("Run `make test`.", "Führen Sie `make test` aus."),
        Example("Run `make test`.", "Führen Sie `mache Test` aus."),
        find_code_errors,
        characters="`",
    ),
    Check(
        "markdown",
        "The translation has as many Markdown marks (bold, links, headings, lists) as the source.",
        "minor",
        Example("This is **important**.", "Das ist **wichtig**."),
        Example("This is **important**.", "Das ist **wichtig*."),
        find_markdown_errors,
        characters="*_[~#",
    ),
)  # fmt: skip
