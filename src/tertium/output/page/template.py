"""The frame of all HTML pages: head, style, scripts and a content security policy.

The policy allows only the scripts of the page, by hash, so that text from segments can never run.
A page needs no network access.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

from tertium.output.markup import Markup, element, escape
from tertium.version import __version__

EARLY_SCRIPT = "theme"  # in the head: it runs before the first paint
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@lru_cache(maxsize=16)
def read_asset(name: str) -> str:
    """Return the text of a template, style sheet or script of this package."""
    return (files("tertium.output.page") / name).read_text(encoding="utf-8")


def fill_template(name: str, values: Mapping[str, str]) -> Markup:
    """Return a template with its placeholders replaced; texts that are not markup are escaped."""

    def value_of(match: re.Match[str]) -> str:
        value = values[match[1]]
        return value if isinstance(value, Markup) else escape(value)

    return Markup(_PLACEHOLDER.sub(value_of, read_asset(name)))


def render_page(
    contents: Markup,
    scripts: Sequence[str],
    *,
    title: str,
    subtitle: str,
    heading: str = "",
    navigation: str = "",
    unit: str = "results",
) -> str:
    """Return a self-contained page; `scripts` are joined in this order, `unit` names the contents.

    `heading` is the title as markup, if it is not plain text.
    """
    early, script = _join_scripts(EARLY_SCRIPT), _join_scripts(*scripts)
    values = {
        "title": title,
        "heading": heading or title,
        "subtitle": subtitle,
        "navigation": navigation,
        "contents": contents,
        "unit": unit,
        "version": __version__,
        "style": Markup(read_asset("charts.css") + read_asset("page.css")),
        "policy": _content_security_policy(early, script),
        "early_script": Markup(early),
        "script": Markup(script),
    }
    return str(fill_template("page.html", values))


def section(name: str, title: str, contents: Markup) -> Markup:
    """Return a section with a heading; `name` is the target of links."""
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, contents, id=name, aria_labelledby=f"{name}-title")


def _join_scripts(*names: str) -> str:
    return "".join(read_asset(f"script/{name}.js") for name in names)


def _content_security_policy(*scripts: str) -> str:
    digests = [hashlib.sha256(script.encode("utf-8")).digest() for script in scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(d).decode('ascii')}'" for d in digests)
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
