"""An operator should not pay for moves that another placement, as good for every broker, does without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from optimizer.columns import MOVE_COST
from optimizer.options import PlanOptions
from optimizer.placement.commit import build_state
from optimizer.placement.state import LED, State
from optimizer.planner import plan
from optimizer.problem import FOLLOWING, LEADING, MOVABLE, RACK_OF, SOFT_RACK, STATE, Problem
from optimizer.search.sideways import sideways
from tests.unit.optimizer.actions import Document, Trial, partition, usage

SEEDS = range(8)
Move = tuple[int, int, int]  # partition, slot, broker id


def racks(hard: bool) -> Document:
    return {"kind": "rack_aware", "name": "racks", "hard": hard}


def topics(counts: str) -> Document:
    return {"kind": "topic_distribution", "resource": counts, "name": counts, "bound": 0.1}


class Walked(NamedTuple):
    saved: float
    brokers: list[list[int]]  # of each partition, slot by slot
    lead: list[int]


def walked(made: Trial, moves: Sequence[Move], seed: int = 0) -> Walked:
    """Where steps lead from the placement after `moves`. What must hold of any walk holds of this one."""
    problem, home = made.compiled.problem, made.state.replicas.copy()
    lists = home.copy()
    for p, slot, broker in moves:
        lists[p, slot] = made.ids.index(broker)
    begin, state = made.moved_to(lists), made.moved_to(lists)
    rows = np.flatnonzero((lists != home).any(axis=1))
    paid = price(problem, home, begin)
    saved = sideways(problem, state, home, rows, paid, seed)
    assert price(problem, home, begin) - price(problem, home, state) == pytest.approx(saved)
    assert saved >= 0.0
    assert (state.score[:, :-1] >= begin.score[:, :-1] - 1e-12).all(), "a score fell"
    assert_consistent(problem, state)
    assert_allowed(problem, begin, state)
    again = made.moved_to(lists)
    assert sideways(problem, again, home, rows, paid, seed) == saved
    assert np.array_equal(again.replicas, state.replicas)
    assert np.array_equal(again.lead, state.lead)
    brokers = [[made.ids[b] for b in row if b >= 0] for row in state.replicas.tolist()]
    return Walked(float(saved), brokers, state.lead.tolist())


def price(problem: Problem, home: np.ndarray, state: State) -> float:
    """What all replicas cost together that do not stand where they did."""
    return sum(float(problem.cost[p]) for p, s in np.ndindex(*home.shape) if home[p, s] != state.replicas[p, s])


def assert_consistent(problem: Problem, state: State) -> None:
    """Sums, lists and scores are those of the placement."""
    fresh = build_state(problem, state.replicas, state.lead)
    for name in ("hosts", "load", "units", "topic_count", "score"):
        assert np.array_equal(getattr(state, name), getattr(fresh, name)), name
    slots = state.replicas.shape[1]
    for b, n in enumerate(state.hosts.tolist()):
        assert sorted(state.hosted[b, :n]) == sorted(fresh.hosted[b, :n])
        for at, entry in enumerate(state.hosted[b, :n].tolist()):
            p, s = divmod(entry, slots)
            assert state.place[p, s] == at
            assert bool(state.mark[b, at] & LED) == (state.lead[p] == s)
    for row in state.replicas.tolist():
        taken = [b for b in row if b >= 0]
        assert len(set(taken)) == len(taken), "a broker holds a partition twice"


def assert_allowed(problem: Problem, begin: State, state: State) -> None:
    """Nothing that must not change has."""
    assert np.array_equal(begin.replicas >= 0, state.replicas >= 0)
    moved, led = (begin.replicas != state.replicas).any(axis=1), begin.lead != state.lead
    assert problem.partition[moved | led, MOVABLE].all(), "a partition that may not change has"
    for b in np.flatnonzero(problem.broker[:, STATE] != 0).tolist():
        assert np.array_equal(begin.replicas == b, state.replicas == b), "a broker that is not active gave or took"
        assert not led[(state.replicas == b).any(axis=1) & (led_by(begin, b) | led_by(state, b))].any()
    assert (problem.vector[led, LEADING] != problem.vector[led, FOLLOWING]).any(axis=1).all(), "a leadership for nothing"
    if problem.setting[1] == SOFT_RACK:
        rack, there = problem.broker[:, RACK_OF], state.replicas >= 0
        assert np.array_equal(rack[begin.replicas[there]], rack[state.replicas[there]]), "a replica changed racks"


def led_by(state: State, b: int) -> np.ndarray:
    """bool [P]: partitions that broker row `b` leads."""
    return np.asarray(state.replicas[np.arange(len(state.lead)), state.lead] == b)


# --- what saves a move -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_replica_that_moved_without_need_goes_home(seed: int) -> None:
    made = Trial([1, 2], [partition([b], network_in=10.0, disk=4.0) for b in (1, 1, 1, 2, 2)], usage(bound=0.3))
    found = walked(made, [(0, 0, 2)], seed)
    assert found.brokers == [[1], [1], [1], [2], [2]]
    assert found.saved == pytest.approx(4.0 * (1.0 + MOVE_COST))


def test_a_replica_that_is_needed_where_it_went_stays_away() -> None:
    made = Trial([1, 2], [partition([b], network_in=x) for b, x in ((1, 30.0), (1, 10.0), (2, 20.0))], usage(bound=0.1))
    assert walked(made, [(1, 0, 2)]).brokers == [[1], [2], [2]]


@pytest.mark.parametrize("seed", SEEDS)
def test_where_all_had_to_leave_nothing_is_tried(seed: int) -> None:
    """No other placement copies less."""
    rows = [partition([b], network_in=10.0) for b in (1, 1, 2, 3)]
    made = Trial([{"id": 1, "state": "draining"}, 2, 3], rows, usage(bound=0.5))
    found = walked(made, [(0, 0, 2), (1, 0, 3)], seed)
    assert found.saved == 0.0
    assert found.brokers == [[2], [3], [2], [3]]


def two_for_one(large_disk: float = 0.0, frozen: Sequence[str] = (), excluded: Sequence[str] = ()) -> Trial:
    """Broker 1 holds 20, 20, 40 and 70, broker 2 holds 50, within 19 of 100: both of 20 went to 2, where the 40 does as well.

    Where the 40 is large on disk, bytes alone count.
    """
    loads = ((1, 20.0, "t"), (1, 20.0, "t"), (1, 40.0, "large"), (1, 70.0, "rest"), (2, 50.0, "rest"))
    disk = {"t": large_disk / 5.0, "large": large_disk, "rest": large_disk}
    rows = [partition([b], topic=t, network_in=x, disk=disk[t]) for b, x, t in loads]
    move_cost = 0 if large_disk else None
    return Trial([1, 2], rows, usage(bound=0.19), freeze_topics=frozen, exclude_topics=excluded, move_cost=move_cost)


def where(made: Trial, found: Walked) -> dict[float, list[int]]:
    """Brokers of partitions by load, of those that the walks above are about."""
    held: dict[float, list[int]] = {}
    for row, brokers in enumerate(found.brokers):
        held.setdefault(float(made.compiled.problem.vector[row, LEADING, 0]), []).extend(brokers)
    return held


def rows_of(made: Trial, load: float) -> list[int]:
    return np.flatnonzero(made.compiled.problem.vector[:, LEADING, 0] == load).tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_two_small_moves_become_one_larger_when_cost_is_per_move(seed: int) -> None:
    made = two_for_one()
    found = walked(made, [(p, 0, 2) for p in rows_of(made, 20.0)], seed)
    assert (found.saved, where(made, found)) == (1.0, {20.0: [1, 1], 40.0: [2], 70.0: [1], 50.0: [2]})


@pytest.mark.parametrize("seed", SEEDS)
def test_two_small_moves_stay_where_the_larger_costs_more(seed: int) -> None:
    made = two_for_one(large_disk=100.0)
    found = walked(made, [(p, 0, 2) for p in rows_of(made, 20.0)], seed)
    assert (found.saved, where(made, found)) == (0.0, {20.0: [2, 2], 40.0: [1], 70.0: [1], 50.0: [2]})


@pytest.mark.parametrize("made", [two_for_one(frozen=["large"]), two_for_one(excluded=["large"])], ids=["frozen", "excluded"])
def test_no_stand_in_is_of_a_topic_that_is_left_alone(made: Trial) -> None:
    found = walked(made, [(p, 0, 2) for p in rows_of(made, 20.0)])
    assert (found.saved, where(made, found)[40.0]) == (0.0, [1])


def led_for_moved() -> Trial:
    """Broker 1 sends 115, of which 30 for a partition that broker 2 follows, and 30 for another: that goes to 2, or the leadership does."""
    rows = [
        partition([1, 2], network_out=30.0, follower={}), partition([1], network_out=30.0),
        partition([1], network_out=55.0), partition([2], network_out=25.0), partition([3], network_out=70.0),
    ]  # fmt: skip
    return Trial([1, 2, 3], rows, usage("network_out", bound=0.25))


@pytest.mark.parametrize("seed", SEEDS)
def test_leaderships_of_partitions_that_do_not_move_stay(seed: int) -> None:
    """A million replicas have many leaderships that could go somewhere at no cost; the stage before has made those that help."""
    found = walked(led_for_moved(), [(1, 0, 2)], seed)
    assert (found.saved, found.lead) == (0.0, [0, 0, 0, 0, 0])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leadership_passed_on_makes_room_to_come_home(seed: int) -> None:
    """Broker 1 has room for the replica that left it as a follower, and so for its leader after that."""
    rows = [
        partition([1, 2], network_out=40.0, network_in=10.0, follower={"network_in": 10.0}),
        partition([1], network_out=70.0, network_in=10.0), partition([2], network_out=30.0, network_in=10.0),
        partition([3], network_out=60.0, network_in=30.0),
    ]  # fmt: skip
    found = walked(Trial([1, 2, 3], rows, usage("network_out", bound=0.25)), [(0, 0, 3)], seed)
    assert found.brokers[0] == [1, 2]
    assert found.lead[0] == 1


@pytest.mark.parametrize("state", ["draining", "excluded"])
def test_no_leadership_goes_to_a_broker_that_is_not_active(state: str) -> None:
    rows = [partition([1, 2], network_out=1.0, follower={}) for _ in range(4)]
    rows += [partition([b], network_out=x) for b, x in ((1, 30.0), (1, 10.0), (3, 20.0))]
    made = Trial([1, {"id": 2, "state": state}, 3], rows, usage("network_out", bound=0.2))
    assert walked(made, [(5, 0, 3)]).lead == [0] * 7


def test_no_leadership_is_passed_on_where_its_topic_has_its_share_of_leaders() -> None:
    """Either broker should lead 3 to 5 of eight."""
    rows = [partition([b, 3 - b], network_out=0.1, follower={}) for b in (1, 2) * 4]
    rows += [partition([b], topic="other", network_out=x) for b, x in ((1, 30.0), (1, 10.0), (2, 20.0))]
    made = Trial([1, 2], rows, usage("network_out", bound=0.2), topics("leaders"))
    eight = rows_of(made, made.compiled.problem.vector[:, LEADING, 0].min())
    for seed in SEEDS:
        found = walked(made, [(rows_of(made, 10.0)[0], 0, 2)], seed)
        assert sum(found.brokers[p][found.lead[p]] == 1 for p in eight) in (3, 4, 5)


def test_leaderships_stay_where_a_leader_counts_like_a_follower() -> None:
    rows = [partition([1, 2], network_in=10.0, follower={"network_in": 10.0}) for _ in range(4)]
    rows += [partition([1], network_in=x) for x in (30.0, 10.0)] + [partition([2], network_in=20.0)]
    assert walked(Trial([1, 2], rows, usage(bound=0.1)), [(5, 0, 2)]).lead == [0] * 7


# --- what a step may not do --------------------------------------------------------------------------------------------


def test_replicas_go_home_only_as_far_as_their_topic_stays_spread() -> None:
    """Brokers 1 and 2 held 6 and 2 of it, and should hold 3 to 5 each."""
    rows = [partition([1], topic="a", network_in=10.0) for _ in range(6)] + [partition([2], topic="a", network_in=10.0) for _ in range(2)]
    made = Trial([1, 2], rows, usage(bound=0.55), topics("replicas"))
    assert sorted(b for row in walked(made, [(0, 0, 2), (1, 0, 2)]).brokers for b in row) == [1] * 5 + [2] * 3


@pytest.mark.parametrize(("hard", "left"), [(True, 0), (False, 1)], ids=["hard", "soft"])
def test_by_a_soft_rule_on_racks_no_replica_changes_racks(hard: bool, left: int) -> None:
    """By a hard one it may, as long as its partition fits."""
    brokers = [{"id": b, "rack": rack} for b, rack in ((1, "a"), (2, "b"), (3, "c"))]
    made = Trial(brokers, [partition([b, 3], network_in=10.0) for b in (1, 1, 2)], racks(hard), usage(bound=0.55))
    home = [[1, 3], [1, 3], [2, 3]]
    assert sum(a != b for a, b in zip(walked(made, [(0, 0, 2)]).brokers, home, strict=True)) == left


def test_no_replica_comes_to_a_rack_that_has_its_partition() -> None:
    """A replica of the first went from rack a to c, and another to rack a: it cannot come home."""
    brokers = [{"id": b, "rack": rack} for b, rack in ((1, "a"), (2, "a"), (3, "b"), (4, "c"), (5, "c"))]
    made = Trial(brokers, [partition([1, 3], network_in=10.0), partition([2], network_in=10.0)], racks(True), usage(bound=0.59, var=0.6))
    for seed in SEEDS:
        found = walked(made, [(0, 0, 4), (0, 1, 2)], seed)
        rack = ["", "a", "a", "b", "c", "c"]
        assert all(len({rack[b] for b in row}) == len(row) for row in found.brokers)


@pytest.mark.parametrize("state", ["draining", "dead", "excluded"])
def test_a_replica_does_not_go_home_to_a_broker_that_is_not_active(state: str) -> None:
    rows = [partition([1, 4], leader=4, network_in=10.0), *(partition([b], network_in=10.0) for b in (2, 2, 3, 3, 4))]
    made = Trial([{"id": 1, "state": state}, 2, 3, 4], rows, usage(bound=0.55))
    for seed in SEEDS:
        assert walked(made, [(0, 0, 2)], seed).brokers[0] in ([2, 4], [3, 4])


def test_nothing_moved_is_nothing_to_do() -> None:
    made = Trial([1, 2], [partition([1], network_in=10.0), partition([2], network_in=30.0)], usage(bound=0.1))
    assert walked(made, []) == (0.0, [[1], [2]], [0, 0])


# --- any cluster -------------------------------------------------------------------------------------------------------

ODD = ("draining", "excluded")
GOALS: tuple[tuple[Document, ...], ...] = (
    ({}, usage("network_out", bound=0.2), {**usage("replicas", bound=0.2), "name": "counts"}),
    ({}, {"kind": "capacity", "resource": "network_in", "limit": 0.2, "name": "limit", "hard": True}),
    ({}, topics("replicas"), topics("leaders")),
    ({}, racks(True), racks(False)),
)

def placement(r: np.random.Generator) -> tuple[Trial, list[Move]]:
    """A cluster of three racks under some goals, and moves of replicas among active brokers that keep partitions in separate racks."""
    count = int(r.integers(4, 8))
    active = count - int(r.random() < 0.4)  # the last may be another
    brokers: list[Document] = [{"id": b, "rack": "abc"[b % 3], "capacity": {"network_in": 200.0}} for b in range(1, count + 1)]
    brokers[-1]["state"] = "active" if active == count else ODD[r.integers(2)]
    rows, moves = [], []
    for p in range(int(r.integers(3, 13))):
        ids = [int(r.choice([b for b in range(1, count + 1) if b % 3 == rack])) for rack in r.permutation(3)[: r.integers(1, 4)]]
        load, sent, disk = (float(x) for x in r.integers(0, 13, 3))
        follower = {"network_in": load, "network_out": 0.0, "disk": disk} if r.random() < 0.5 else None
        rows.append(partition(ids, topic="abk"[r.integers(3)], network_in=load, network_out=sent, disk=disk, follower=follower))
        slot, to = int(r.integers(len(ids))), int(r.integers(1, active + 1))
        others = {b % 3 for b in ids if b != ids[slot]}
        if r.random() < 0.6 and rows[-1]["topic"] != "k" and ids[slot] <= active and to % 3 not in others and to != ids[slot]:
            moves.append((p, slot, to))
    goals = [usage(bound=[0.1, 0.3][r.integers(2)])] + [each[r.integers(len(each))] for each in GOALS]
    made = Trial(brokers, rows, *[g for g in goals if g], exclude_topics=["k"])
    return made, [(row_of(made, rows, p), slot, to) for p, slot, to in moves]


def row_of(made: Trial, rows: Sequence[Document], p: int) -> int:
    """The row in the snapshot of the `p`-th of `rows`."""
    topic = rows[p]["topic"]
    return int(made.snapshot.row_of_partition(topic, sum(row["topic"] == topic for row in rows[:p])))


@settings(max_examples=60, phases=(Phase.explicit, Phase.generate))
@given(st.integers(0, 2**32))
def test_any_walk_keeps_scores_and_costs_no_more(seed: int) -> None:
    walked(*placement(np.random.default_rng(seed)), seed)


# --- corners that random steps found -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_an_empty_home_has_no_stand_in(seed: int) -> None:
    """The last partition, which had moved for good reason, was moved on unchecked in the place of a replica that broker 1 does not have."""
    loads = ((1, 1.0), (2, 15.0), (3, 15.0), (3, 10.0))
    made = Trial([1, 2, 3, 4], [partition([b], network_in=x) for b, x in loads], usage(bound=0.59))
    assert walked(made, [(0, 0, 2), (3, 0, 4)], seed).brokers[0] == [1]


def test_a_load_of_exactly_min_load_is_not_below_it() -> None:
    rows = [partition([b], network_in=x) for b, x in ((1, 2.0), (1, 3.0), (3, 2.0), (4, 1.0))]
    walked(Trial([1, 2, 3, 4], rows, usage(bound=0.2, min_load=5.0)), [(0, 0, 2)])


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_broker_scores_lower_by_racks(hard: bool, seed: int) -> None:
    limit: Document = {"kind": "capacity", "resource": "network_in", "limit": 1.0, "name": "limit", "hard": True}
    brokers = [
        {"id": b, "rack": rack, "capacity": {"network_in": x}}
        for b, rack, x in ((1, "a", 100.0), (2, "a", 100.0), (3, "b", 100.0), (4, "b", 100.0), (5, "c", 1.0), (6, "a", 100.0))
    ]
    rows = [partition([1, 2, 3], network_in=10.0), partition([1], network_in=95.0), partition([6], network_in=1.0)]
    walked(Trial(brokers, rows, racks(hard), limit), [(0, 0, 6)], seed)


def test_a_plan_ends_where_moves_cost_nothing() -> None:
    """With a move cost of 0, a plan that moved empty partitions alone went on for ever."""
    held = [partition([b], network_in=x, disk=y) for b, x, y in ((1, 30.0, 5.0), (1, 10.0, 0.0), (2, 20.0, 5.0))]
    made = Trial([1, 2], held, usage(bound=0.1))
    assert plan(made.snapshot, made.parsed, PlanOptions(move_cost=0)).summary.replica_moves == 1
