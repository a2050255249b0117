"""Clusters with partitions larger than any broker's band: the search aims at what can be had, and ends there.

An operator of such a cluster would wait minutes for a plan that shuffles data for no broker's good.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.clusters import cluster as random_cluster
from benchmarks.planner import goals_text
from goals.document import parse_goals
from optimizer.bounds import lower_bounds
from optimizer.options import PlanOptions
from optimizer.planner import plan
from optimizer.problem import HIGH, LOW, STRENGTH
from optimizer.search.reach import beyond_limits, keeps_a_limit_broken, reachable
from tests.unit.optimizer.actions import Trial, partition, usage
from tests.unit.optimizer.test_scenarios import FULL, IN, cluster, planned, why


def many(broker: int, count: int, amount: float, topic: str = "t") -> list[dict[str, object]]:
    return [partition([broker], topic=topic, network_in=amount) for _ in range(count)]


def test_nothing_is_moved_where_every_broker_is_as_near_its_band_as_it_can_be() -> None:
    held = [(1, 100.0), (1, 1.0)] + [(b, 5.0) for b in (2, 3) for _ in range(4)]
    result = planned(cluster([1, 2, 3], [([b], {"network_in": x}) for b, x in held]), IN)
    assert list(result.actions) == []
    assert "irreducible" in why(result, 1)
    assert "partitions larger than a band" in why(result, 2)


def test_what_lies_beside_a_giant_still_goes_where_it_is_missing() -> None:
    held = [(1, 100.0)] + [(1, 5.0)] * 4 + [(b, 5.0) for b in (2, 3) for _ in range(2)]
    result = planned(cluster([1, 2, 3], [([b], {"network_in": x}) for b, x in held]), IN)
    after = {b.id: b.after["network_in"] for b in result.brokers}
    assert after == {1: 100.0, 2: 20.0, 3: 20.0}


def test_two_giants_on_a_broker_are_parted() -> None:
    held = [(1, 100.0), (1, 100.0)] + [(b, 5.0) for b in (2, 3, 4) for _ in range(8)]
    result = planned(cluster([1, 2, 3, 4], [([b], {"network_in": x}) for b, x in held]), IN)
    assert max(b.after["network_in"] for b in result.brokers) < 150.0


def test_excluded_topics_above_a_band_count_as_what_cannot_be_helped() -> None:
    trial = Trial([1, 2, 3], many(1, 10, 10.0, "__x") + many(2, 2, 10.0) + many(3, 2, 10.0), usage(), exclude_topics=["__*"])
    problem = trial.compiled.problem
    table = reachable(problem, trial.state).table
    assert table[0, 0, HIGH] == np.inf  # what brings it into its other bands may add to this one
    assert table[1, 0, LOW] <= 20.0


def short_by(held: float) -> Trial:
    """Of 100 on ten brokers, broker 1 holds so much for good."""
    others = [p for b in range(2, 11) for p in many(b, 4, (100.0 - held) / 36.0)]
    return Trial(list(range(1, 11)), many(1, 1, held, "__x") + others, usage(), exclude_topics=["__*"])


def test_where_others_can_only_be_below_the_middle_of_their_bands_the_middle_is_nobodys_aim() -> None:
    """Hundreds of brokers were left a little below their bands, since others stood in the middle of theirs."""
    within, below = short_by(16.0), short_by(30.0)
    problem = within.compiled.problem
    reached = reachable(problem, within.state)
    assert (reached.force[:, STRENGTH] > problem.force[:, STRENGTH]).all()
    assert reached.table[1, 0, LOW] == problem.table[1, 0, LOW]
    assert reachable(below.compiled.problem, below.state).force is below.compiled.problem.force  # not all can come into band
    assert reachable(short_by(11.5).compiled.problem, short_by(11.5).state).force[0, STRENGTH] == problem.force[0, STRENGTH]


def test_where_no_partition_exceeds_a_band_there_is_nothing_to_reach_for() -> None:
    trial = Trial([1, 2, 3], many(1, 10, 10.0) + many(2, 2, 10.0) + many(3, 2, 10.0), usage())
    assert reachable(trial.compiled.problem, trial.state) is trial.compiled.problem


def test_a_level_cluster_costs_no_look_at_all_partitions() -> None:
    """A plan after a small change took three times as long: all partitions were weighed for brokers that lack nothing."""
    trial = Trial([1, 2, 3], many(1, 4, 5.0) + many(2, 4, 5.0) + many(3, 4, 5.0), usage())
    called: set[str] = set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code.co_name))
    reachable(trial.compiled.problem, trial.state)
    lower_bounds(trial.compiled.problem, trial.state)
    sys.setprofile(None)
    assert {"reachable", "_must_come"} <= called
    assert not called & {"_hosts_of_stuck", "_stuck", "_fillings"}


def full_of_excluded(*others: float) -> Trial:
    """Broker 1 holds 60 of excluded topics where 50 is the limit, and others beside."""
    brokers = [{"id": b, "capacity": {"network_in": 50.0}} for b in (1, 2, 3)]
    limit = {"kind": "capacity", "resource": "network_in", "limit": 1.0, "hard": True}
    held = [partition([1], topic="t", network_in=x) for x in others] + many(2, 4, 10.0) + many(3, 4, 10.0)
    return Trial(brokers, many(1, 6, 10.0, "__x") + held, limit, usage(), exclude_topics=["__*"])


def test_a_limit_that_excluded_topics_break_is_met_as_well_as_can_be_once_nothing_else_is_left() -> None:
    trial = full_of_excluded()
    table = beyond_limits(trial.compiled.problem, trial.state).table
    assert 60.0 <= table[0, 0, HIGH] < 60.0001
    assert table[0, 1, LOW] <= 60.0  # no band asks for more there
    assert (table[1:] == trial.compiled.problem.table[1:]).all()


def test_what_can_leave_a_broker_beyond_its_limit_is_still_wanted_off_it() -> None:
    trial = full_of_excluded(1.0)
    assert keeps_a_limit_broken(trial.compiled.problem, trial.state)
    assert beyond_limits(trial.compiled.problem, trial.state) is trial.compiled.problem


def beside_a_limit(disks: int) -> Trial:
    """Broker 1 holds 60 of bytes in for good where 50 is the limit, and no disk; some partitions have disk and no bytes in."""
    brokers = [{"id": b, "capacity": {"network_in": 50.0}} for b in (1, 2, 3)]
    limit = {"kind": "capacity", "resource": "network_in", "limit": 1.0, "hard": True}
    held = many(2, 4, 10.0) + many(3, 4, 10.0) + [partition([2 + n % 2], network_in=0.0, disk=5.0) for n in range(disks)]
    both = [partition([b], network_in=1.0, disk=60.0) for b in (2, 3)]
    return Trial(brokers, many(1, 6, 10.0, "__x") + held + both, limit, usage(), usage("disk"), exclude_topics=["__*"])


def test_what_adds_nothing_to_a_broken_limit_is_still_wanted_where_there_is_enough() -> None:
    enough, little = beside_a_limit(18), beside_a_limit(6)
    disk = enough.names.index("disk")
    of_enough, of_little = (beyond_limits(x.compiled.problem, x.state).table for x in (enough, little))
    assert of_enough[0, disk, LOW] == enough.compiled.problem.table[0, disk, LOW] > 0.0
    assert of_little[0, disk, LOW] <= 0.0


def test_a_broker_beyond_a_limit_comes_into_its_other_bands() -> None:
    brokers = [{"id": b, "capacity": {"network_in": 50.0}} for b in (1, 2, 3)]
    document = cluster(brokers, [([1], {"network_in": 10.0, "disk": 0.0}) for _ in range(6)], topic="__x")
    held = [([b], {"network_in": 10.0, "disk": 0.0}) for b in (2, 3) for _ in range(4)]
    held += [([2 + n % 2], {"network_in": 0.0, "disk": 5.0}) for n in range(30)]
    document["partitions"] += cluster(brokers, held)["partitions"]
    limit = {"kind": "capacity", "resource": "network_in", "limit": 1.0, "hard": True}
    result = planned(document, limit, IN, usage("disk"), constraints={"exclude_topics": ["__*"]})
    assert {b.id: b.after["disk"] for b in result.brokers}[1] >= 45.0


def test_a_limit_that_what_may_move_breaks_can_be_met() -> None:
    brokers = [{"id": b, "capacity": {"network_in": 50.0}} for b in (1, 2)]
    limit = {"kind": "capacity", "resource": "network_in", "limit": 1.0, "hard": True}
    trial = Trial(brokers, many(1, 4, 10.0, "__x") + many(1, 4, 10.0), limit, usage(), exclude_topics=["__*"])
    assert not keeps_a_limit_broken(trial.compiled.problem, trial.state)


def test_whatever_may_leave_a_broker_beyond_its_limit_leaves_it() -> None:
    held = [(1, 30.0)] * 2 + [(b, 5.0) for b in (2, 3) for _ in range(6)]
    brokers = [{"id": b, "capacity": {"disk": 50.0}} for b in (1, 2, 3)]
    document = cluster(brokers, [([b], {"disk": x, "network_in": x}) for b, x in held], topic="__x")
    beside = cluster(brokers, [([1], {"disk": 5.0, "network_in": 5.0}) for _ in range(3)])
    document["partitions"] += beside["partitions"]
    result = planned(document, FULL, IN, constraints={"exclude_topics": ["__*"]})
    assert {b.id: b.after["disk"] for b in result.brokers}[1] == 60.0
    assert "excluded topics hold" in why(result, 1)


def test_a_cluster_in_which_excluded_topics_break_limits_is_planned_in_few_steps() -> None:
    lows: list[int] = []

    def watch(low: int) -> bool:
        lows.append(low)
        return True

    snapshot = random_cluster(30, 6_000, "b", 0, "excluded")
    result = plan(snapshot, parse_goals(goals_text("excluded", 0.10), "benchmark"), PlanOptions(), watch)
    assert result.hard_violations_left == 3  # by excluded topics alone, on one broker
    assert lows[-1] == 0
    assert len(lows) <= 5  # 12 with other seeds and targets in vain


def test_a_cluster_of_giants_is_planned_in_few_steps() -> None:
    phases: list[int] = []

    def watch(low: int) -> bool:
        phases.append(low)
        return True

    snapshot = random_cluster(20, 400, "b", 0, "giants")
    goals = parse_goals(goals_text("giants", 0.10), "benchmark")
    plan(snapshot, goals, PlanOptions(), watch)
    assert len(phases) <= 40
