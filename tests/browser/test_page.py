"""The live page as a person meets it, in headless Chromium over a real server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import SecretStr

from tests.browser.chromium import Tab
from tests.browser.page import LOADED, TOKEN, Opening
from tests.service_face import large, small
from trimtab.http import HttpSettings, serve
from trimtab.http.others import ClusterPart
from trimtab.service.views import DecisionView

EVIL = "<script>window.harm=1</script><img src=x onerror=window.harm=1>\u202e\u0007"


def test_the_page_shows_how_the_cluster_stands(tab: Tab, opening: Opening) -> None:
    face = small()
    opening(face)
    tab.until(LOADED)
    tab.until("document.querySelectorAll('table.actions tbody tr').length === 10")
    assert tab.text("h1").startswith("All 12 brokers are outside their target range; a plan of ")
    assert tab.run("document.title") == "Hard goal violated – example-skewed-12-brokers"
    assert tab.run("document.querySelectorAll('#charts figure').length") == 6
    assert tab.run("document.querySelectorAll('#charts .load').length") == 72
    assert "repair" in tab.text("table.actions tbody tr")
    goals = tab.text("#goals")
    assert "no broker reports produce_rate" in goals
    assert "12 → 0 violations" in goals
    assert "The same as before, but for figures: 37 times since" in tab.text("#decisions")
    assert "677 replica moves in 25 min" in tab.text("#decisions")
    assert "expected magic TTMB" in tab.text("#service")
    tab.click("#plan-actions .pages button")
    tab.until("document.querySelectorAll('table.actions tbody tr').length === 30")


def test_a_long_error_of_a_worker_leaves_the_names_of_workers_whole(tab: Tab, opening: Opening) -> None:
    """``metad`` above ``ata`` is not the name that a person looks for in the log."""
    face = small()
    workers = tuple(w.model_copy(update={"error": "no answer from the brokers: Connection refused. " * 3}) for w in face.now.workers)
    face.change(workers=workers)
    opening(face)
    tab.until(LOADED)
    broken = """[...document.querySelectorAll("table.workers tbody th")].filter((name) => {
      const text = document.createRange();
      text.selectNodeContents(name);
      return text.getClientRects().length !== 1;
    }).map((name) => name.textContent)"""
    assert tab.run(broken) == [], "names of workers are not broken within a word"


def test_every_table_picture_and_field_has_a_name_for_those_who_cannot_see(tab: Tab, opening: Opening) -> None:
    opening(small())
    tab.until(LOADED)
    tab.until("document.querySelectorAll('table.actions tbody tr').length === 10")
    nameless = tab.run("""[
      ...[...document.querySelectorAll("input, select")].filter((n) => !n.labels.length),
      ...[...document.querySelectorAll("main button")].filter((n) => !(n.getAttribute("aria-label") || n.textContent.trim())),
      ...[...document.querySelectorAll("svg")].filter((n) => !n.getAttribute("aria-label")),
      ...[...document.querySelectorAll("table")].filter((n) => !n.caption),
      ...[...document.querySelectorAll("thead th")].filter((n) => !n.textContent.trim()),
      ...[...document.querySelectorAll("thead th")].filter((n) => n.scope !== "col"),
      ...[...document.querySelectorAll("section")].filter((n) => !document.getElementById(n.getAttribute("aria-labelledby"))),
    ].map((n) => n.outerHTML.slice(0, 120))""")
    assert nameless == []
    assert tab.run("document.querySelectorAll('h1').length") == 1
    assert tab.run("document.querySelectorAll('[id]').length === new Set([...document.querySelectorAll('[id]')].map((n) => n.id)).size")


def test_a_change_appears_by_itself_and_is_spoken(tab: Tab, opening: Opening) -> None:
    face = small()
    opening(face)
    tab.until(LOADED)
    before = len([u for u in tab.requests if u.endswith("/state")])
    face.change(plan=None, why_nothing=("Broker 5 sent no samples for 90 s; see its reporter's log.",))
    tab.until("document.querySelector('#verdict').innerText.includes('Why nothing is happening')")
    assert "see its reporter's log" in tab.text("#verdict ul")
    assert tab.run("document.querySelector('#spoken').textContent.endsWith('All 12 brokers are outside their target range.')")
    assert "There is no plan yet." in tab.text("#plan")
    assert len([u for u in tab.requests if u.endswith("/state")]) > before
    face.change(healthy=False, why_unhealthy=("The planner died: out of memory.",))
    tab.until("document.querySelector('h1').textContent === 'The planner died: out of memory.'")


def test_several_clusters_stand_on_one_page_and_one_that_does_not_answer_says_so(tab: Tab, opening: Opening) -> None:
    other = large(20)
    other.change(cluster_id="another")
    server = serve(other, HttpSettings(port=0))
    try:
        entries = [ClusterPart(name="elsewhere", urls=[server.url.rstrip("/")]), ClusterPart(name="gone", urls=["http://127.0.0.1:9"])]
        opening(small(), cluster="home", clusters=entries)
        tab.until(LOADED)
        tab.until("document.querySelector('#clusters').innerText.includes('No answer')")
        home, elsewhere, gone = (tab.text(f".clusters li:nth-child({n})") for n in (1, 2, 3))
        assert home.startswith("home ▲ Hard goal violated this page")
        assert "The reporter of broker 18 is not heard." in elsewhere
        assert tab.run("document.querySelector('.clusters a').href") == server.url
        assert "No service answers: http://127.0.0.1:9: Connection refused." in gone
    finally:
        server.stop()


def test_a_standby_leads_to_the_instance_that_decides_and_says_the_same_once(tab: Tab, opening: Opening) -> None:
    face, decides = small(), small()
    leadership = face.now.leadership.model_copy(update={"leads": False, "controller": 7})
    face.change(leadership=leadership, plan=None, why_nothing=("Node 7 is the active controller (epoch 17); this instance only watches.",))
    decides.change(instance="controller-7")
    server = serve(decides, HttpSettings(port=0))
    try:
        opening(face, clusters=[ClusterPart(name="this one", urls=[server.url.rstrip("/")])])
        tab.until("Boolean(document.querySelector('#verdict a[data-key=decider]'))")
        assert tab.run("document.querySelector('#verdict a[data-key=decider]').href") == server.url
        assert tab.run("document.querySelector('#clusters').hidden"), "of this cluster alone the page says enough"
        assert "Why nothing is happening" not in tab.text("#verdict")
        assert tab.run("document.querySelector('#plan-now').disabled")
    finally:
        server.stop()


def test_a_day_of_the_same_plan_every_minute_is_one_line_and_a_change_is_not_lost_in_it(tab: Tab, opening: Opening) -> None:
    """A dry run plans every minute whether or not a person looks; what was different last night has to be found all the same."""
    face = small()
    like = next(d for d in face.past if d.verdict == "planned" and not d.outcomes)

    def planned(id: int, **other: Any) -> DecisionView:
        at = like.ended_ms - (1440 - id) * 60_000
        reason = f"12 brokers are outside their target range; 10.{id % 7} GB would be copied."
        fields = {"id": id, "began_ms": at - 900, "ended_ms": at, "mode": "dry-run", "cause": "interval", "reason": reason, **other}
        return like.model_copy(update=fields)

    face.past = tuple(planned(id, **({"replica_moves": 3, "actions": 4} if id == 700 else {})) for id in range(1440, 0, -1))
    opening(face)
    tab.until(LOADED)
    tab.until("document.querySelectorAll('table.decisions tbody tr').length === 3")
    shown = tab.text("#decisions")
    assert "The same as before, but for figures: 740 times since" in shown
    assert "The same as before, but for figures: 699 times since" in shown
    assert "4 actions" in shown
    face.past = tuple(d.model_copy(update={"mode": "approve"}) for d in face.past)
    face.tell()
    tab.until("document.querySelectorAll('table.decisions tbody tr').length === 12")  # what a person may act on is not folded


def test_of_two_instances_for_a_node_the_one_that_decides_nothing_says_so_once(tab: Tab, opening: Opening) -> None:
    face = small()
    why = "Another instance on this machine stands beside node 3 of this cluster already, so this one decides nothing."
    shared = face.now.leadership.model_copy(update={"leads": False, "shared": why})
    fields = {"ready": False, "why_not_ready": (why,), "why_nothing": (why,), "plan": None, "leadership": shared}
    face.now = face.now.model_copy(update=fields)
    opening(face)
    tab.until(LOADED)
    assert tab.text("h1") == why
    assert tab.text("#verdict").count("Another instance") == 1
    assert "another instance" in tab.text("#service")


@pytest.mark.parametrize("executor", [True, False])
def test_in_a_dry_run_the_page_promises_nothing_that_another_mode_does_not_keep(tab: Tab, opening: Opening, executor: bool) -> None:
    face = small()
    face.now = face.now.model_copy(update={"mode": "dry-run", "has_executor": executor})
    opening(face)
    tab.until(LOADED)
    assert tab.text("#mode") == "dry-run"
    assert tab.run("document.querySelector('#approve').disabled")
    assert ("Set mode to approve or auto" in tab.text("#plan-head")) == executor
    assert ("No other mode would change that" in tab.text("#plan-head")) != executor


def test_names_from_the_cluster_do_no_harm(tab: Tab, opening: Opening) -> None:
    """An operator who may name a topic, a rack or a reason would otherwise run scripts beside the token."""
    face = small()
    state = face.now
    assert face.made is not None
    assert state.plan is not None
    topic = json.dumps(face.made.actions[0].changes[0].topic)
    face.rewrite = lambda text: text.replace(topic, json.dumps(EVIL)).replace('"reason":"', '"reason":' + json.dumps(EVIL)[:-1])
    face.past = tuple(
        d.model_copy(update={"reason": EVIL, "cause": EVIL, "instance": EVIL, "outcomes": ((1, EVIL, EVIL, EVIL),)}) for d in face.past[:3]
    )
    face.now = state.model_copy(
        update={
            "cluster_id": EVIL,
            "instance": EVIL,
            "why_nothing": (EVIL,),
            "goals_file": EVIL,
            "goals_error": EVIL,
            "plan": state.plan.model_copy(update={"note": EVIL}),
            "goals": tuple(g.model_copy(update={"name": f"{EVIL}{g.name}", "kind": EVIL, "skipped": EVIL}) for g in state.goals),
            "brokers": tuple(b.model_copy(update={"rack": EVIL, "state": EVIL, "voice": EVIL}) for b in state.brokers),
            "workers": tuple(w.model_copy(update={"name": EVIL, "error": EVIL}) for w in state.workers),
            "model": state.model.model_copy(update={"last_decode_error": EVIL, "counts": {EVIL: 1}, "windows_reached": {EVIL: 1.0}}),
        }
    )
    opening(face)
    tab.until(LOADED)
    tab.until("document.querySelector('table.actions')")
    shown = "<script>window.harm=1</script><img src=x onerror=window.harm=1>"
    for part in ("#who", "#verdict", "#goals", "#broker-table", "table.actions", "#plan-head", "#decisions", "#service"):
        assert shown in tab.text(part), part
    assert tab.run("window.harm === undefined && document.querySelectorAll('main script, main img').length === 0")
    assert "\u202e" not in tab.run("document.body.textContent + document.title")


def test_asking_why(tab: Tab, opening: Opening) -> None:
    opening(small())
    tab.until(LOADED)
    tab.type("#why-form input", "orders-0")
    tab.key("Enter", 13)
    tab.until("document.querySelector('#why-answer').textContent === 'orders-0 is where it should be.\\n'")
    tab.click('#broker-table button[aria-label="Why is broker 3 as it is?"]')
    tab.until("document.querySelector('#why-answer').textContent.startsWith('Broker 3 ')")


def test_a_thousand_brokers_are_drawn_sorted_and_found(tab: Tab, opening: Opening) -> None:
    face = large(1000)
    found = sum(b.voice != "fresh" and b.rack == "rack-5" for b in face.now.brokers)
    opening(face)
    tab.until(LOADED)
    assert tab.run("document.querySelectorAll('#charts svg.heat').length") == 6
    assert tab.run("document.querySelectorAll('*').length") < 2500, "the page has an element for every broker"
    assert tab.text("#broker-count") == "1,000 of 1,000"
    first = "document.querySelector('table.brokers tbody th').textContent"
    tab.click("table.brokers thead th:nth-child(1) button")
    tab.until(f"{first} === '1'")
    tab.click("table.brokers thead th:nth-child(1) button")
    tab.until(f"{first} === '1000'")
    assert tab.run("document.activeElement.dataset.key") == "brokers-by-id", "the focus is lost when a table is drawn anew"
    tab.run("document.querySelector('#broker-filters select').value = 'quiet'")
    tab.type("#broker-filters input", "rack-5")
    tab.until(f"document.querySelector('#broker-count').textContent === '{found} of 1,000'")
    assert tab.run("[...document.querySelectorAll('table.brokers tbody tr')].every((r) => r.cells[1].textContent === 'rack-5')")
    tab.click("#charts svg.heat")
    tab.until("document.querySelectorAll('table.brokers tbody tr').length === 1")


def test_a_service_that_is_gone_is_told_and_found_again(tab: Tab, opening: Opening) -> None:
    face = small()
    server = opening(face)
    tab.until(LOADED)
    server.stop()
    tab.until("document.querySelector('#live').textContent === 'reconnecting'")
    face.now = face.now.model_copy(update={"paused": True})
    again = serve(face, HttpSettings(port=server.port, token=SecretStr(TOKEN)))
    tab.until("document.querySelector('#live').textContent === 'live' && document.querySelector('#mode').textContent.includes('paused')")
    tab.open("about:blank#over")
    again.stop()
    tab.troubles.clear()  # the browser itself notes that nothing answered


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_as_wide_as_the_window_and_readable(tab: Tab, opening: Opening, width: int, dark: bool) -> None:
    """No sideways scrolling, and text stands out from what is behind it (WCAG AA) in both colours."""
    tab.show_as(width, dark=dark)
    face = small()
    opening(face)
    tab.until(LOADED)
    tab.until("document.querySelectorAll('table.actions tbody tr').length === 10")
    assert tab.run("document.documentElement.scrollWidth") == width
    assert tab.run(FAINT) == []
    blind = ("The cluster's metadata is not loaded yet.", "No samples.")
    face.change(plan=None, goals=(), brokers=(), ready=False, why_not_ready=blind, why_nothing=("Nobody leads.",))
    tab.until("document.querySelector('#verdict .tone').textContent === 'Not ready'")
    assert tab.run("document.documentElement.scrollWidth") == width
    assert tab.run(FAINT) == []
    assert tab.text("#verdict").count("metadata is not loaded yet") == 1


FAINT = """(() => {
  const parse = (text) => {
    const n = text.match(/[\\d.]+/g).map(Number), most = text.startsWith("color(srgb") ? 255 : 1;
    return [n[0] * most, n[1] * most, n[2] * most, n[3] ?? 1];
  };
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => linear(r / 255) * 0.2126 + linear(g / 255) * 0.7152 + linear(b / 255) * 0.0722;
  const behind = (node) => {
    for (let n = node; n; n = n.parentElement) {
      const colour = parse(getComputedStyle(n).backgroundColor);
      if (colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const faint = new Set();
  for (const node of document.querySelectorAll("body *")) {
    const words = [...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
    if (!words || !node.getClientRects().length || node.closest("svg")) continue;
    const a = light(parse(getComputedStyle(node).color)), b = light(behind(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.add(`${ratio.toFixed(2)} ${node.tagName}.${node.className}: ${node.textContent.trim().slice(0, 30)}`);
  }
  return [...faint];
})()"""
