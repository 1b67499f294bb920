"""`tertium annotate`: raters judge the translations of a campaign in their browsers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tertium.cli import output
from tertium.cli.parser import CommandParser
from tertium.errors import DataError, UsageError

if TYPE_CHECKING:
    from tertium.annotation.session import AnnotationSession
    from tertium.campaigns.campaign import Campaign

DEFAULT_PORT = 8000

DESCRIPTION = "Serve a campaign: raters judge translations in their browsers."
EPILOG = """\
examples:
  tertium annotate campaign.json
  tertium annotate campaign.json --host 0.0.0.0 --links links.tsv
  tertium annotate campaign.json -o judgments.jsonl

The first start prints a link for each rater and one for the manager. The links stay valid after a
restart; --new-links replaces them. Every action is on disk before the page says "Saved".
-o writes the judgments so far and exits, also while a server is running.
"""


def add_arguments(parser: CommandParser) -> None:
    group = parser.groups["Input"]
    group.add_argument("campaign", metavar="CAMPAIGN", help="campaign file of `tertium plan`")
    group.add_argument(
        "--database",
        metavar="FILE",
        help="answers (default: the campaign file, ending in .answers.db)",
    )
    group = parser.groups["Output"]
    group.add_argument("-o", "--output", metavar="FILE", help="write judgments as JSONL and exit")
    group.add_argument("--links", metavar="FILE", help="also write the links to this file")
    group.add_argument(
        "--new-links", action="store_true", help="replace all links; the old ones stop working"
    )
    output.add_quiet(parser)
    group = parser.groups["Runtime"]
    group.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: 127.0.0.1, this machine only)",
    )
    group.add_argument(
        "--port",
        type=int,
        default=DEFAULT_PORT,
        help=f"port to listen on, 0 for a free one (default: {DEFAULT_PORT})",
    )


def run(args: argparse.Namespace) -> int:
    from tertium.annotation.session import bind_socket, default_database, open_session
    from tertium.campaigns.campaign import read_campaign
    from tertium.extras import require_modules

    campaign = read_campaign(args.campaign)
    database = args.database or default_database(args.campaign)
    if args.output:
        return _export(campaign, database, args.output)
    if not 0 <= args.port <= 65535:
        raise UsageError(f"--port {args.port}: expected a number from 0 to 65535")
    require_modules("starlette", "uvicorn", purpose="`tertium annotate`")
    with bind_socket(args.host, args.port) as listener, open_session(campaign, database) as session:
        port = int(listener.getsockname()[1])
        _print_links(args, session, port)
        session.serve(listener)
        done = len(session.state.answers())
    print(f"stopped; {done} answers in {database}", file=sys.stderr)
    return 0


def _export(campaign: Campaign, database: str | Path, judgments: str) -> int:
    from tertium.annotation.session import AnnotationSession
    from tertium.campaigns.answers import write_judgments

    if not Path(database).exists():
        raise DataError(f"{database} does not exist: no answers yet, or give --database FILE")
    session = AnnotationSession(campaign, database)
    try:
        write_judgments(session.state.answers(), campaign, judgments)
    finally:
        session.close()
    return 0


def _print_links(args: argparse.Namespace, session: AnnotationSession, port: int) -> None:
    from tertium.annotation.access import describe_person
    from tertium.annotation.session import is_loopback, make_link, public_address
    from tertium.atomic import OWNER_ONLY, check_writable, write_text

    if args.links:
        check_writable(args.links)
    tokens, host = session.new_tokens(replace=args.new_links), public_address(args.host)
    links: Mapping[str, str] = {
        describe_person(person): make_link(host, port, person, token)
        for person, token in tokens.items()
    }
    if args.links and links:
        lines = [f"{name}\t{link}\n" for name, link in links.items()]
        write_text(args.links, lines, private=True)
        Path(args.links).chmod(OWNER_ONLY)  # links are passwords, also in a file that existed
    width = max(map(len, links), default=0)
    for name, link in links.items():
        print(f"{name:<{width}}  {link}")
    if len(links) <= len(session.campaign.raters):
        print(
            f"serving on port {port}; links printed earlier stay valid (--new-links replaces them)",
            file=sys.stderr,
        )
    if not is_loopback(args.host) and not args.quiet:
        print(
            "tertium: warning: other machines can connect, without encryption: use a trusted "
            "network or a proxy with TLS",
            file=sys.stderr,
        )
    if not args.quiet:
        print("press Ctrl+C to stop", file=sys.stderr)
    sys.stdout.flush()
