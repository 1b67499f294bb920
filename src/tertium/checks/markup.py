"""Checks of text that programs read: tags, entities, addresses, paths, Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from tertium.checks.check import Findings, TranslationPair, declare_check

Token = tuple[str, int, int]  # normalized text, start, end
Tokens = list[Token]


TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)((?:\s[^<>]*?)?)(/?)>")
ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*("[^"]*"|'[^']*')""")
# attributes that a translator does not change
FIXED_ATTRIBUTES = frozenset("id rid class src name type ctype equiv-text i ref".split())
VOID_TAGS = frozenset(
    "area base br col embed hr img input link meta source track wbr x bx ex bpt ept ph it".split()
)
ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}\d?|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
# characters that have to stay escaped; others may be written in any way
RESERVED_ENTITY = re.compile("&(?:amp|lt|gt);")
DOUBLE_ENTITY = re.compile(r"&amp;(?=[a-z]{2,8};|#\d)")

URL = re.compile(r"(?:https?|ftp)://[!-~]+|www\.[!-~]+", re.IGNORECASE)
LANGUAGE_IN_PATH = re.compile(r"(?<=[/.=])[a-z]{2}(?:[-_][A-Za-z]{2})?(?=[/.&?]|$)")
EMAIL = re.compile(r"(?<![@\w.+-])[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
PATH = re.compile(
    r"(?<![\w:/\\.<])(?:[A-Za-z]:\\|~/|\.{1,2}/|/)[A-Za-z0-9_.-]+(?:[/\\][A-Za-z0-9_.-]+)+"
    r"|\b[A-Za-z0-9_-]+\.(?:txt|pdf|py|js|ts|json|ya?ml|xml|html?|csv|tsv|docx?|xlsx?|pptx?|zip|exe"
    r"|dll|png|jpe?g|gif|svg|mp[34]|md|sh|bat|ini|cfg|conf|toml|log|sql|php|css|java|cpp)\b"
)
NO_PATH = re.compile(rf"{URL.pattern}|<[^<>]*>|{EMAIL.pattern}")
FILE_SUFFIX = re.compile(r"\.[a-z]{2}")
CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+)\1(?!`)")
MARKDOWN = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|\]\(|~~|^#{1,6} |^\s*\* (?=\S)", re.MULTILINE)


def compare_tokens(
    source: Sequence[Token],
    target: Sequence[Token],
    label: str,
    *,
    can_repeat: Callable[[str], bool] = lambda token: False,
) -> Findings:
    """Yield tokens of the source that the translation lacks, and tokens that it adds.

    >>> [*compare_tokens([("%s", 0, 2)], [], "placeholder")]
    [('source', 0, 2, 'placeholder %s is missing in the translation')]
    """
    ours, theirs = (Counter(token for token, _, _ in side) for side in (source, target))
    for token, start, end in _take_last(source, ours - theirs):
        yield "source", start, end, f"{label} {token} is missing in the translation"
    for token, start, end in _take_last(target, theirs - ours):
        if token not in ours or not can_repeat(token):
            yield "hypothesis", start, end, f"{label} {token} is not in the source"


def _take_last(tokens: Sequence[Token], counts: Counter[str]) -> Tokens:
    """Return the last tokens of each kind, as many as `counts` says."""
    last: Tokens = []
    for token in reversed(tokens):
        if counts[token[0]] > 0:
            counts[token[0]] -= 1
            last.append(token)
    return last[::-1]


def _compare_matches(
    pair: TranslationPair,
    pattern: re.Pattern[str],
    label: str,
    *,
    template: str = r"\g<0>",
    can_repeat: bool = False,
) -> Findings:
    """Compare the matches of a pattern in both texts, written as a template."""
    source, target = (
        [(match.expand(template).strip(), *match.span()) for match in pattern.finditer(text)]
        for text in (pair.source, pair.hypothesis)
    )
    return compare_tokens(source, target, label, can_repeat=lambda token: can_repeat)


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


@declare_check(
    "tags",
    "critical",
    "Press <b>OK</b>.",
    "Drücken Sie <b>OK</b>.",
    "Drücken Sie <b>OK<b>.",
    characters="<",
)
def find_tag_errors(pair: TranslationPair) -> Findings:
    """The translation has the XML or HTML tags of the source, correctly nested."""
    source = read_tags(pair.source)
    target = read_tags(pair.hypothesis)
    findings = [*compare_tokens(source, target, "tag")]
    yield from findings
    broken = find_bad_nesting(target)
    if broken and not findings and find_bad_nesting(source) is None:
        yield "hypothesis", *broken[1:], f"tag {broken[0]} is not nested as in the source"


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


@declare_check(
    "entities",
    "major",
    "Terms &amp; conditions",
    "Bestimmungen &amp; Bedingungen",
    "Bestimmungen &amp;amp; Bedingungen",
    characters="&",
)
def find_entity_errors(pair: TranslationPair) -> Findings:
    """Escaped characters such as &amp; stay escaped, once."""
    double = DOUBLE_ENTITY.finditer(pair.hypothesis) if "&amp;amp;" not in pair.source else ()
    if ENTITY.search(pair.source) is None:
        for match in ENTITY.finditer(pair.hypothesis) if "&" not in pair.source else ():
            yield "hypothesis", *match.span(), f"entity {match[0]} is not in the source"
    elif matches := [*double]:
        for match in matches:
            yield "hypothesis", *match.span(), "the entity is escaped twice"
    else:
        yield from _compare_matches(pair, RESERVED_ENTITY, "entity")


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


@declare_check(
    "urls",
    "major",
    "See https://example.org/en/help.",
    "Siehe https://example.org/de/help.",
    "Siehe https://example.org/de/hilfe.",
)
def find_url_errors(pair: TranslationPair) -> Findings:
    """The translation has the web addresses of the source; language codes in them may differ."""
    both = pair.source + pair.hypothesis
    if "://" in both or "www." in both:
        source, target = map(_read_urls, (pair.source, pair.hypothesis))
        yield from compare_tokens(source, target, "URL", can_repeat=lambda token: True)


@declare_check(
    "emails",
    "major",
    "Write to help@example.org.",
    "Schreiben Sie an help@example.org.",
    "Schreiben Sie an hilfe@example.org.",
    characters="@",
)
def find_email_errors(pair: TranslationPair) -> Findings:
    """The translation has the e-mail addresses of the source."""
    return _compare_matches(pair, EMAIL, "e-mail address", can_repeat=True)


@declare_check(
    "paths",
    "major",
    "Open /etc/app/main.conf.",
    "Öffnen Sie /etc/app/main.conf.",
    "Öffnen Sie /etc/app/haupt.conf.",
)
def find_path_errors(pair: TranslationPair) -> Findings:
    """File names and paths of the source are copied."""
    text = pair.source
    if not ("/" in text or "\\" in text) and FILE_SUFFIX.search(text) is None:
        return
    if PATH.search(text) is None:
        return
    for match in PATH.finditer(NO_PATH.sub(lambda hidden: " " * len(hidden[0]), text)):
        path = match[0].rstrip(".")
        if path not in pair.hypothesis:
            end = match.start() + len(path)
            yield "source", match.start(), end, f"path {path} is missing in the translation"


@declare_check(
    "code",
    "major",
    "Run `make test`.",
    "Führen Sie `make test` aus.",
    "Führen Sie `mache Test` aus.",
    characters="`",
)
def find_code_errors(pair: TranslationPair) -> Findings:
    """Code between backticks is copied."""
    return _compare_matches(pair, CODE_SPAN, "code", template=r"`\2`", can_repeat=True)


@declare_check(
    "markdown",
    "minor",
    "This is **important**.",
    "Das ist **wichtig**.",
    "Das ist **wichtig*.",
    characters="*_[~#",
)
def find_markdown_errors(pair: TranslationPair) -> Findings:
    """The translation has as many Markdown marks (bold, links, headings, lists) as the source."""
    return _compare_matches(pair, MARKDOWN, "Markdown mark")
