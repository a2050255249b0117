"""What programs get: each path, over a real socket."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.assembled.http.client import Client
from tests.assembled.http.conftest import Serving
from tests.service_face import NOW, FakeFace, executing
from trimtab.service.views import DecisionView, PlanView, StateView

FORMS = {
    "json": "application/json",
    "text": "text/plain",
    "markdown": "text/markdown",
    "html": "text/html",
    "reassignment": "application/json",
    "election": "application/json",
}


def test_a_probe_is_told_that_all_is_well(client: Client) -> None:
    for path in ("/healthz", "/readyz"):
        answer = client.get(path)
        assert (answer.status, answer.json) == (200, {"ok": True, "reasons": []})


def test_a_probe_is_told_why_not(client: Client, face: FakeFace) -> None:
    face.change(healthy=False, why_unhealthy=("The planner died: out of memory.",), ready=False, why_not_ready=("No samples yet.",))
    health, ready = client.get("/healthz"), client.get("/readyz")
    assert (health.status, health.json["reasons"]) == (503, ["The planner died: out of memory."])
    assert (ready.status, ready.json["reasons"]) == (503, ["No samples yet."])


def test_the_state_is_the_services_own_with_a_sentence(client: Client, face: FakeFace) -> None:
    answer = client.get("/api/v1/state").json
    said = answer.pop("glance")
    assert StateView.model_validate(answer) == face.now
    assert said["sentence"].startswith("All 12 brokers are outside their target range; a plan of ")
    assert said["sentence"].endswith(" waits for approval.")


def test_a_change_shows_at_once(client: Client, face: FakeFace) -> None:
    """An operator who paused must not be shown the state of before."""
    assert client.get("/api/v1/state").json["paused"] is False
    assert client.post("/api/v1/pause", {"who": "Ana", "why": "upgrade"}).status == 200
    assert client.get("/api/v1/state").json["paused"] is True
    assert face.done == [("pause", "Ana", "upgrade")]


def test_snapshot_goals_and_explanations_are_files_and_text(client: Client) -> None:
    snapshot, goals, why = client.get("/api/v1/snapshot"), client.get("/api/v1/goals"), client.get("/api/v1/explain?partition=orders-0")
    assert snapshot.json["brokers"]
    assert 'filename="trimtab-snapshot.json"' in snapshot.headers["content-disposition"]
    assert (goals.headers["content-type"], "goals:" in goals.text) == ("application/yaml", True)
    assert (why.headers["content-type"], why.text) == ("text/plain; charset=utf-8", "orders-0 is where it should be.\n")
    assert client.get("/api/v1/explain?broker=3").text.startswith("Broker 3 ")
    assert client.get("/api/v1/explain?broker=99").words == "Not Found: There is no broker 99 in the cluster. Name another one."


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("named", [True, False])
def test_a_plan_in_every_form(client: Client, face: FakeFace, form: str, named: bool) -> None:
    assert face.made is not None
    plan_id = face.made.plan_id if named else "current"
    answer = client.get(f"/api/v1/plans/{plan_id}?format={form}")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith(FORMS[form])
    assert answer.text == face.plan_text(None, form)  # type: ignore[arg-type]


def test_a_report_runs_apart_from_the_page(client: Client) -> None:
    """Its script is its own, but it must never reach the token that the page holds."""
    policy = client.get("/api/v1/plans/current?format=html").headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy


def test_actions_come_in_pages_that_add_up_to_the_plan_file(client: Client, face: FakeFace) -> None:
    whole = json.loads(face.plan_text(None, "json"))
    found: list[dict[str, object]] = []
    while True:
        page = client.get(f"/api/v1/plans/{whole['plan_id']}/actions?offset={len(found)}&limit=200").json
        if not page["actions"]:
            break
        found += page["actions"]
    assert found == whole["actions"]
    assert page["total"] == page["reachable"] == len(found)
    assert (page["goals"], page["summary"], page["lower_bounds"]) == (whole["goals"], whole["summary"], whole["lower_bounds"])


def test_a_plan_that_is_not_there_is_said_in_words(client: Client, face: FakeFace) -> None:
    assert client.get("/api/v1/plans/sha256:0").words.startswith("Not Found: There is no plan sha256:0; the newest is ")
    face.made = None
    answer = client.get("/api/v1/plans/current/actions")
    assert (answer.status, answer.words) == (404, "Not Found: There is no plan yet. See why_nothing.")


def test_decisions_go_back_page_by_page(client: Client, face: FakeFace) -> None:
    found: list[DecisionView] = []
    before = ""
    while True:
        page = client.get(f"/api/v1/decisions?limit=10{before}").json
        found += [DecisionView.model_validate(d) for d in page["decisions"]]
        if page["next_before"] is None:
            break
        before = f"&before={page['next_before']}"
    assert tuple(found) == face.past


def test_plans_are_listed_with_what_became_of_them(client: Client) -> None:
    plans = client.get("/api/v1/plans").json["plans"]
    assert [(p["decision_id"], p["newest_outcome"]) for p in plans] == [(41, None), (38, "done")]
    assert plans[0]["made_ms"] == NOW - 65_000


def test_approving_and_rejecting(client: Client, face: FakeFace) -> None:
    assert face.made is not None
    path = f"/api/v1/plans/{face.made.plan_id}"
    assert PlanView.model_validate(client.post(f"{path}/approve", {"who": "Ana"}).json).state == "approved"
    again = client.post(f"{path}/reject", {"who": "Ben", "why": "too late"})
    assert (again.status, "is approved already" in again.words) == (409, True)
    assert face.done == [("approve", face.made.plan_id, "Ana")]


def test_rolling_back(client: Client, face: FakeFace) -> None:
    assert face.made is not None
    answer = client.post(f"/api/v1/plans/{face.made.plan_id}/rollback", {"who": "Ana"})
    assert (answer.status, answer.json["note"]) == (200, "being taken back")
    assert face.done == [("rollback", face.made.plan_id, "Ana")]
    assert client.post("/api/v1/plans/sha256:0/rollback", {"who": "Ana"}).status == 404


def test_what_is_said_to_an_execution_names_the_plan_that_was_looked_at(client: Client, face: FakeFace) -> None:
    """Another one may be in progress by the time the request comes."""
    assert face.made is not None
    assert client.get("/api/v1/execution").status == 404
    face.now = face.now.model_copy(update={"execution": executing(face.made)})
    plan_id = face.made.plan_id
    assert client.get("/api/v1/execution").json["plan_id"] == plan_id
    body = {"who": "Ana", "plan_id": plan_id}
    for verb in ("cancel", "rollback"):
        assert client.post(f"/api/v1/execution/{verb}", {"who": "Ana", "plan_id": "sha256:0"}).status == 404
        assert client.post(f"/api/v1/execution/{verb}", {"who": "Ana"}).status == 400
    assert face.done == []
    assert client.post("/api/v1/execution/cancel", {**body, "why": "peak", "finish": True}).status == 202
    assert client.post("/api/v1/execution/cancel", body).status == 409
    assert client.post("/api/v1/execution/rollback", body).status == 202
    assert face.done == [("cancel", plan_id, "Ana", "peak", True), ("rollback", plan_id, "Ana")]


def test_only_the_plan_that_was_read_can_be_approved(client: Client, face: FakeFace) -> None:
    """`current` may be another plan by the time the request comes."""
    assert "Name the plan that you have read" in client.post("/api/v1/plans/current/approve").words
    assert client.post("/api/v1/plans/sha256:0/approve", {"who": "Ana"}).status == 404
    assert face.done == []


def test_the_other_changes(client: Client, face: FakeFace) -> None:
    assert client.post("/api/v1/plan", {"who": "Ana"}).status == 202
    face.now = face.now.model_copy(update={"paused": True})
    assert client.post("/api/v1/resume", {"who": "Ana"}).json == {"done": "Resumed."}
    drained = client.post("/api/v1/drain", {"broker": 3, "who": "Ana\u202e\nB"})
    assert drained.json == {"done": "Broker 3 is treated as draining from now on."}
    assert client.post("/api/v1/drain", {"broker": 3, "on": False, "who": "Ben"}).status == 200
    assert client.post("/api/v1/drain", {"broker": 77, "who": "Ben"}).status == 404
    assert face.done == [
        ("plan", "Ana"),
        ("resume", "Ana"),
        ("drain", 3, True, "Ana B"),
        ("drain", 3, False, "Ben"),
    ]


def test_resuming_what_is_not_paused_says_so(client: Client) -> None:
    answer = client.post("/api/v1/resume", {"who": "Ana"})
    assert (answer.status, answer.json) == (200, {"done": "It was not paused, so nothing is changed."})


@pytest.mark.parametrize("body", [None, {}, {"who": ""}, {"who": " \n"}])
def test_a_change_takes_a_name_for_the_record(client: Client, face: FakeFace, body: object) -> None:
    """Months later the history is to say who paused it."""
    answer = client.post("/api/v1/pause", body)
    assert answer.status == 400
    assert "who: " in answer.words
    assert face.done == []


def test_every_no_says_what_to_do(client: Client, face: FakeFace) -> None:
    assert face.made is not None
    path = f"/api/v1/plans/{face.made.plan_id}"
    who = {"who": "Ana"}
    client.post(f"{path}/approve", who)
    refusals = [client.post(f"{path}/approve", who), client.post(f"{path}/reject", who), client.post("/api/v1/drain", {"broker": 77} | who)]
    refusals += [client.get("/api/v1/explain?broker=99"), client.get("/api/v1/plans/sha256:0")]
    assert {a.status for a in refusals} == {404, 409}
    assert all(a.json["what_to_do"] for a in refusals)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/api/v1/decisions?limit=0", "limit: Input should be greater than or equal to 1"),
        ("/api/v1/decisions?limit=1&limit=2", "limit was given twice"),
        ("/api/v1/decisions?limits=1", "limits: unknown; known are limit, before"),
        ("/api/v1/explain", "expected either broker=ID or partition=TOPIC-PARTITION"),
        ("/api/v1/explain?broker=1&partition=a-0", "expected either broker=ID or partition=TOPIC-PARTITION"),
        ("/api/v1/plans/current?format=pdf", "format: Input should be 'json', 'text', 'markdown', 'html', 'reassignment' or 'election'"),
    ],
)
def test_what_is_asked_wrongly_is_named(client: Client, path: str, said: str) -> None:
    answer = client.get(path)
    assert answer.status == 400
    assert said in answer.words


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "found one that is cut off after 1 bytes"),
        (b'{"broker": 3, "who": "An', "found one that is cut off after 24 bytes"),
        (b'{"broker": 3,, "who": "Ana"}', "found text that is none: Expecting property name enclosed in double quotes (line 1"),
        (b'{"who": "\xff"}', "found byte 0xff at 9, which is not UTF-8"),
        (b'{"broker": 3}', "who: missing; expected who does it, for the record"),
        (b"[]", "Expected a JSON object"),
        (b'{"broker": "3"}', "broker: Input should be a valid integer"),
        (b'{"broker": 3, "hwo": "Ana"}', "hwo: unknown; known are who, broker, on"),
        (b"[" * 15_000, "Expected a JSON object"),
    ],
)
def test_what_is_sent_wrongly_is_named(client: Client, face: FakeFace, body: bytes, said: str) -> None:
    headers = {"Content-Type": "application/json", "Authorization": "Bearer a-token-of-some-length"}
    answer = client.ask("POST", "/api/v1/drain", body, headers)
    assert answer.status == 400
    assert said in answer.words
    assert face.done == []


def test_a_long_body_is_not_read(client: Client, face: FakeFace) -> None:
    assert client.post("/api/v1/pause", {"why": "x" * 20_000}).status == 413
    assert client.post("/api/v1/pause", {"who": "Ana", "why": "x" * 600}).status == 400
    assert face.done == []


def test_unknown_paths_and_methods(client: Client) -> None:
    assert client.get("/api/v1/nothing").words.startswith("Not Found: There is nothing at this path.")
    assert client.get("/assets/../settings.py").status == 404
    answer = client.get("/api/v1/pause")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert client.ask("HEAD", "/api/v1/state").status == 200


def test_a_bug_of_the_service_is_a_500_without_its_insides(client: Client, face: FakeFace) -> None:
    face.fails = ValueError("secret detail")
    for path in ("/api/v1/state", "/healthz"):
        answer = client.get(path)
        assert answer.status in (500, 503)
        assert "secret detail" not in answer.text
        assert "log says why" in answer.text


def test_the_page_and_its_files_load_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for path in ("/assets/report.css", "/assets/page.css", "/assets/page.js", "/assets/icon.svg"):
        assert path in page.text or path.endswith("dom.js")
        assert client.get(path).status == 200
    again = client.get("/assets/page.js", If_None_Match=client.get("/assets/page.js").headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_every_answer_has_the_headers_that_keep_it_safe(client: Client) -> None:
    for path in ("/", "/api/v1/state", "/metrics", "/nothing", "/api/v1/plans/current?format=html"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
        assert "set-cookie" not in headers
        assert "server" not in headers
    policy = client.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy


def test_long_answers_are_packed_for_those_who_can_unpack(client: Client) -> None:
    for path in ("/api/v1/plans/current", "/api/v1/snapshot", "/metrics", "/assets/page.css"):
        packed = client.get(path, Accept_Encoding="gzip")
        assert packed.headers["content-encoding"] == "gzip"
        if path != "/metrics":
            assert gzip.decompress(packed.body) == client.get(path).body


def test_two_servers_at_once_do_not_disturb_each_other(serving: Serving, face: FakeFace) -> None:
    first, second = Client(serving(face).url), Client(serving(face).url)
    assert first.get("/healthz").status == second.get("/healthz").status == 200
    assert 'route="/healthz",status="200"} 1.0' in first.get("/metrics").text
