"""Figures for Prometheus: parsed by its own client, bounded in labels, and what dashboards and alerts ask for is there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from tests.assembled.http.client import Client
from tests.assembled.http.conftest import Serving
from tests.service_face import NOW, FakeFace, executing, large
from trimtab.http.metrics import Requests, scrape
from trimtab.service.views import ClusterView, DownView

EXAMPLES = Path(__file__).parents[3] / "examples" / "grafana"
WORDS = re.compile(r"\btrimtab_[a-z0-9_]+")


def samples(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Sample name -> labels -> value."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def exported() -> set[str]:
    """Names of all samples that there may be."""
    face = large(3)
    requests = Requests()
    requests.answered("/healthz", "GET", 200, 0.1)
    parts: list[Metric] = list(scrape(face.now, face.past[0], requests).collect())
    return {s.name for family in parts for s in family.samples} | {family.name for family in parts}


def test_the_figures_are_those_of_the_state(client: Client, face: FakeFace) -> None:
    found = samples(client.get("/metrics").text)
    assert found["trimtab_healthy"] == {(): 1.0}
    assert found["trimtab_info"] == {
        (("cluster_id", "example-skewed-12-brokers"), ("instance_name", "controller-3"), ("version", "0.1.0")): 1.0
    }
    assert found["trimtab_mode"][(("mode", "approve"),)] == 1.0
    assert found["trimtab_model_sample_age_seconds"] == {(): 3.2}
    assert found["trimtab_model_lag_records"] == {(): 128.0}
    assert found["trimtab_model_decode_errors_total"] == {(): 3.0}
    assert found["trimtab_goal_violations"][("goal", "network-in"), ("hard", "false")] == 12.0
    assert found["trimtab_goal_skipped"][("goal", "produce_rate"), ("hard", "false")] == 1.0
    assert (("goal", "produce_rate"), ("hard", "false")) not in found["trimtab_goal_violations"]
    assert found["trimtab_plan_actions"][(("state", "proposed"),)] == len(face.made.actions if face.made else ())
    assert found["trimtab_plan_actions"][(("state", "running"),)] == 0.0
    assert found["trimtab_reporters"] == {(("voice", v),): n for v, n in (("fresh", 11), ("late", 1), ("silent", 0), ("never", 0))}
    assert found["trimtab_broker_load"][("broker", "1"), ("resource", "disk")] == face.now.brokers[0].loads["disk"]
    assert found["trimtab_last_decision"][(("verdict", "planned"),)] == 1.0
    assert found["trimtab_last_decision_time_seconds"] == {(): (NOW - 65_000) / 1000}
    assert found["trimtab_process_resident_memory_bytes"][()] > 1e6


def test_the_cluster_has_figures_of_its_own(client: Client, face: FakeFace) -> None:
    """A dead broker of which no rule hears pages no operator."""
    gone = DownView(id=4, life="dead", since_ms=NOW, replicas=61, lacking=61)
    lives = {"serving": 3, "dead": 1}
    counts = {"offline": 3, "under_min_isr": 5, "under_replicated": 58, "last_copy": 2}
    face.change(cluster=ClusterView(known=True, down=(gone,), lives=lives, waits=("down",)).model_copy(update=counts))
    found = samples(client.get("/metrics").text)
    partitions = {dict(labels)["condition"]: value for labels, value in found["trimtab_cluster_partitions"].items()}
    assert partitions == {**counts, "reassigning": 0, "not_preferred": 0}
    assert found["trimtab_cluster_min_isr_unread_topics"] == {(): 0.0}
    brokers = {dict(labels)["life"]: value for labels, value in found["trimtab_cluster_brokers"].items()}
    assert brokers == {"serving": 3, "dead": 1, "unregistered": 0, "fenced": 0, "stopping": 0, "drained": 0}
    assert found["trimtab_cluster_broker_lacking_replicas"] == {(("broker", "4"),): 61}
    waits = {dict(labels)["reason"] for labels, value in found["trimtab_balance_waits"].items() if value}
    assert waits == {"down"}
    face.change(cluster=ClusterView())
    assert "trimtab_cluster_partitions" not in samples(client.get("/metrics").text), "unknown is not zero"


def test_an_execution_has_figures_also_one_of_a_command(client: Client, face: FakeFace) -> None:
    """An alert on throttles that stand for hours needs no plan of this service."""
    assert face.made is not None
    assert samples(client.get("/metrics").text)["trimtab_execution_running"] == {(): 0.0}
    face.change(plan=None, execution=executing(face.made, here=False))
    found = samples(client.get("/metrics").text)
    assert found["trimtab_execution_running"] == {(): 1.0}
    assert found["trimtab_execution_partitions"][("stage", "moving"),] == 6.0
    assert found["trimtab_execution_copied_bytes"] == {(): 1.2e9}
    assert found["trimtab_execution_throttle_settings"] == {(): 24.0}


def test_a_service_that_knows_nothing_yet_has_figures_all_the_same(client: Client, face: FakeFace) -> None:
    face.past = ()
    blind = face.now.model.model_copy(update={"newest_sample_ms": -1, "lag": None, "windows_reached": {}, "counts": {}})
    face.change(plan=None, goals=(), brokers=(), workers=(), next_plan_ms=None, cluster_id=None, model=blind)
    found = samples(client.get("/metrics").text)
    assert "trimtab_model_sample_age_seconds" not in found
    assert "trimtab_model_lag_records" not in found
    assert set(found["trimtab_plan"].values()) == {0.0}
    assert set(found["trimtab_last_decision"].values()) == {0.0}


def test_openmetrics_for_those_who_ask(client: Client) -> None:
    answer = client.get("/metrics", Accept="application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert any(family.name == "trimtab_model_samples" for family in open_families(answer.text))  # type: ignore[no-untyped-call]


def test_labels_are_bounded(serving: Serving) -> None:
    """Neither what a stranger asks for nor how many partitions there are makes more series."""
    face = large(50)
    client = Client(serving(face).url)
    for path in ("/nothing/a", "/nothing/b", "/api/v1/plans/x", "/api/v1/plans/y"):
        client.get(path)
    answer = client.get("/metrics").text
    labels = {label for family in samples(answer).values() for key in family for label, _ in key}
    assert labels <= {
        "broker", "resource", "goal", "hard", "worker", "state", "voice", "verdict", "mode", "horizon", "what", "route", "method",
        "status", "le", "version", "instance_name", "cluster_id", "condition", "life", "reason", "stage",
    }  # fmt: skip
    assert not {"topic", "partition"} & labels
    assert "nothing/" not in answer
    assert 'route="/api/v1/plans/{plan_id}"' in answer
    series = sum(len(family) for family in samples(answer).values())
    assert series < 50 * 13 + 300


def test_names_that_would_break_the_format_do_not(client: Client, face: FakeFace) -> None:
    goal = face.now.goals[0].model_copy(update={"name": 'a"b\\c\nd{}'})
    face.change(goals=(goal,))
    found = samples(client.get("/metrics").text)
    assert found["trimtab_goal_weight"][("goal", 'a"b\\c\nd{}'), ("hard", "true")] == 1.0


def dashboards() -> list[Path]:
    return sorted(EXAMPLES.glob("*.json"))


def expressions(part: Any) -> list[str]:
    """Every query of a dashboard or of a rules file."""
    if isinstance(part, dict):
        own = [part[key] for key in ("expr", "definition") if isinstance(part.get(key), str)]
        return own + [e for value in part.values() for e in expressions(value)]
    return [e for value in part for e in expressions(value)] if isinstance(part, list) else []


@pytest.mark.parametrize("path", dashboards(), ids=lambda p: p.name)
def test_the_dashboard_asks_only_for_what_there_is(path: Path) -> None:
    dashboard = json.loads(path.read_text())
    asked = {word for e in expressions(dashboard) for word in WORDS.findall(e)}
    assert len(asked) > 20
    assert asked <= exported(), f"not exported: {sorted(asked - exported())}"
    ids = [p["id"] for p in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    for panel in dashboard["panels"]:
        assert panel["type"] == "row" or (panel["targets"] and panel["description"])


def test_the_alerts_ask_only_for_what_there_is() -> None:
    rules = YAML(typ="safe").load((EXAMPLES / "trimtab-alerts.yaml").read_text())
    asked = {word for e in expressions(rules) for word in WORDS.findall(e)}
    assert len(asked) >= 8
    assert asked <= exported(), f"not exported: {sorted(asked - exported())}"
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["summary"]
            assert rule["labels"]["severity"] in ("page", "ticket")


def test_there_is_a_dashboard() -> None:
    assert dashboards()


def test_the_documentation_names_every_figure() -> None:
    text = (EXAMPLES.parents[1] / "docs" / "http.md").read_text()
    families = [f for f in scrape(large(2).now, None, Requests()).collect() if not f.name.startswith("trimtab_process")]
    endings = {"counter": "_total", "info": "_info"}
    names = [f.name + endings.get(f.type, "") for f in families]
    assert [name for name in names if f"`{name}`" not in text] == []
