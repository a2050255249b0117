"""The id of a plan is that of its file, and of its content: for every way a plan is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goals.document import parse_goals
from goals.policy_presets import POLICY_PRESETS
from optimizer.identity import identified
from optimizer.options import AddedBroker, PlanOptions
from optimizer.planner import plan
from optimizer.report import read_plan, to_json
from trimtab import read_snapshot

SNAPSHOT = read_snapshot(Path(__file__).parents[3] / "examples" / "three-brokers.json")
BATCHES = {"batch": {"moves_per_broker": 1, "batches": 2, "pause": 0.1}}


@pytest.mark.parametrize("policy", [*({"preset": name} for name in sorted(POLICY_PRESETS)), {}, BATCHES], ids=str)
def test_of_every_policy(policy: dict[str, Any]) -> None:
    goals = parse_goals(json.dumps({"version": 1, "preset": "counts", "policy": policy}), "goals.yaml")
    made = plan(SNAPSHOT, goals)
    assert identified(made).plan_id == made.plan_id
    assert identified(read_plan(to_json(made).encode(), "plan.json")).plan_id == made.plan_id


@pytest.mark.parametrize(
    "options",
    [
        PlanOptions(seed=2**61 + 1, max_bytes=10**11, min_gain=1 / 7, scale_load=(("o*", 1 / 3), ("*", 2.0))),
        PlanOptions(add_brokers=(AddedBroker(9, "r1"),), remove_brokers=(1,), exclude_topics=("p*",), move_cost=10**17 + 1),
        PlanOptions(replication_factor=(("orders", 3),)),
    ],
)
def test_of_every_option(options: PlanOptions) -> None:
    made = plan(SNAPSHOT, parse_goals("version: 1\npreset: default\n", "goals.yaml"), options)
    assert identified(read_plan(to_json(made).encode(), "plan.json")).plan_id == made.plan_id
    assert plan(SNAPSHOT, parse_goals("version: 1\npreset: default\n", "goals.yaml"), PlanOptions()).plan_id != made.plan_id
