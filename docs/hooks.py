"""MkDocs hooks: add pages from outside docs/ to the site and adjust links.

On the site, docs/ and the root of the repository are one folder. Links to files that are not pages,
such as the license, become plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "examples/README.md")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/."""
    for name in OUTSIDE:
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Adjust links between docs/ and the rest of the repository."""
    here = page.file.src_uri
    folder = posixpath.dirname(here if here in OUTSIDE else f"docs/{here}")

    def follow(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        place = path.removeprefix("docs/")
        if files.get_file_from_path(place) is None and (ROOT / path).exists():
            return text
        return f"[{text}]({posixpath.relpath(place, posixpath.dirname(here) or '.')}{anchor})"

    parts = re.split(r"(^```.*?^```)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if n % 2 else LINK.sub(follow, part) for n, part in enumerate(parts))
