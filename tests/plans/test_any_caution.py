"""Whatever the cluster: only repairs touch what is in doubt, and what is in no doubt changes no plan."""

from __future__ import annotations

import json
from collections.abc import Collection
from random import Random

import pytest

from cluster_model.build import build_snapshot
from cluster_model.resources import DERIVED_FROM
from cluster_model.snapshot import Snapshot
from cluster_model.trust import LiveSnapshot
from goals.document import parse_goals
from optimizer.plan import Action
from optimizer.planner import plan
from optimizer.report import to_json
from tests.oracle.clusters import case_of
from tests.oracle.runs import deviations, plan_options
from tests.unit.optimizer.test_caution import after, live


def test_fresh_numbers_change_nothing() -> None:
    for seed in range(12):
        case = case_of(seed, most_brokers=8, per_broker=8)
        snapshot = build_snapshot(case.snapshot)
        wanted, options = parse_goals(json.dumps(case.goals), "goals.yaml"), plan_options(case.acceptance, case.options)
        sure = live(snapshot, estimated=range(0, snapshot.partition_count, 2))
        assert to_json(plan(sure, wanted, options)) == to_json(plan(snapshot, wanted, options))


@pytest.mark.parametrize("seed", range(30))
def test_any_cluster(seed: int) -> None:
    """Only repairs touch what is in doubt, every action holds before the oracle, and planning again finds nothing."""
    r = Random(seed)
    case = case_of(seed, most_brokers=10, per_broker=10)
    snapshot = build_snapshot(case.snapshot)
    count = snapshot.partition_count
    doubted = r.sample(range(count), r.randint(0, count if seed % 3 == 0 else count // 8))
    sure = live(snapshot, stale=doubted)
    wanted, options = parse_goals(json.dumps(case.goals), "goals.yaml"), plan_options(case.acceptance, case.options)
    made = plan(sure, wanted, options)
    known = [d for d in deviations(case, json.loads(to_json(made))) if "infeasible" not in d]
    assert known == []
    resources = [g.resource for g in made.goals if g.status != "skipped" and g.resource is not None]
    used = {DERIVED_FROM.get(x, x) for x in resources} & set(sure.leader_load)
    doubtful = in_doubt(sure, used)
    for action in made.actions:
        mends = action.repairs or ("rack_aware" in action.goal_scores and action.goal_scores["rack_aware"].score > 0.5)
        assert mends or not touches(action, doubtful, sure, set(doubted) if used else set())
    then = after(sure, made) if not case.options else sure
    if then is not sure and in_doubt(then, used) == doubtful:  # what it gains or gives makes a broker's doubts weigh less or more
        assert list(plan(then, wanted, options).actions) == []


def in_doubt(snapshot: LiveSnapshot, resources: Collection[str]) -> set[int]:
    shares = [snapshot.broker_doubts(x).share() for x in resources]
    return {int(b) for share in shares for b in snapshot.broker_ids[(share > 0.1) & (snapshot.broker_states == 0)]}


def touches(action: Action, doubtful: set[int], snapshot: Snapshot, doubted: set[int]) -> bool:
    for change in action.changes:
        if snapshot.row_of_partition(change.topic, change.partition) in doubted:
            return True
        moved = set(change.replicas_before) ^ set(change.replicas_after)
        if change.leader_before != change.leader_after:
            moved |= {change.leader_before, change.leader_after} - {None}  # type: ignore[arg-type]
        if moved & doubtful:
            return True
    return False
