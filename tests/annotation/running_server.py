"""Campaigns and annotation servers for tests."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import uvicorn

from tertium.core.spans import Span
from tertium.people.annotation_store import EventStore
from tertium.people.campaign import (
    SIDE_BY_SIDE_PROTOCOLS,
    Assignment,
    Campaign,
    CampaignItem,
    DisplayOptions,
    GlossaryTerm,
    Neighbor,
)
from tertium.people.server import make_server
from tertium.people.state import AnnotationSession, bind_socket, make_link

# an emoji of two UTF-16 units, one of several code points, and a combining accent
EMOJI = "The dog 🐶 barks loud."
FAMILY = "A 👩‍👩‍👧 fami\u0301ly rests."
TEXTS = (
    ("Der Hund 🐶 bellt laut.", EMOJI),
    ("Eine Familie 👩‍👩‍👧 ruht.", FAMILY),
    ("Die Kommission hat die Fristen verlängert.", "The commission extended the deadline."),
    ("Guten Morgen!", "Good morning!"),
)


def make_campaign(
    protocol: str, texts: tuple[tuple[str, str], ...] = TEXTS, **settings: Any
) -> Campaign:
    """A campaign of two systems and three raters, who all judge the same outputs."""
    items = []
    for n, (source, output) in enumerate(texts):
        outputs = {"alpha": output, "beta": f"{output} Indeed."}
        items.append(
            CampaignItem(id=f"i{n}", document="talk", position=n, source=source, outputs=outputs)
        )
    raters = ("anna", "ben", "chloé")
    shown = ("beta", "alpha") if protocol in SIDE_BY_SIDE_PROTOCOLS else ("alpha",)
    assignments = {r: tuple(Assignment(item=i.id, systems=shown) for i in items) for r in raters}
    defaults: dict[str, Any] = {
        "name": "Test campaign",
        "source_language": "de",
        "target_language": "en",
        "systems": ("alpha", "beta"),
        "items": tuple(items),
        "raters": raters,
        "assignments": assignments,
        "glossary": (GlossaryTerm(source="Kommission", target="Commission"),),
    }
    return Campaign(protocol=protocol, **{**defaults, **settings})


def with_context_and_suspicions(campaign: Campaign) -> Campaign:
    """Add the segment before each item, and a span that is marked in advance."""
    first = campaign.items[0]
    neighbor = Neighbor(source="Davor.", outputs={"alpha": "Before."})
    changed = CampaignItem(
        **{
            **{name: getattr(first, name) for name in first.__dataclass_fields__},
            "before": (neighbor,),
            "suspected": {"alpha": (Span(8, 9, severity="major"),)},
        }
    )
    options = DisplayOptions(context_size=1, suspicions="tertium-multi")
    return replace(campaign, id="", items=(changed, *campaign.items[1:]), options=options)


def new_event(kind: str = "change", task: int = 0, **body: Any) -> dict[str, Any]:
    """An event as the page makes it."""
    return {"id": secrets.token_hex(16), "body": {"kind": kind, "task": task, **body}}


def submit_score(task: int, score: float, **body: Any) -> dict[str, Any]:
    return new_event("submit", task, outputs=[{"score": score}], **body)


def fill_disk(store: EventStore) -> None:
    """Let SQLite report a full disk: no page may be added to the file."""
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count = {pages}")


@dataclass
class RunningServer:
    """A server in a thread."""

    session: AnnotationSession
    tokens: Mapping[str, str]
    port: int
    server: uvicorn.Server
    thread: threading.Thread = field(repr=False)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def link(self, person: str) -> str:
        return make_link("127.0.0.1", self.port, person, self.tokens[person])

    def stop(self) -> None:
        self.server.should_exit = True
        self.server.force_exit = True
        self.thread.join(10)
        self.session.close()


def run_server(campaign: Campaign, database: Path, port: int = 0) -> RunningServer:
    """Start a server on a free port."""
    session = AnnotationSession(campaign, database)
    tokens = session.new_tokens(replace=True)
    listener = bind_socket("127.0.0.1", port)
    server = make_server(session)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    return RunningServer(session, tokens, listener.getsockname()[1], server, thread)
