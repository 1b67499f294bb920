"""The command `annotate`: raters judge the translations of a campaign in their browsers."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tertium.core.atomic import OWNER_ONLY, write_text
from tertium.core.errors import UsageError
from tertium.core.extras import require_modules
from tertium.core.options import FileKind, InFile, Option, Output
from tertium.core.result import Column, Result, Table, View
from tertium.people.campaign import read_campaign
from tertium.people.session import (
    bind_socket,
    default_database,
    is_loopback,
    make_link,
    open_session,
    public_address,
)

DEFAULT_PORT, MAX_PORT = 8000, 65535

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Links(Result):
    """New links by person. They are passwords, so that only their owner can read a file of them."""

    links: Mapping[str, str]

    def contents(self) -> list[str]:
        """Return aligned lines, for terminals of any width."""
        width = max(map(len, self.links), default=0)
        return [f"{name:<{width}}  {link}" for name, link in self.links.items()]

    def tables(self) -> list[Table]:
        """Return one row per person."""
        columns = [Column("name", lambda row: row[0]), Column("link", lambda row: row[1])]
        return [Table(columns, [*self.links.items()])]


def annotate_campaign(
    campaign: InFile,
    /,
    output: Output,
    *,
    answers: Annotated[InFile | None, Option(group="Input")] = None,
    new_links: Annotated[bool, Option(group="Output")] = False,
    listen: Annotated[str, Option(group="Runtime", metavar="HOST:PORT")] = "127.0.0.1:8000",
) -> View:
    """Serve a campaign: raters judge translations in their browsers.

    Parameters
    ----------
    campaign
        Campaign file of `tertium plan`.
    answers
        Database of the answers (default: the campaign file, ending in .answers.db).
    new_links
        Replace all links; the old ones stop working.
    listen
        Address and port to listen on; 127.0.0.1 is this machine only, port 0 a free one.

    Examples
    --------
    tertium annotate campaign.json
    tertium annotate campaign.json --listen 0.0.0.0:8000 -o links.tsv

    Notes
    -----
    The first start prints a link for each rater and one for the manager, and -o FILE.tsv writes
    them. The links stay valid after a restart; --new-links replaces them. Every action is on disk
    before the page says "Saved". `tertium agree CAMPAIGN -o judgments.jsonl` writes the judgments
    so far, also while the server is running.
    """
    files = output.split({"results": FileKind(Links, (".tsv",))})["results"]
    content = read_campaign(campaign)
    host, port = parse_address(listen)
    require_modules("starlette", "uvicorn", purpose="`tertium annotate`")
    path = answers or default_database(campaign)
    with ExitStack() as opened:
        listener = opened.enter_context(bind_socket(host, port))
        session = opened.enter_context(open_session(content, path))
        port = int(listener.getsockname()[1])
        tokens, address = session.new_tokens(replace=new_links), public_address(host)
        links = Links(
            {
                person or "manager": make_link(address, port, person, token)
                for person, token in tokens.items()
            }
        )
        resources = opened.pop_all()
    for file in files if tokens else ():  # a restart without new links keeps the files
        text = "".join(f"{name}\t{link}\n" for name, link in links.links.items())
        write_text(file, text, private=True)
        Path(file).chmod(OWNER_ONLY)  # also of a file that existed
    lines = []
    if len(tokens) <= len(content.raters):
        lines.append(
            f"serving on port {port}; links printed earlier stay valid (--new-links replaces them)"
        )
    if not is_loopback(host):
        lines.append(
            "warning: other machines can connect, without encryption: use a trusted network or a "
            "proxy with TLS"
        )

    def run_server() -> None:
        from tertium.people.server import serve

        with resources:
            serve(session, listener)
            count = len(session.state.answers())
        logger.warning("stopped; %d answers in %s", count, path)

    return View(
        result=links,
        warnings=[*lines, "press Ctrl+C to stop"],
        warns_aside=True,
        then=run_server,
    )


def parse_address(text: str) -> tuple[str, int]:
    """Split the value of --listen into a host and a port.

    >>> parse_address("0.0.0.0:80"), parse_address("0.0.0.0")
    (('0.0.0.0', 80), ('0.0.0.0', 8000))
    """
    host, _, port = (text if ":" in text else f"{text}:{DEFAULT_PORT}").rpartition(":")
    if not host or not port.isdecimal() or int(port) > MAX_PORT:
        raise UsageError(f"--listen {text}: expected HOST:PORT with a port from 0 to {MAX_PORT}")
    return host, int(port)
