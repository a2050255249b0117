"""The YAML cases of tests/cases/goals through the planner: the scores a report shows for such a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cluster_model.build import build_snapshot
from cluster_model.quantities import parse_size
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from optimizer.planner import plan

FOLDER = Path(__file__).parents[2] / "cases" / "goals"


def cases() -> Iterator[Any]:
    """Those whose scores follow from the brokers' loads alone."""
    for path in sorted(FOLDER.glob("*.yaml")):
        for case in YAML(typ="safe", pure=True).load(path)["cases"]:
            if "mean" not in case and "resource" in case["goal"] and "load" in case["brokers"][0]:
                yield pytest.param(case, id=f"{path.stem}: {case['name']}")


def amount(value: float | str) -> float:
    return float(parse_size(value)) if isinstance(value, str) else float(value)


def cluster(case: dict[str, Any]) -> Snapshot:
    """One partition a broker that carries its load; for counts, as many partitions as it counts."""
    resource = case["goal"]["resource"]
    counted = resource in ("replicas", "leaders")
    brokers, partitions = [], []
    for id, broker in enumerate(case["brokers"]):
        capacity = {resource: amount(broker["capacity"])} if "capacity" in broker else {}
        brokers.append({"id": id, "capacity": capacity})
        load = amount(broker["load"])
        for number in range(int(load) if counted else 1):
            partitions.append(
                {"topic": f"t{id}", "partition": number, "replicas": [id], "leader": id,
                 "leader_load": {} if counted else {resource: load}}
            )  # fmt: skip
    return build_snapshot(
        {"version": 1, "cluster_id": "case", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
         "brokers": brokers, "partitions": partitions}
    )  # fmt: skip


@pytest.mark.parametrize("case", list(cases()))
def test_reports_show_the_expected_scores(case: dict[str, Any]) -> None:
    document = {
        "version": 1,
        "goals": [{**case["goal"], "name": "case"}],
        "constraints": {"include_topics": ["no such topic"]},
    }
    stream = StringIO()
    YAML(typ="safe", pure=True).dump(document, stream)
    outcome = plan(cluster(case), parse_goals(stream.getvalue(), case["name"]))
    found = [broker.scores_before["case"] for broker in outcome.brokers]
    expected = [broker["score"] for broker in case["brokers"]]
    assert found == pytest.approx(expected, rel=case.get("tolerance", 1e-9), abs=1e-6)
