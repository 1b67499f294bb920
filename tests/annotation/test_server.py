"""The server: raters, the manager, links and bad requests, without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from tests.annotation.running_server import (
    EMOJI,
    RunningServer,
    fill_disk,
    make_campaign,
    new_event,
    submit_score,
    with_context_and_suspicions,
)

from tertium.people.annotation_store import MANAGER
from tertium.people.campaign import Assignment, Campaign, CampaignItem
from tertium.people.server import AnnotationServer
from tertium.people.state import MAX_BAD_TOKENS, AnnotationSession


class Client:
    """Sends requests of any person to a server in this process."""

    def __init__(self, campaign: Campaign, database: Path) -> None:
        self.session = AnnotationSession(campaign, database)
        self.tokens = {**self.session.new_tokens()}
        self.app = AnnotationServer(self.session).app

    def request(
        self, path: str, body: Any = None, *, person: str = "anna", token: str | None = None
    ) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            headers = {"Authorization": f"Bearer {self.tokens[person] if token is None else token}"}
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                if body is None:
                    return await client.get(path, headers=headers)
                return await client.post(path, content=json.dumps(body), headers=headers)

        return asyncio.run(send())

    def post(self, *events: dict[str, Any], person: str = "anna") -> Any:
        response = self.request("/api/events", {"events": [*events]}, person=person)
        assert response.status_code == 200, response.text
        return response.json()

    def manage(self, kind: str, **more: Any) -> httpx.Response:
        body = {"id": new_event()["id"], "kind": kind, **more}
        return self.request("/api/manage", body, person=MANAGER)

    def states(self, person: str = "anna") -> list[Any]:
        return list(self.request("/api/states", person=person).json()["states"])

    def export(self) -> list[dict[str, Any]]:
        response = self.request("/api/export", person=MANAGER)
        return [json.loads(line) for line in response.text.splitlines()]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[[Campaign], Client]]:
    clients: list[Client] = []

    def start(campaign: Campaign) -> Client:
        clients.append(Client(campaign, tmp_path / f"{campaign.id}.db"))
        return clients[-1]

    yield start
    for client in clients:
        client.session.close()


def test_tasks_do_not_name_systems(connect: Callable[[Campaign], Client]) -> None:
    client = connect(with_context_and_suspicions(make_campaign("esa")))
    response = client.request("/api/tasks")
    assert response.status_code == 200
    assert "alpha" not in response.text
    assert "beta" not in response.text
    task = response.json()["tasks"][0]
    assert task["outputs"] == [{"text": EMOJI}]
    assert task["before"] == [{"source": "Davor.", "outputs": ["Before."]}]
    mark = {"start": 8, "end": 9, "side": "hypothesis", "severity": "major", "category": ""}
    assert task["suspected"] == [[{**mark, "prefilled": True}]]
    assert response.json()["campaign"]["severities"] == ["minor", "major"]


def test_answers_are_exported_as_judgments(connect: Callable[[Campaign], Client]) -> None:
    client = connect(with_context_and_suspicions(make_campaign("esa")))
    marks = [
        {"start": 8, "end": 9, "severity": "major", "prefilled": True},
        {"start": 10, "end": 15, "severity": "minor"},
        {"severity": "major"},
    ]
    event = new_event("submit", outputs=[{"score": 61, "marks": marks}], comment="hm", ms=4500)
    assert client.post(event) == {"saved": [event["id"]], "rejected": [], "is_stopped": False}
    [row] = client.export()
    expected = {"segment": "i0", "hypothesis": EMOJI, "score": 61, "rater": "anna"}
    assert (expected | {"system": "alpha"}).items() <= row.items()
    assert row["comment"] == "hm"
    assert row["seconds"] == 4.5
    assert [EMOJI[span["start"] : span["end"]] for span in row["spans"]] == ["🐶", "barks"]
    assert row["spans"][0]["message"] == "prefilled by tertium-multi"
    assert row["missing"] == [{"severity": "major", "rater": "anna"}]


@pytest.mark.parametrize(
    ("protocol", "outputs", "score"),
    [
        ("da", [{"score": 80}], 80),
        (
            "mqm",
            [{"marks": [{"start": 0, "end": 3, "severity": "major", "category": "Style"}]}],
            -5,
        ),
        ("mqm", [{"marks": [{"start": 0, "end": 3, "side": "source", "severity": "minor"}]}], -1),
        ("mqm", [{}], 0),
        ("ranking", [{"rank": 2}, {"rank": 1}], 0),
        ("contrastive-esa", [{"score": 30}, {"score": 70}], 30),
        ("post-edit", [{"edited": "The dog 🐶 barks loudly."}], -20),
    ],
)
def test_every_protocol_gives_judgments(
    connect: Callable[[Campaign], Client], protocol: str, outputs: list[Any], score: float
) -> None:
    client = connect(make_campaign(protocol))
    assert client.post(new_event("submit", outputs=outputs))["rejected"] == []
    rows = client.export()
    assert len(rows) == len(outputs)
    assert rows[0]["score"] == pytest.approx(score)


def test_state_is_a_fold_over_events(connect: Callable[[Campaign], Client], tmp_path: Path) -> None:
    """Drafts, answers, changes after the answer, skips and times, also after a restart."""
    client = connect(make_campaign("esa"))
    client.post(
        new_event("open"),
        new_event("change", outputs=[{"score": 10}], ms=1000),
        new_event("change", 1, outputs=[{"marks": [{"start": 0, "end": 1, "severity": "minor"}]}]),
        submit_score(0, 20, ms=500),
        new_event("change", outputs=[{"score": 30}], detail="undo"),
        new_event("skip", 2, reason="broken"),
        new_event("leave", ms=250),
    )
    first, second, third, fourth = client.states()
    assert (first["status"], first["outputs"][0]["score"]) == ("done", 30)
    assert (second["status"], third["status"], third["reason"]) == ("open", "skipped", "broken")
    assert fourth is None
    again = AnnotationSession(client.session.campaign, client.session.store.path)
    assert again.state.answers() == client.session.state.answers()
    [answer] = again.state.answers()
    assert (answer.score, answer.seconds) == (30, 1.75)
    again.close()


@pytest.mark.parametrize(
    ("protocol", "complete", "incomplete"),
    [("esa", {"score": 20}, {}), ("post-edit", {"edited": "A dog."}, {"edited": " "})],
)
def test_an_incomplete_change_reopens_a_task(
    connect: Callable[[Campaign], Client], protocol: str, complete: Any, incomplete: Any
) -> None:
    client = connect(make_campaign(protocol))
    client.post(new_event("submit", outputs=[complete]), new_event("change", outputs=[incomplete]))
    assert client.states()[0]["status"] == "open"
    assert client.session.state.answers() == []
    rejected = client.post(new_event("submit", outputs=[incomplete]))["rejected"]
    assert "not complete" in rejected[0]["message"]


def test_a_resent_event_is_no_duplicate(connect: Callable[[Campaign], Client]) -> None:
    client = connect(make_campaign("esa"))
    event = submit_score(0, 20, ms=1000)
    assert client.post(event) == client.post(event)
    [answer] = client.session.state.answers()
    assert answer.seconds == 1.0
    other = {**submit_score(0, 99), "id": event["id"]}
    assert client.post(other)["rejected"][0]["message"].startswith("the id of an event was used")
    assert client.session.state.answers() == [answer]


def change_marks(mark: dict[str, Any]) -> dict[str, Any]:
    return new_event("change", outputs=[{"marks": [mark]}])


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (new_event("submit", outputs=[{}]), "not complete"),
        (new_event("submit", 99, outputs=[{"score": 1}]), "task 99 does not exist"),
        (new_event("submit", outputs=[{"score": 101}]), "a score from 0 to 100"),
        (new_event("submit", outputs=[{"score": 1}, {"score": 1}]), "2 answers for 1"),
        (new_event("change", outputs=[{"rank": 1}]), "has 'rank'"),
        (change_marks({"start": 0, "end": 99, "severity": "minor"}), "99"),
        (change_marks({"start": 5, "end": 5, "severity": "minor"}), "span"),
        (change_marks({"severity": "awful"}), "severity"),
        (new_event("change", outputs=[{}], comment="\ud83d"), "surrogate"),
        (new_event("skip", reason="\udc00"), "surrogate"),
        (new_event("skip", reason=" "), "without a reason"),
        (new_event("dance"), "kind"),
        (new_event("leave", ms=-1), "milliseconds"),
        ({"id": "1", "body": {"kind": "open"}}, "32 hexadecimal digits"),
        (7, "not an object"),
    ],
)
def test_invalid_events_are_rejected_and_do_not_hold_up_others(
    connect: Callable[[Campaign], Client], event: Any, message: str
) -> None:
    client = connect(make_campaign("esa"))
    good = submit_score(1, 50)
    body = json.loads(json.dumps({"events": [event, good]}))
    answer = client.request("/api/events", body).json()
    assert answer["saved"] == [good["id"]]
    [rejected] = answer["rejected"]
    assert message in rejected["message"]
    assert "\n" not in rejected["message"]


def test_links_are_needed_and_belong_to_one_person(
    connect: Callable[[Campaign], Client],
) -> None:
    client = connect(make_campaign("esa"))
    unknown = client.request("/api/tasks", token="no-such-token")
    assert unknown.status_code == 401
    assert unknown.json()["error"].startswith("this link is not valid for this campaign")
    assert client.request("/api/tasks", person=MANAGER).status_code == 403
    for path in ("/api/progress", "/api/export"):
        assert client.request(path).status_code == 403
    assert client.request("/api/manage", {"kind": "stop"}).status_code == 403
    stored = client.session.store.path.read_bytes()
    assert not any(token.encode() in stored for token in client.tokens.values())


def test_replaced_links_stop_working(connect: Callable[[Campaign], Client]) -> None:
    client = connect(make_campaign("esa"))
    old = client.tokens["anna"]
    assert client.session.new_tokens() == {}  # everybody has a link
    client.tokens = {**client.session.new_tokens(replace=True)}
    server = AnnotationServer(client.session)
    client.app = server.app
    response = client.request("/api/tasks", token=old)
    assert "was replaced by a newer one" in response.json()["error"]
    assert client.request("/api/tasks").status_code == 200


def test_many_bad_tokens_are_slowed_down(connect: Callable[[Campaign], Client]) -> None:
    client = connect(make_campaign("esa"))
    codes = [client.request("/api/states", token=f"t{n}").status_code for n in range(13)]
    assert codes == [401] * MAX_BAD_TOKENS + [429] * (13 - MAX_BAD_TOKENS)
    assert client.request("/api/states").status_code == 200  # offices share an address


@pytest.mark.parametrize("path", ["", "manager", "static/rater.js", "api/tasks", "nothing"])
def test_every_response_has_a_strict_policy(
    serve: Callable[[Campaign], RunningServer], path: str
) -> None:
    address = serve(make_campaign("esa")).address
    headers = httpx.get(f"{address}{path}", trust_env=False).headers
    assert (
        "default-src 'none'; script-src 'self'; style-src 'self'"
        in (headers["content-security-policy"])
    )
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "set-cookie" not in headers
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(("path", "skip"), [("/", "task"), ("/manager", "results")])
def test_both_pages_have_the_same_opening(
    connect: Callable[[Campaign], Client], path: str, skip: str
) -> None:
    page = connect(make_campaign("esa")).request(path).text
    assert page.startswith("<!doctype html>")
    assert f"Skip to the {skip}</a>" in page
    assert (page.count("<header"), page.count("</header>"), page.count("{")) == (1, 1, 0)


def test_a_full_disk_is_reported_and_the_answer_can_be_sent_again(
    connect: Callable[[Campaign], Client],
) -> None:
    client = connect(make_campaign("esa"))
    fill_disk(client.session.store)
    event = submit_score(0, 50, comment="x" * 19_000)
    for _ in range(9):  # the write-ahead log of SQLite is limited, too
        response = client.request("/api/events", {"events": [event]})
    assert response.status_code == 507
    assert "disk is full" in response.json()["error"]
    assert client.states() == [None] * 4
    client.session.store._database.execute("PRAGMA max_page_count = 1000000")
    assert client.post(event)["saved"] == [event["id"]]


def test_bad_requests_get_one_line(connect: Callable[[Campaign], Client]) -> None:
    client = connect(make_campaign("esa"))
    assert client.request("/api/events", ["x"]).json() == {
        "error": "the request is not a JSON object"
    }
    assert client.request("/api/events", {"events": 1}).status_code == 400
    assert client.request("/api/events", {"events": [{}] * 201}).status_code == 400
    large = client.request("/api/events", {"events": ["x" * 4_000_001]})
    assert large.status_code == 413
    assert client.manage("dance").status_code == 400
    assert client.manage("extend", rater="nobody", count=1).status_code == 400
    assert client.manage("extend", rater="anna", count=0).status_code == 400


def test_the_manager_stops_reopens_and_extends(connect: Callable[[Campaign], Client]) -> None:
    campaign = make_campaign("esa")
    beta = tuple(Assignment(item=item.id, systems=("beta",)) for item in campaign.items)
    client = connect(replace(campaign, id="", assignments={**campaign.assignments, "ben": beta}))
    assert client.manage("stop").json()["is_stopped"] is True
    late = submit_score(0, 50)  # was waiting in the page
    assert client.post(late) == {"saved": [late["id"]], "rejected": [], "is_stopped": True}
    assert client.manage("reopen").json()["is_stopped"] is False
    body = {"id": new_event()["id"], "kind": "extend", "rater": "anna", "count": 3}
    for _ in range(2):  # sent twice
        progress = client.request("/api/manage", body, person=MANAGER).json()
    assert progress["raters"][0]["tasks"] == 7
    tasks = client.session.state.raters["anna"].tasks
    assert [task.systems for task in tasks[4:]] == [("beta",)] * 3
    client.manage("extend", rater="anna", count=9)
    assert len(tasks) == 8
    assert "has all tasks" in client.manage("extend", rater="anna", count=1).json()["error"]
    again = AnnotationSession(client.session.campaign, client.session.store.path)
    assert again.state.raters["anna"].tasks == tasks
    again.close()


def test_the_manager_sees_progress_checks_and_suspicious_raters(
    connect: Callable[[Campaign], Client],
) -> None:
    campaign = make_campaign("da", texts=tuple((f"Satz {n}.", f"Sentence {n}.") for n in range(8)))
    check = CampaignItem(
        id="check",
        source="Satz 0.",
        outputs={"alpha": "Car."},
        kind="check",
        damage={"alpha": "other"},
        original="i0",
    )
    assignments = {
        rater: (*tasks, Assignment(item="check", systems=("alpha",)))
        for rater, tasks in campaign.assignments.items()
    }
    client = connect(
        replace(campaign, id="", items=(*campaign.items, check), assignments=assignments)
    )
    scores = [90, 70, 50, 30, 80, 60, 40, 20]
    for n, score in enumerate(scores):
        client.post(submit_score(n, score, ms=9000))
        client.post(submit_score(n, score + 5, ms=8000), person="ben")
        client.post(submit_score(n, 75, ms=900), person="chloé")
    for person, score in (("anna", 10), ("ben", 20), ("chloé", 75)):
        client.post(submit_score(8, score, ms=9000), person=person)
    progress = client.request("/api/progress", person=MANAGER).json()
    anna, ben, chloe = progress["raters"]
    assert (anna["done"], anna["tasks"], anna["seconds"]) == (9, 9, 9.0)
    assert anna["checks"] == ben["checks"] == {"passed": 1, "failed": 0}
    assert anna["agreement"] == ben["agreement"] == 1.0
    assert anna["suspicions"] == ben["suspicions"] == []
    assert chloe["suspicions"] == [
        "failed 1 of 1 attention checks",
        "much faster than the others",
        "almost always the same score",
    ]
    assert progress.pop("alpha") == 0.357  # of the irr package's formula, 24 ratings
    assert "alpha" not in json.dumps(progress)  # a system
    assert [row["segment"] for row in client.export()].count("check") == 0
