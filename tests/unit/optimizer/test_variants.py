"""The problem as a stage of the search sees it: hard limits that are wishes for a while, soft limits that count as bands."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from goals.document import parse_goals
from optimizer.placement.commit import build_state
from optimizer.planner import plan
from optimizer.problem import (
    BOUND,
    CEILING,
    CENTERING,
    DISTRIBUTION,
    HARD,
    HARD_WEIGHT,
    HIGH,
    HINGE,
    KIND,
    LIMIT,
    LOW,
    MEAN,
    SET_OF,
    SPREAD,
    STRENGTH,
)
from optimizer.search.irreducible import within_reach
from optimizer.search.variants import banded, mending, tightest
from tests.clusters.synthetic import cluster
from tests.unit.optimizer.actions import Document, Trial, partition, usage

USED = usage(bound=0.5)  # up to 15 of 10
RACKS: Document = {"kind": "rack_aware", "name": "racks"}
TOPICS: Document = {"kind": "topic_distribution", "resource": "replicas", "name": "topics", "bound": 0.1}
LIMITS: dict[str, tuple[list[Document], list[bool]]] = {
    "alone": ([{"limit": 1.0}], [True]),
    "beyond a target range": ([USED, {"limit": 0.9}], [True, False]),
    "within a target range": ([USED, {"limit": 0.12}], [False, True]),
    "the lower of two": ([{"limit": 0.5}, {"limit": 0.4}], [False, True]),
    "two alike": ([{"limit": 0.5}, {"limit": 0.5}], [False, False]),
    "on another load": ([USED, {"limit": 0.9, "resource": "disk"}], [True, True]),
    "and racks": ([RACKS, {"limit": 0.9}], [False, True]),
    "and topics": ([TOPICS, {"limit": 0.9}], [False, True]),
    "and two below": ([{"limit": 0.9}, USED, {"limit": 0.12}], [False, False, True]),
}


def limited(goals: list[Document], last: str = "active") -> Trial:
    """Four brokers with 10 each, of 100 at most, the `last` in that state; a goal without a kind is a hard limit."""
    brokers = [{"id": b, "capacity": {"network_in": 100.0, "disk": 100.0}, "state": last if b == 4 else "active"} for b in range(1, 5)]
    limit: Document = {"kind": "capacity", "resource": "network_in", "hard": True}
    named = [g if "kind" in g else {**limit, **g, "name": f"limit-{i}"} for i, g in enumerate(goals)]
    return Trial(brokers, [partition([b], network_in=10.0, disk=10.0) for b in range(1, 5)], *named)


@pytest.mark.parametrize("case", LIMITS)
def test_the_tightest_upper_ends(case: str) -> None:
    goals, tight = LIMITS[case]
    assert tightest(limited(goals).compiled.problem).tolist() == tight


@pytest.mark.parametrize(("state", "tight"), [("active", [False, False]), ("draining", [False, True]), ("excluded", [False, True])])
def test_it_is_the_tightest_for_all_active_brokers(state: str, tight: list[bool]) -> None:
    problem = limited([USED, {"limit": 0.12}], state).compiled.problem
    table = problem.table.copy()
    table[3, 1, HIGH] = 90.0
    assert tightest(problem._replace(table=table)).tolist() == tight


def test_what_no_broker_breaks_stays_hard() -> None:
    problem = limited([USED, {"limit": 0.9}]).compiled.problem
    assert mending(problem, np.zeros(2, np.int64)) is problem


def test_a_broken_limit_becomes_a_wish_and_the_others_stay_hard() -> None:
    problem = limited([{"limit": 0.09}, {"limit": 0.5}, USED]).compiled.problem
    wish = mending(problem, np.array([4, 0, 0]))
    assert (problem.goal[:, HARD].tolist(), wish.goal[:, HARD].tolist()) == ([1, 1, 0], [0, 1, 0])
    assert wish.table[:, 0, HIGH].tolist() == [HINGE * x for x in problem.table[:, 0, CEILING]]
    assert np.array_equal(wish.table[:, 1:], problem.table[:, 1:])


@pytest.mark.parametrize(("limit", "weighs"), [(0.5, 1.0), (0.001, HARD_WEIGHT)])
def test_a_hard_limit_beside_a_tighter_soft_goal_weighs_as_that_one_until_a_target_leaves_it_broken(limit: float, weighs: float) -> None:
    problem = limited([{"limit": limit}, {**USED, "weight": 3.0}]).compiled.problem
    assert problem.force[:, STRENGTH].tolist() == [weighs, 1.0]
    assert mending(problem, np.array([4, 0])).force[:, STRENGTH].tolist() == [HARD_WEIGHT, 1.0]


def test_a_state_is_judged_alike_by_wishes() -> None:
    """Scores are of the limit itself: a wish changes where the potential rises, not what is outside."""
    made = limited([{"limit": 0.09}, USED])
    wish = mending(made.compiled.problem, np.array([4, 0]))
    assert np.array_equal(build_state(wish, made.state.replicas, made.state.lead).score[:, :-1], made.state.score[:, :-1])


# --- soft limits as bands ------------------------------------------------------------------------------------------------

SOFT: Document = {"kind": "capacity", "resource": "network_in", "limit": 0.5, "hard": False, "name": "soft"}


def loaded(*loads: float, goals: list[Document] | None = None, excluded: int = -1) -> Trial:
    """A broker for each load, which one partition is."""
    brokers = [
        {"id": b, "capacity": {"network_in": 100.0}, "state": "excluded" if b == excluded else "active"} for b in range(len(loads))
    ]
    held = [partition([b], network_in=x) for b, x in enumerate(loads) if x]
    return Trial(brokers, held, *(goals or [SOFT]))


def test_a_soft_limit_counts_as_the_band_of_the_same_height() -> None:
    made = loaded(60.0, 30.0, 35.0, 35.0)
    seen = banded(made.compiled.problem, made.state)
    assert seen.goal[0, KIND] == DISTRIBUTION
    assert seen.table[:, 0, MEAN].tolist() == [40.0] * 4
    assert seen.table[:, 0, BOUND].tolist() == [10.0] * 4
    assert seen.table[:, 0, HIGH] == pytest.approx(50.0 - 0.01 * 10.0)
    assert seen.table[:, 0, LOW] == pytest.approx(30.0 + 0.01 * 10.0)
    assert build_state(seen, made.state.replicas, made.state.lead).score[0, 0] < 1.0  # it is out of both


def test_a_hard_limit_that_is_a_wish_counts_as_that_band_too() -> None:
    made = loaded(60.0, 30.0, 35.0, 35.0, goals=[{**SOFT, "hard": True}])
    wish = mending(made.compiled.problem, np.array([1]))
    seen, soft = banded(wish, made.state), loaded(60.0, 30.0, 35.0, 35.0)
    assert seen.goal[0].tolist() == banded(soft.compiled.problem, soft.state).goal[0].tolist()
    assert np.array_equal(seen.table, banded(soft.compiled.problem, soft.state).table)


def test_the_band_of_a_single_wish_weighs_as_a_soft_goal() -> None:
    """With the weight of a hard goal, the disks of the whole cluster were levelled for one broker above a limit."""
    others = [usage("leaders", bound=0.1, weight=2.0), usage("replicas", bound=0.1)]
    made = loaded(60.0, 30.0, 35.0, 35.0, goals=[{**SOFT, "hard": True}, *others])
    problem = made.compiled.problem
    force = banded(mending(problem, np.array([1, 0, 0])), made.state).force
    assert force[0, STRENGTH] == problem.force[1, STRENGTH] == force[:, STRENGTH].max()
    assert force[0, SPREAD] == CENTERING * force[0, STRENGTH]


def test_wishes_that_contend_keep_their_weight() -> None:
    limits = [{**SOFT, "hard": True}, {**SOFT, "hard": True, "name": "other", "limit": 0.55}]
    made = loaded(60.0, 30.0, 35.0, 35.0, goals=[*limits, usage("leaders", bound=0.1)])
    seen = banded(mending(made.compiled.problem, np.array([1, 1, 0])), made.state)
    assert seen.goal[0, KIND] == DISTRIBUTION
    assert seen.force[:2, STRENGTH].tolist() == [HARD_WEIGHT] * 2


@pytest.mark.parametrize("seed", [960008, 960009, 960013, 960017, 960032])
def test_a_hard_limit_costs_no_more_than_the_same_soft_one(seed: int) -> None:
    """Two brokers grew beyond a limit on disk; the other loads have target ranges. The hard limit took a quarter to a half more."""
    snapshot, r = cluster(20, 400, "d", seed), np.random.default_rng(seed)
    grown = np.where(np.isin(snapshot.replicas, r.choice(20, 2, replace=False)).any(axis=1), 1.8, 1.0)
    lead, follow = ({**load, "disk": grown * load["disk"]} for load in (snapshot.leader_load, snapshot.follower_load))
    snapshot = replace(snapshot, leader_load=lead, follower_load=follow)
    share = 1.1 * snapshot.broker_load("disk").mean() / snapshot.capacity["disk"].mean()
    cost = []
    for hard in (True, False):
        goals = [{"kind": "capacity", "resource": "disk", "limit": round(float(share), 4), "hard": hard}]
        goals += [usage(load, bound=0.2) for load in ("network_in", "network_out", "cpu", "replicas")]
        found = plan(snapshot, parse_goals(json.dumps({"version": 1, "goals": goals}), "test")).summary
        cost.append(found.bytes_to_move + 3.0 * float(lead["disk"].mean()) * found.replica_moves)
    assert cost[0] <= 1.05 * cost[1]


@pytest.mark.parametrize(("least", "kind"), [(12.0, DISTRIBUTION), (5.0, LIMIT)])  # 10.5 have to leave, and 19 or 22 are lacked
def test_a_limit_is_a_band_if_half_of_what_brokers_lack_has_to_leave_others(least: float, kind: int) -> None:
    """A count limit stayed a limit beside four that were bands, for a few replicas too few, and gave way to them: three times the moves."""
    made = loaded(60.0, least, 45.0, 45.0)
    assert banded(made.compiled.problem, made.state).goal[0, KIND] == kind


def test_each_set_of_brokers_has_a_mean_of_its_own() -> None:
    made = loaded(30.0, 50.0, 15.0, 25.0)
    broker = made.compiled.problem.broker.copy()
    broker[:, SET_OF] = [0, 0, 1, 1]
    assert banded(made.compiled.problem._replace(broker=broker), made.state).table[:, 0, MEAN].tolist() == [40.0, 40.0, 20.0, 20.0]


@pytest.mark.parametrize(
    ("loads", "why"),
    [
        ((52.0, 44.0, 44.0, 0.0), "the new broker lacks 20, and 2.5 are too many: it need not be filled"),
        ((55.0, 55.0, 55.0, 55.0), "no placement meets the limit"),
        ((0.0, 0.0), "there is no load"),
    ],
)
def test_a_limit_stays_a_limit(loads: tuple[float, ...], why: str) -> None:
    made = loaded(*loads)
    assert banded(made.compiled.problem, made.state) is made.compiled.problem, why


@pytest.mark.parametrize(
    "goals",
    [
        [{**SOFT, "hard": True}],  # a hard limit that a target may not break
        [usage(bound=0.2), SOFT],  # up to 48 of 40: the band is tighter
        [SOFT, {**SOFT, "name": "lower", "limit": 0.45}],
    ],
)
def test_only_soft_limits_that_are_the_tightest_on_their_load_become_bands(goals: list[Document]) -> None:
    made = loaded(60.0, 30.0, 35.0, 35.0, goals=goals)
    seen = banded(made.compiled.problem, made.state)
    kept = [g for g, goal in enumerate(goals) if goal["kind"] == "capacity" and goal["limit"] == SOFT["limit"]]
    assert (seen.goal[kept, KIND] == LIMIT).all()


def test_what_is_not_active_has_no_part_of_the_mean() -> None:
    made = loaded(60.0, 30.0, 35.0, 35.0, 90.0, excluded=4)
    seen = banded(made.compiled.problem, made.state)
    assert seen.table[:4, 0, MEAN].tolist() == [40.0] * 4
    assert np.array_equal(seen.table[4], made.compiled.problem.table[4])


def test_a_broker_without_a_limit_has_no_band() -> None:
    made = loaded(60.0, 30.0, 35.0, 35.0)
    table = made.compiled.problem.table.copy()
    table[3, 0, [CEILING, HIGH]] = np.inf
    problem = made.compiled.problem._replace(table=table)
    assert banded(problem, made.state) is problem


def test_a_limit_that_a_broker_cannot_meet_stays_a_limit() -> None:
    made = loaded(60.0, 30.0, 35.0, 35.0)  # 60 is one partition
    aim = within_reach(made.compiled.problem, made.state)
    assert aim.table[0, 0, HIGH] == 60.0
    assert banded(aim, made.state) is aim


@pytest.mark.parametrize("seed", [5, 15, 27, 32, 47, 52])
@pytest.mark.parametrize(("brokers", "each", "copies", "spread"), [(30, 4, 3, 1.5), (30, 6, 3, 2.0), (12, 5, 2, 1.5)])
def test_partitions_larger_than_a_soft_limit_do_not_keep_the_rest_as_it_is(
    seed: int, brokers: int, each: int, copies: int, spread: float
) -> None:
    """Counted as bands, such limits led to brokers so far above that no plan was made, though others can be met."""
    r = np.random.default_rng(seed)
    drawn = r.lognormal(0.0, spread, (brokers * each, 3)).tolist()
    partitions = []
    for number, (disk, come, go) in enumerate(drawn):
        hosts = (1 + r.choice(brokers, copies, replace=False)).tolist()
        kept = {"disk": disk, "network_in": come}
        one = {"topic": "t", "partition": number, "replicas": hosts, "leader": hosts[0], "follower_load": kept}
        partitions.append({**one, "leader_load": {**kept, "network_out": go}})
    share = (np.sum(drawn, axis=0) * [copies, copies, 1] / brokers).tolist()
    room = dict(zip(("disk", "network_in", "network_out"), share, strict=True))
    snapshot = {
        "version": 1, "cluster_id": "heavy", "taken_at": "2026-11-20T12:00:00Z", "storage": "local", "partitions": partitions,
        "brokers": [{"id": b, "state": "active", "capacity": room} for b in range(1, brokers + 1)],
    }  # fmt: skip
    goals = parse_goals(
        json.dumps({"version": 1, "goals": [{"kind": "capacity", "resource": load, "limit": 1.1, "hard": False} for load in room]}), "test"
    )
    made = plan(build_snapshot(snapshot), goals)
    before, left = (sum(getattr(goal, at).violations for goal in made.goals) for at in ("before", "after"))
    assert left <= 0.8 * before


# --- hard limits that the last target leaves broken ----------------------------------------------------------------------


@pytest.mark.parametrize("soft", ["leaders", "replicas"])
@pytest.mark.parametrize("share", [0.0005, 0.005, 0.05])
@pytest.mark.parametrize(("brokers", "each"), [(3, 2), (4, 3), (10, 6)])
def test_a_hard_limit_exceeded_by_little_is_worth_a_soft_goal(brokers: int, each: int, share: float, soft: str) -> None:
    """Counts are level, and one broker has to give a partition away all the same."""
    room = [{"id": b, "capacity": {"network_in": each / (1 + share) if b == 1 else 1.5 * each}} for b in range(1, brokers + 1)]
    goals: list[Document] = [{"kind": "capacity", "resource": "network_in", "limit": 1.0, "name": "limit"}, usage(soft, bound=0.1)]
    made = Trial(room, [partition([b], network_in=1.0) for b in range(1, brokers + 1) for _ in range(each)], *goals)
    found = plan(made.snapshot, parse_goals(json.dumps({"version": 1, "goals": goals}), "test"))
    assert [g.after.violations for g in found.goals if g.hard and g.after is not None] == [0]
    assert found.summary.replica_moves == 1
