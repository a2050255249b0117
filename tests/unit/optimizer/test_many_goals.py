"""However many goals there are, an action names the hard ones that it repairs, and no others."""

from __future__ import annotations

import json

from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from tests.unit.optimizer.actions import Document, Trial, partition


def test_an_action_names_the_last_of_many_hard_goals() -> None:
    rows = [partition([1], disk=60.0, network_in=1.0), partition([1], disk=60.0, network_in=1.0), partition([2], disk=1.0, network_in=1.0)]
    loose: list[Document] = [
        {"kind": "capacity", "resource": "network_in", "limit": 1.0, "name": f"n{n}", "hard": True} for n in range(80)
    ]
    tight: Document = {"kind": "capacity", "resource": "disk", "limit": 1.0, "name": "disk", "hard": True}
    brokers = [{"id": b, "capacity": {"disk": 100.0, "network_in": 1000.0}} for b in (1, 2)]
    made = Trial(brokers, rows, *loose, tight)
    found = plan(made.snapshot, parse_goals(json.dumps(made.goals), "goals.yaml"), PlanOptions())
    assert [a.repairs for a in found.actions] == [("disk",)]
