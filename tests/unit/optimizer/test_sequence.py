"""A placement worth reaching is reached, also where the actions that help most leave the others without one that helps."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from optimizer.options import PlanOptions
from optimizer.placement.log import Budget, Log, budget_for, empty_log
from optimizer.placement.state import State
from optimizer.search.sequence import Judged, in_turn, judge_each, sequence, take_back
from tests.unit.optimizer.actions import Document, Trial, partition, usage
from tests.unit.optimizer.test_sideways import assert_consistent

CHANGES = ((2, 40.0, 2), (1, 50.0, 1), (2, 10.0, 3), (1, 20.0, 2), (2, 40.0, 3))  # broker, load, broker of the target


class Way(NamedTuple):
    """How the target was reached from brokers 1 to 3 with 70, 90 and 0, which should hold 40 to 67 each."""

    state: State
    log: Log
    budget: Budget
    left: int

    @property
    def actions(self) -> list[list[int]]:
        """Partitions of each action."""
        ends = self.log.first[: self.log.used[0] + 1].tolist()
        return [self.log.partition[a:b].tolist() for a, b in pairwise(ends)]


def cluster() -> Trial:
    return Trial([1, 2, 3], [partition([b], network_in=x) for b, x, _ in CHANGES], usage(bound=0.25))


def target(made: Trial) -> tuple[np.ndarray, np.ndarray]:
    """int64 [P, 1] replicas of the target, and the partitions that differ."""
    to = np.array([[made.ids.index(b)] for _, _, b in CHANGES])
    return to, np.flatnonzero((to != made.state.replicas).any(axis=1))


def greedily(made: Trial) -> Way:
    """What helps most at each time, alone."""
    problem, (to, rows) = made.compiled.problem, target(made)
    state, log, budget = made.moved_to(made.state.replicas), empty_log(1, len(rows) + 1), budget_for(made.compiled, PlanOptions())
    judged = Judged(np.zeros(len(rows)), np.zeros(len(rows), np.int64), np.zeros(len(rows), np.uint8))
    judge_each(problem, state, 0, len(rows), rows, to, state.lead, False, judged)
    left = in_turn(problem, state, budget, log, rows, to, state.lead, False, judged, 0, np.inf)
    return Way(state, log, budget, len(left))


def in_order(made: Trial, options: PlanOptions) -> Way:
    problem, (to, rows) = made.compiled.problem, target(made)
    state, log, budget = made.moved_to(made.state.replicas), empty_log(1, len(rows) + 1), budget_for(made.compiled, options)
    log.used[:] = 1, 1  # an action of the round stands there already
    log.first[1], log.partition[0] = 1, 1
    left = sequence(problem, state, budget, log, rows, to, state.lead, False)
    return Way(state, log, budget, left)


# --- what finds no turn goes first ----------------------------------------------------------------------------------------


def test_what_helps_most_leaves_others_without_a_turn() -> None:
    """The 40 leaves brokers 2 and 3 in range, so that neither the 10 helps, nor the 20 of broker 1, which is still outside."""
    way = greedily(cluster())
    assert (way.actions, way.left, way.state.load[:, 0].tolist()) == ([[4]], 2, [70.0, 50.0, 40.0])


def test_what_found_no_turn_goes_first_with_what_makes_up_for_it() -> None:
    way = in_order(cluster(), PlanOptions())
    assert (way.actions[1:], way.left, way.state.load[:, 0].tolist()) == ([[2, 4], [3]], 0, [50.0, 60.0, 50.0])
    assert_consistent(cluster().compiled.problem, way.state)


def test_the_log_has_nothing_of_what_was_taken_back() -> None:
    way = in_order(cluster(), PlanOptions())
    assert way.actions[0] == [1]  # what stood there before
    assert way.log.used.tolist() == [3, 4]
    at, lists = way.log.partition[1:4], np.array([to for _, _, to in CHANGES]) - 1
    assert np.array_equal(way.log.replicas[1:4, 0], lists[at])
    assert way.budget.spent.tolist() == [0.0, 0.0, 0.0]


def test_a_budget_is_spent_in_the_first_order() -> None:
    way = in_order(cluster(), PlanOptions(max_moves=10))
    assert (way.actions[1:], way.left, way.budget.spent.tolist()) == ([[4]], 2, [1.0, 0.0, 1.0])


def test_the_order_is_the_same_each_time() -> None:
    one, other = (in_order(cluster(), PlanOptions()) for _ in range(2))
    assert one.actions == other.actions


# --- taking back ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_what_is_taken_back_leaves_no_trace(seed: int) -> None:
    r = np.random.default_rng(seed)
    goals: list[Document] = [usage(bound=0.2), usage("network_out", bound=0.2), {"kind": "rack_aware", "name": "racks"}]
    goals += [{"kind": "topic_distribution", "resource": counts, "name": counts, "bound": 0.1} for counts in ("replicas", "leaders")]
    lists = [r.permutation(6)[: r.integers(1, 4)].tolist() for _ in range(30)]
    rows = [partition(ids, topic="ab"[p % 2], network_in=float(r.integers(1, 9)), network_out=r.random()) for p, ids in enumerate(lists)]
    made = Trial([{"id": b, "rack": "abc"[b % 3]} for b in range(6)], rows, *goals)
    problem, home, lead = made.compiled.problem, made.state.replicas.copy(), made.state.lead.copy()
    state = made.moved_to(home)
    changed = np.flatnonzero(r.random(30) < 0.5)
    before, before_lead = home[changed], lead[changed]
    for p in changed:
        size = int((home[p] >= 0).sum())
        goal = np.append(r.permutation(6)[:size], np.full(home.shape[1] - size, -1))[None, :]
        take_back(problem, state, np.array([p]), goal, np.array([r.integers(size)]))  # which puts a partition anywhere
    assert not np.array_equal(state.load, made.state.load)
    assert_consistent(problem, state)
    take_back(problem, state, changed, before, before_lead)
    for name in ("replicas", "lead", "hosts", "load", "units", "topic_count", "score"):
        assert np.array_equal(getattr(state, name), getattr(made.state, name)), name
    assert_consistent(problem, state)


# --- what is acceptable only together ------------------------------------------------------------------------------------


def rings(seed: int, brokers: int = 6, slack: float = 1.05) -> tuple[int, int]:
    """Twice round all brokers a replica has to go to the next, each to one with little room by its hard limits: changes left, and all."""
    r = np.random.default_rng(seed)
    loads, end = r.lognormal(0.0, 0.8, (5 * brokers, 2)), np.repeat(np.arange(brokers), 5)
    start = end.copy()
    for _ in range(2):
        ring = r.permutation(brokers)
        for here, there in zip(ring, np.roll(ring, -1), strict=True):
            start[r.choice(np.flatnonzero((end == there) & (start == there)))] = here
    limits = [slack * np.bincount(end, loads[:, c], brokers) for c in range(2)]
    made = Trial(
        [{"id": b, "capacity": {"network_in": limits[0][b], "disk": limits[1][b]}} for b in range(brokers)],
        [partition([int(b)], network_in=x, disk=y) for b, (x, y) in zip(start, loads.tolist(), strict=True)],
        *({"kind": "capacity", "resource": name, "limit": 1.0, "name": name} for name in ("network_in", "disk")),
    )
    problem, rows, state = made.compiled.problem, np.flatnonzero(start != end), made.moved_to(made.state.replicas)
    budget, log = budget_for(made.compiled, PlanOptions()), empty_log(1, len(rows) + 1)
    return sequence(problem, state, budget, log, rows, end[:, None], state.lead, False), len(rows)


def test_the_next_change_of_a_bundle_leaves_the_fewest_hard_goals_worse() -> None:
    left, changes = np.sum([rings(seed) for seed in range(60)], axis=0)
    assert changes == 720
    assert left < 110  # of these, where the next is the one by which the potential falls most: 136


# --- what the contract accepts, and the potential does not ----------------------------------------------------------------


@pytest.mark.parametrize(("by_potential", "left"), [(False, 0), (True, 1)])
def test_a_broker_comes_into_range_though_others_leave_the_middle_of_theirs(by_potential: bool, left: int) -> None:
    """Broker 1 takes in 110.5, just above its range. What brings it down to 109.5 carries 8 of its disk to broker 3, which has 101."""
    loads = ((1, 1.0, 8.0), (1, 109.5, 92.0), (2, 99.0, 99.0), (3, 90.5, 101.0))
    made = Trial([1, 2, 3], [partition([b], network_in=x, disk=y) for b, x, y in loads], usage(bound=0.1), usage("disk", bound=0.1))
    problem, state, log = made.compiled.problem, made.moved_to(made.state.replicas), empty_log(1, 2)
    to, rows = state.replicas.copy(), np.array([0])
    to[0, 0] = made.ids.index(3)
    before = state.score[:, -1].sum()
    assert sequence(problem, state, budget_for(made.compiled, PlanOptions()), log, rows, to, state.lead, by_potential) == left
    assert (state.score[:, :-1] == 1.0).all() == (not by_potential)
    assert (state.score[:, -1].sum() > before) == (not by_potential)


@pytest.mark.parametrize("room", range(5))
def test_a_full_log_takes_no_more_actions(room: int) -> None:
    """More were written behind its end: a partition may change twice, its leader before its replica."""
    made = cluster()
    problem, (to, rows) = made.compiled.problem, target(made)
    state, log, budget = made.moved_to(made.state.replicas), empty_log(1, room), budget_for(made.compiled, PlanOptions())
    left = sequence(problem, state, budget, log, rows, to, state.lead, False)
    assert log.used[1] <= room
    assert left == len(rows) - log.used[1]
    assert (state.replicas[rows] != to[rows]).any(axis=1).sum() == left
