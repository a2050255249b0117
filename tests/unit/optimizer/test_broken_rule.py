"""A bug of the planner must end in a line that can be reported, never in a plan."""

from __future__ import annotations

import json

import pytest

import optimizer.placement.record
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.placement.record import BrokenRuleError
from optimizer.planner import plan
from tests.unit.optimizer.actions import Trial, partition, usage


def test_a_broken_rule_is_told_with_all_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Trial([1, 2], [partition([1], network_in=x) for x in (50.0, 50.0)], usage(bound=0.1))
    goals = parse_goals(json.dumps(made.goals), "goals.yaml")
    monkeypatch.setattr(optimizer.placement.record, "replay", lambda *_: 0)
    with pytest.raises(BrokenRuleError) as refused:
        plan(made.snapshot, goals, PlanOptions(seed=7))
    for part in ("action 1 of a round is not acceptable", made.snapshot.digest, goals.digest, "seed=7"):
        assert part in str(refused.value)
