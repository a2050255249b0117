"""People are told by webhook, once, what they have to hear of; a webhook that is gone holds up nothing, and its address stays secret."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cluster_model.errors import ConfigurationError, ExternalError
from metrics_reporter.reporter import Clock
from tests.assembled.service.beside import GOALS, LEVEL, Service, World, simulated_executor
from tests.service_face import small
from trimtab.http.headline import Headline
from trimtab.service.config import load_config
from trimtab.service.news import News, Weather
from trimtab.service.notify import LONGEST_TEXT, MOST_ATTEMPTS, MOST_QUEUED, Notifier, message
from trimtab.service.webhook import NotifyPart

SECRET = "T012/B345/hush-hush-hush"
NOW = 1_790_000_000_000


class Webhook:
    """A real HTTP server on loopback that writes down what it is sent, and answers as told."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.requests: list[tuple[str, str, str]] = []
        self.answers: list[int] = []  # codes, before 200
        self.hangs = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append(("POST", self.path, self.headers["Content-Type"]))
                while outer.hangs.is_set():
                    outer.gate.wait(0.05)
                code = outer.answers.pop(0) if outer.answers else 200
                if code == 200:
                    outer.texts.append(json.loads(body)["text"])
                self.send_response(code)
                if code == 302:
                    self.send_header("Location", f"{outer.url}/elsewhere")
                self.end_headers()
                self.wfile.write(b"ok")

            def do_GET(self) -> None:
                outer.requests.append(("GET", self.path, ""))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.gate = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self.hangs.clear()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    hook = Webhook()
    yield hook
    hook.stop()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def told(webhook: Webhook, **keys: Any) -> dict[str, Any]:
    return {"url": f"{webhook.url}/services/{SECRET}", "after": 20, **keys}


class Teller:
    """A notifier whose turns a test takes."""

    def __init__(self, webhook: Webhook, **keys: Any) -> None:
        face = small()
        part = NotifyPart.model_validate({**told(webhook), **keys})
        self.notifier = Notifier(part, lambda: face.now, Clock(lambda: NOW / 1000, lambda: NOW), waits=True)

    def put(self, text: str) -> None:
        self.notifier._put(News("executed", text))

    def turn(self) -> str:
        """What stops it."""
        try:
            self.notifier.turn()
        except ExternalError as error:
            return str(error)
        return ""


def test_a_plan_that_waits_and_what_comes_of_it_are_told_with_a_link(world: World, webhook: Webhook) -> None:
    hook = told(webhook, page="https://trimtab.example.org/")
    service = Service(world, goals=GOALS, mode="approve", executor=simulated_executor(world), notify=hook)
    plan = service.run(45).plan
    assert plan is not None
    assert len(webhook.texts) == 1
    assert webhook.texts[0].startswith(f"Trimtab, cluster {world.cluster.cluster_id}: Plan {plan.plan_id[:19]} (8 replica moves")
    assert webhook.texts[0].endswith(" waits for approval. https://trimtab.example.org/")
    assert webhook.requests[0] == ("POST", f"/services/{SECRET}", "application/json")
    service.balancer.approve(plan.plan_id, "anna")
    service.run(60)
    assert webhook.texts[1].endswith(" was carried out. https://trimtab.example.org/")
    service.stop()


def test_a_dry_run_tells_of_no_plan(world: World, webhook: Webhook) -> None:
    service = Service(world, goals=GOALS, notify=told(webhook))
    assert service.run(130).plan is not None
    assert webhook.texts == []
    service.stop()


def test_a_plan_that_fails_is_told_with_the_reason(world: World, webhook: Webhook) -> None:
    service = Service(world, goals=GOALS, mode="approve", executor=simulated_executor(world), notify=told(webhook))
    plan = service.run(45).plan
    assert plan is not None
    service.balancer.approve(plan.plan_id, "anna")
    service.turns("executor")
    service.balancer.reject(plan.plan_id, "bob", "<!channel> & more")
    service.run(10)
    assert "was not carried out to the end: stopped by bob: &lt;!channel&gt; &amp; more." in webhook.texts[-1]
    service.stop()


def test_a_cluster_that_is_unwell_is_told_once_and_when_it_is_well_again(world: World, webhook: Webhook) -> None:
    service = Service(world, goals=f"{LEVEL}policy: {{wait: {{settle: 20}}}}\n", notify=told(webhook))
    service.run(45)
    world.cluster.faults.kill(2)
    service.run(15)
    assert webhook.texts == [], "a moment is no news"
    service.run(30)
    assert len(webhook.texts) == 1
    assert ": The cluster is unwell: Broker 2 is down, probably restarting; 12 partitions are under-replicated." in webhook.texts[0]
    world.cluster.faults.restart(2)
    service.run(25)
    assert len(webhook.texts) == 1, "loads still settle"
    service.run(60)
    assert len(webhook.texts) == 2
    assert ": The cluster is well again, after " in webhook.texts[1]
    service.stop()


def test_of_several_instances_the_one_that_decides_tells(world: World, webhook: Webhook) -> None:
    services = [Service(world, node=node, goals=LEVEL, notify=told(webhook)) for node in (100, 101)]
    for step in range(20):
        if step == 9:
            world.cluster.faults.kill(2)
        world.pass_time(5)
        for service in services:
            service.turns()
    assert len(webhook.texts) == 1
    for service in services:
        service.stop()


def test_only_what_is_asked_for_is_told(world: World, webhook: Webhook) -> None:
    service = Service(world, goals=GOALS, mode="auto", executor=simulated_executor(world), notify=told(webhook, events=["failed"]))
    service.run(100)
    assert service.rows("SELECT COUNT(*) FROM decision WHERE verdict = 'planned'") > [(0,)]
    assert webhook.texts == []
    service.stop()


def test_a_webhook_that_hangs_holds_up_no_decision(world: World, webhook: Webhook) -> None:
    webhook.hangs.set()
    service = Service(world, goals=GOALS, mode="approve", executor=simulated_executor(world), notify=told(webhook, timeout=0.2))
    for _ in range(9):
        world.pass_time(5)
        service.turns(*(n for n in service.balancer.workers if n != "notify"))
    sender = threading.Thread(target=service.balancer.workers["notify"].once)
    sender.start()
    plan = service.balancer.state().plan
    assert plan is not None
    service.balancer.approve(plan.plan_id, "anna")
    service.turns("executor", "planner")
    sender.join()
    state = service.balancer.state()
    assert "timed out" in (next(w.error for w in state.workers if w.name == "notify") or "")
    assert state.healthy
    webhook.hangs.clear()
    service.turns("notify")
    assert "waits for approval" in webhook.texts[0], "late is better than never"
    service.stop()


def test_a_message_is_tried_again_a_bounded_number_of_times_and_the_next_one_is_sent(webhook: Webhook) -> None:
    teller = Teller(webhook)
    teller.put("first")
    teller.put("second")
    webhook.answers = [503, 429]
    where = f"the webhook at http://127.0.0.1 did not take a message: HTTP {503}"
    assert teller.turn() == where
    assert "HTTP 429" in teller.turn()
    assert teller.turn() == ""
    assert [t.rpartition(": ")[2] for t in webhook.texts] == ["first", "second"]
    webhook.answers = [500] * MOST_ATTEMPTS
    teller.put("third")
    teller.put("fourth")
    said = [teller.turn() for _ in range(MOST_ATTEMPTS)]
    assert said[-1].endswith("HTTP 500; it was given up")
    assert not any("given up" in text for text in said[:-1])
    assert teller.turn() == ""
    assert webhook.texts[-1].endswith("fourth")


def test_what_will_never_be_taken_is_given_up_at_once_and_stays_told(webhook: Webhook) -> None:
    teller = Teller(webhook)
    webhook.answers = [404]
    teller.put("first")
    assert "HTTP 404; it was given up" in teller.turn()
    assert "HTTP 404; it was given up" in teller.turn(), "until a message is taken"
    assert len(webhook.requests) == 1
    teller.put("second")
    assert teller.turn() == ""


def test_a_webhook_that_sends_us_elsewhere_is_refused(webhook: Webhook) -> None:
    teller = Teller(webhook)
    webhook.answers = [302]
    teller.put("first")
    assert "HTTP 302; it was given up" in teller.turn()
    assert [r[0] for r in webhook.requests] == ["POST"]


def test_messages_that_wait_are_bounded(webhook: Webhook, caplog: pytest.LogCaptureFixture) -> None:
    teller = Teller(webhook)
    for n in range(MOST_QUEUED + 1):
        teller.put(str(n))
    assert f"a message is dropped, since {MOST_QUEUED} wait for the webhook: {MOST_QUEUED}" in caplog.text
    assert teller.turn() == ""
    assert len(webhook.texts) == MOST_QUEUED


def test_the_address_is_in_no_log_no_state_and_no_refusal(
    world: World, webhook: Webhook, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    for code in (500, 404, 302):
        webhook.answers.append(code)
    hook = told(webhook)
    service = Service(world, goals=GOALS, mode="approve", executor=simulated_executor(world), notify=hook)
    service.run(45)
    webhook.stop()
    for _ in range(3):
        service.balancer.plan_now("anna")
        service.run(20)
    state = service.balancer.state()
    assert "Connection refused" in (next(w.error for w in state.workers if w.name == "notify") or "")
    config = service.balancer.config
    seen = [caplog.text, state.model_dump_json(), repr(config), str(config), config.model_dump_json(), *capsys.readouterr()]
    service.stop()
    for wrong in (f"ftp://127.0.0.1/{SECRET}", f"{SECRET}", f"[https://127.0.0.1/{SECRET}]", f"'https://a b/{SECRET}'", f"'http://[::1/{SECRET}'"):
        path = tmp_path / "service.yaml"
        path.write_text(f"version: 1\nkafka: {{bootstrap_servers: '127.0.0.1:9092'}}\nleader: always\nnotify: {{url: {wrong}}}\n")
        with pytest.raises(ConfigurationError) as refused:
            load_config(path)
        assert any(str(p).startswith("notify.url: expected an address such as https://") for p in refused.value.problems)
        seen.append(str(refused.value))
    assert not any("hush" in text for text in seen)


def test_the_address_comes_from_a_file_that_is_read_each_time(webhook: Webhook, tmp_path: Path) -> None:
    file = tmp_path / "hook"
    file.write_text(f"{webhook.url}/one\n")
    file.chmod(0o600)
    teller = Teller(webhook, url=None, url_file=str(file))
    teller.put("first")
    teller.turn()
    file.write_text(f"{webhook.url}/two\n")
    teller.put("second")
    teller.turn()
    assert [path for _, path, _ in webhook.requests] == ["/one", "/two"]
    file.unlink()
    teller.put("third")
    assert "no message can be sent: expected a readable ASCII file with the address of the webhook at" in teller.turn()


def refused(folder: Path, part: str) -> str:
    path = folder / "service.yaml"
    path.write_text(f"version: 1\nkafka: {{bootstrap_servers: '127.0.0.1:9092'}}\nleader: always\nnotify: {part}\n")
    with pytest.raises(ConfigurationError) as found:
        load_config(path)
    return "\n".join(str(p) for p in found.value.problems)


def test_the_settings_are_refused_where_they_are_wrong(tmp_path: Path) -> None:
    file = tmp_path / "hook"
    file.write_text("https://hooks.example.org/x\n")
    file.chmod(0o604)
    open_to_all = "notify.url_file: expected a file that only its owner and group may read, found mode 0604"
    assert open_to_all in refused(tmp_path, "{url_file: hook}")
    file.chmod(0o600)
    file.write_text("hooks.example.org/hush\n")
    assert "found something else in" in refused(tmp_path, "{url_file: hook}")
    assert "there is no file" in refused(tmp_path, "{url_file: gone}")
    assert "expected url_file, or url, and not both" in refused(tmp_path, "{after: 1m}")
    assert "expected url_file, or url, and not both" in refused(tmp_path, "{url: 'https://a.example/x', url_file: hook}")
    assert "did you mean 'waiting'" in refused(tmp_path, "{url: 'https://a.example/x', events: [waitin]}")
    page = "notify.page: expected an address such as https://trimtab.example.org/, found"
    assert page in refused(tmp_path, "{url: 'https://a.example/x', page: nowhere}")


def sick(label: str = "Cluster unwell", *, severe: bool = False) -> Headline:
    return Headline(severe, label, "Broker 3 is down.", ("Broker 3: fenced.",), "Start it again.")


def test_the_weather_is_told_when_it_lasts_and_again_when_it_gets_worse() -> None:
    weather = Weather(60_000)
    seen: list[tuple[int, Headline | None]] = [
        (0, None), (100, sick()), (130, None), (140, sick()), (199, sick()), (200, sick()), (300, sick()), (310, sick(severe=True)),
        (340, sick()), (350, sick(severe=True)), (410, sick(severe=True)), (500, sick()), (510, sick("Settling")), (600, sick("Settling")),
        (610, None), (669, None), (670, None), (800, None),
    ]  # fmt: skip
    found = [(at, news) for at, now in seen if (news := weather.look(now, 1000 * at)) is not None]
    assert found == [
        (200, News("unwell", "The cluster is unwell: Broker 3 is down. Broker 3: fenced. Start it again.")),
        (410, News("unwell", "The cluster is worse now: Broker 3 is down. Broker 3: fenced. Start it again.")),
        (670, News("well", "The cluster is well again, after 8 min.")),  # from 140 to 610: not while it was well already
    ]


def test_a_cluster_that_was_well_all_the_time_is_not_told_to_be_well() -> None:
    weather = Weather(60_000)
    assert [weather.look(None, 1000 * at) for at in (0, 60, 120)] == [None, None, None]


def test_a_long_message_is_cut_and_the_link_stays() -> None:
    text = message(News("failed", "x" * 10_000), None, "https://trimtab.example.org/")
    assert len(text) < LONGEST_TEXT + 100
    assert text.endswith("… https://trimtab.example.org/")
