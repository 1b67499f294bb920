"""Checks of text that programs read: tags, entities, addresses, paths, Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from tertium.checks.check import Check, Example, Finding, TranslationPair

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
    for token, start, end in reversed(target):
        if extra[token] > 0:
            extra[token] -= 1
            if not (token in source_tokens and can_repeat(token)):
                text = f"{label} {token} is not in the source"
                added.append(("hypothesis", start, end, text))
    return findings[::-1] + added[::-1]


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
    source, target = (
        [(m[0], *m.span()) for m in EMAIL.finditer(text)] for text in (pair.source, pair.hypothesis)
    )
    return compare_tokens(source, target, "e-mail address", can_repeat=lambda token: True)


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


CHECKS = (
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
