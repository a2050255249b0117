"""Failover by a policy's plan: what is lost is repaired whatever the policy is, and what cannot be keeps nothing else from being done."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from goals.policy_presets import POLICY_PRESETS
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan

MB = 1e6
PLANNING = sorted(name for name, parts in POLICY_PRESETS.items() if "amount" in parts)
Partition = tuple[list[int], int | None]


def cluster(partitions: list[Partition], states: dict[int, str], brokers: int = 4) -> Snapshot:
    """Partitions of topic t, of 1 MB/s each: replicas, and the leader or none."""
    return build_snapshot({
        "version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local",
        "brokers": [
            {"id": b, "state": states.get(b, "active"), "capacity": {"network_in": 100 * MB, "disk": 1e12}} for b in range(1, brokers + 1)
        ],
        "partitions": [
            {"topic": "t", "partition": p, "replicas": replicas, "leader": leader, "leader_load": {"network_in": MB, "disk": 1e9}}
            for p, (replicas, leader) in enumerate(partitions)
        ],
    })  # fmt: skip


def goals(policy: str, more: str = "") -> Any:
    return parse_goals(
        f"version: 1\ngoals:\n - {{kind: usage_distribution, resource: network_in}}\n{more}policy: {policy}\n", "goals.yaml"
    )


def leaders(snapshot: Snapshot, made: Plan) -> list[int | None]:
    after = {p: int(snapshot.broker_ids[row]) if row >= 0 else None for p, row in enumerate(snapshot.leader.tolist())}
    return list({**after, **{c.partition: c.leader_after for c in made.proposals}}.values())


@pytest.mark.parametrize("preset", PLANNING)
def test_every_preset_gives_partitions_without_a_leader_one(preset: str) -> None:
    lost = cluster([([1, 2 + n % 3], None if n % 2 else 2 + n % 3) for n in range(12)], {1: "dead"})
    made = plan(lost, goals(f"{{preset: {preset}}}"))
    found = leaders(lost, made)
    assert None not in found
    assert 1 not in found
    assert any(note.startswith("policy: repair: 6 partitions without a leader would get another") for note in made.notes)
    assert [a.repairs for a in made.actions if "leaderless" in a.repairs]


def test_a_level_cluster_with_a_lost_leader_gets_that_and_nothing_else() -> None:
    level = cluster([([1 + n % 4, 1 + (n + 1) % 4], None if n == 5 else 1 + n % 4) for n in range(8)], {})
    made = plan(level, goals("{preset: danube-balanced}"))
    assert [c.partition for c in made.proposals] == [5]
    assert made.summary.replica_moves == 0


def test_frozen_topics_and_budgets_hold_and_offline_partitions_stay() -> None:
    lost = cluster([([1, 2], None), ([1, 3], None), ([1], None)], {1: "dead"})
    policy = "{preset: danube-balanced}"
    assert leaders(lost, plan(lost, goals(policy, "constraints: {freeze_topics: [t]}\n"))) == [None, None, None]
    assert leaders(lost, plan(lost, goals(policy), PlanOptions(max_partitions=1))).count(None) == 2
    assert leaders(lost, plan(lost, goals(policy)))[2] is None


def test_where_no_broker_takes_the_replica_its_leadership_leaves_all_the_same() -> None:
    full = cluster([([1, 2], 1), ([1, 3], 1), ([2, 3], 2)], {1: "draining"}, brokers=3)
    made = plan(full, goals("{preset: danube-balanced}", " - {kind: count_limit, resource: replicas, max: 2}\n"))
    assert made.summary.replica_moves == 0
    assert leaders(full, made) == [2, 3, 2]


@pytest.mark.parametrize("preset", PLANNING)
def test_what_cannot_leave_a_dead_broker_keeps_no_other_from_being_levelled(preset: str) -> None:
    """One offline partition, whose broker does not come back, ended all balance by a policy."""
    busy: list[Partition] = [([2], 2) for _ in range(90)]
    made = plan(cluster([([1], None), *busy], {1: "dead"}), goals(f"{{preset: {preset}}}"))
    assert {c.replicas_after[0] for c in made.proposals} & {3, 4}


def off_the_dead(made: Plan) -> int:
    return sum(1 in c.replicas_before and 1 not in c.replicas_after for c in made.proposals)


def test_counts_are_levelled_with_what_emptying_a_broker_leaves_to_be_changed() -> None:
    """A partition has one of its brokers replaced: that of the dead one, though the other has too many."""
    partitions: list[Partition] = [*[([1, 2], 2)] * 18, ([2, 3], 2), ([1, 3], 3)]
    lost = cluster(partitions, {1: "dead"})
    made = plan(lost, goals("{preset: wix-minimal}"))
    assert off_the_dead(made) == 19


def test_budgets_go_to_repairs_first_and_guards_hold_the_rest_only() -> None:
    partitions: list[Partition] = [*[([1, 3], 3)] * 3, *[([2], 2)] * 30]
    lost = cluster(partitions, {1: "dead"})
    made = plan(lost, goals("{preset: wix-minimal}"), PlanOptions(max_moves=3))
    assert off_the_dead(made) == made.summary.replica_moves == 3
    assert any("amount to_target_counts: 3 replica moves (at least 21 were needed to reach every target)" in note for note in made.notes)
    guarded = plan(lost, goals("{preset: wix-minimal, guards: {moves: 2}}"))
    assert off_the_dead(guarded) == guarded.summary.replica_moves == 3
    more = plan(lost, goals("{preset: wix-minimal, guards: {moves: 5}}"))
    assert (off_the_dead(more), more.summary.replica_moves) == (3, 5)
