"""The fewest moves to level counts: the published cluster, brute force on small ones, and what stands in the way."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.policies.comparison import compare, read_assignment
from optimizer.policies.counts import Placement, count_moves, may_take, spread_targets
from optimizer.policies.leaders import FREE, UNTOUCHED, Led, level_leaders
from optimizer.report import to_json, topic_files
from optimizer.report.plan_file import read_plan
from tests.oracle.replay import check

PUBLISHED = """6353 6576 6684 6636 6689 6797 6863 6968 7085 7220 6893 6932 6969 7037 6945 6776 6653 6613 6603 6621 7286 7334 7341
7285 7265 7231 7142 7085 7019 6947 6880 6893 5706 5382 5446 5408 5281 5089 4821 4823"""
GOALS = "version: 1\npreset: counts\npolicy: {preset: wix-minimal}\n"


def dealt(counts: list[int], rf: int, seed: int) -> np.ndarray:
    """int64 [P, rf]: replica lists with exactly these counts: dealt out in turn, then swapped between pairs of partitions at random."""
    random = np.random.default_rng(seed)
    lists = np.repeat(np.arange(len(counts)), counts).reshape(rf, -1).T.copy()
    half = len(lists) // 2
    for _ in range(30):
        order = random.permutation(len(lists))
        one, two, slot, other = order[:half], order[half : 2 * half], random.integers(rf, size=half), random.integers(rf, size=half)
        mine, theirs = lists[one, slot], lists[two, other]
        free = ~(lists[one] == theirs[:, None]).any(axis=1) & ~(lists[two] == mine[:, None]).any(axis=1)
        lists[one[free], slot[free]], lists[two[free], other[free]] = theirs[free], mine[free]
    assert np.bincount(lists.ravel(), minlength=len(counts)).tolist() == counts
    return random.permuted(lists, axis=1)


def cluster(lists: np.ndarray, brokers: int, racks: list[str | None] | None = None) -> Snapshot:
    """Topics of a hundred partitions; nothing is known of loads."""
    count = len(lists)
    return Snapshot(
        "published", "2026-01-01T00:00:00Z", "local", np.arange(brokers, dtype=np.int32), np.zeros(brokers, np.int8),
        tuple(racks or [None] * brokers), {}, tuple(f"t{i:04d}" for i in range(-(-count // 100))),
        (np.arange(count) // 100).astype(np.int32), (np.arange(count) % 100).astype(np.int32), lists.astype(np.int32),
        lists[:, 0].astype(np.int32), {}, {}, np.zeros(count, np.bool_),
    )  # fmt: skip


def counts_after(snapshot: Snapshot, made: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Replicas and leaders of every broker when the proposals are carried out."""
    lists, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    for c in made.proposals:
        row = snapshot.row_of_partition(c.topic, c.partition)
        lists[row] = [snapshot.row_of_broker[b] for b in c.replicas_after]
        leader[row] = snapshot.row_of_broker[c.leader_after] if c.leader_after is not None else -1
        assert len(set(c.replicas_after)) == len(c.replicas_before)
    return np.bincount(lists.ravel(), minlength=snapshot.broker_count), np.bincount(leader, minlength=snapshot.broker_count)


def test_the_published_cluster_takes_11005_moves_and_its_leaders_only_reordering() -> None:
    """WIX-A1, A2, A3: an operator would copy data for nothing otherwise."""
    counts = [int(word) for word in PUBLISHED.split()]
    lists = dealt(counts, 3, 1)
    everything = np.ones(len(lists), np.bool_)
    given = Placement(lists, everything, np.ones(40, np.bool_), np.zeros(40, np.bool_), None, np.full(len(lists), 9), np.ones(len(lists)))
    found = count_moves(given, spread_targets(given.counts, given.takes, given.leaves))
    after = lists.copy()
    after[found.partition, found.slot] = found.target
    level = np.bincount(after.ravel())
    assert (len(found.partition), found.least, found.proven) == (11005, 11005, True)
    assert len(np.unique(found.partition)) == 11005
    assert sorted(np.unique(level, return_counts=True)[1].tolist()) == [17, 23]
    assert (np.sort(after, axis=1)[:, 1:] != np.sort(after, axis=1)[:, :-1]).all()
    price = np.full(len(lists), UNTOUCHED)
    price[found.partition[found.slot == 0]] = FREE
    lead = level_leaders(Led(after, np.zeros(len(lists), np.int64), everything, np.ones(40, np.bool_), price))
    leaders = np.bincount(after[np.arange(len(after)), lead])
    assert np.unique(leaders, return_counts=True)[0].tolist() == [2196, 2197]


def test_the_preset_plans_the_same_and_its_plan_file_replays() -> None:
    counts = [n // 60 for n in map(int, PUBLISHED.split())]
    counts[0] += -sum(counts) % 3
    snapshot = cluster(dealt(counts, 3, 2), 40)
    made = plan(snapshot, parse_goals(GOALS, "goals.yaml"))
    target = spread_targets(np.array(counts), np.ones(40, np.bool_), np.zeros(40, np.bool_))
    assert made.summary.replica_moves == np.maximum(np.array(counts) - target, 0).sum()
    replicas, leaders = counts_after(snapshot, made)
    assert np.ptp(replicas) <= 1
    assert np.ptp(leaders) <= 1
    assert plan(snapshot, parse_goals(GOALS, "goals.yaml")).plan_id == made.plan_id
    assert read_plan(to_json(made).encode(), "plan.json").summary == made.summary
    files = topic_files(made, snapshot)
    sides: list[dict[str, dict[int, tuple[int, ...]]]] = [{}, {}]
    for path, text in files.items():
        sides[path.startswith("migrated/")] |= read_assignment(text, path)
    assert compare(sides[0], sides[1]).holds
    assert "no plan needs fewer" in " ".join(made.notes)


def test_every_first_part_of_the_plan_leaves_lists_that_kafka_takes() -> None:
    """WIX-A5: an operator may stop after any batch."""
    snapshot = cluster(dealt([60, 60, 60, 30, 30, 0], 3, 3), 6)
    lists = {(t, int(n)): tuple(row.tolist()) for t, n, row in zip(
        [snapshot.topics[i] for i in snapshot.partition_topic], snapshot.partition_number, snapshot.replicas, strict=True)}  # fmt: skip
    for action in plan(snapshot, parse_goals(GOALS, "goals.yaml")).actions:
        for c in action.changes:
            assert lists[c.topic, c.partition] == c.replicas_before
            assert len(set(c.replicas_after)) == 3
            assert c.leader_after == c.replicas_after[0] or c.leader_after == c.leader_before
            lists[c.topic, c.partition] = c.replicas_after


@pytest.mark.parametrize("seed", range(60))
def test_no_plan_of_small_clusters_is_shorter(seed: int) -> None:
    """Brute force over every way to replace at most one broker of each partition."""
    random = np.random.default_rng(seed)
    brokers, partitions, rf = int(random.integers(3, 5)), int(random.integers(2, 5)), 2
    weights = random.random(brokers) ** 3 + 0.01
    lists = np.array([random.choice(brokers, rf, replace=False, p=weights / weights.sum()) for _ in range(partitions)])
    rack = random.integers(0, 2, brokers) if seed % 3 == 0 else None
    movable = random.random(partitions) < 0.8
    given = Placement(
        lists, movable, np.ones(brokers, np.bool_), np.zeros(brokers, np.bool_), rack, np.ones(partitions, np.int64), np.ones(partitions)
    )
    target = spread_targets(given.counts, given.takes, given.leaves)
    found = count_moves(given, target)
    after = lists.copy()
    after[found.partition, found.slot] = found.target
    mine = (np.abs(np.bincount(after.ravel(), minlength=brokers) - target).sum(), len(found.partition))
    assert mine == _best(given, target)


def _best(given: Placement, target: np.ndarray) -> tuple[int, int]:
    """How far the best counts are from `target`, and the fewest moves to them."""
    ways = []
    for p, row in enumerate(given.replicas):
        changes = [row]
        for slot, new in product(range(len(row)), range(len(target))):
            if given.movable[p] and may_take(given, np.array([p]), np.array([slot]), np.array([new]))[0, 0]:
                other = row.copy()
                other[slot] = new
                changes.append(other)
        ways.append(changes)
    best = (10**6, 10**6)
    for choice in product(*ways):
        lists = np.array(choice)
        off = int(np.abs(np.bincount(lists.ravel(), minlength=len(target)) - target).sum())
        best = min(best, (off, int((lists != given.replicas).any(axis=1).sum())))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_no_order_of_lists_levels_leaders_with_fewer_changes(seed: int) -> None:
    random = np.random.default_rng(seed)
    brokers, partitions = 4, 6
    lists = np.array([random.choice(brokers, 3, replace=False) for _ in range(partitions)])
    lists[:, 2] = np.where(random.random(partitions) < 0.4, -1, lists[:, 2])
    lead = np.zeros(partitions, np.int64)
    movable = random.random(partitions) < 0.85
    given = Led(lists, lead, movable, np.ones(brokers, np.bool_), np.full(partitions, UNTOUCHED))
    target = (partitions // brokers, -(-partitions // brokers))

    def cost(leads: np.ndarray) -> tuple[int, int]:
        counts = np.bincount(lists[np.arange(partitions), leads], minlength=brokers)
        off = max(np.maximum(target[0] - counts, 0).sum(), np.maximum(counts - target[1], 0).sum())
        return int(off), int((leads != lead).sum())

    ways = [np.flatnonzero(row >= 0).tolist() if movable[p] else [0] for p, row in enumerate(lists)]
    best = min(cost(np.array(choice)) for choice in product(*ways))
    mine = cost(level_leaders(given))
    assert mine[0] == best[0]
    if best[0] == 0:
        assert mine == best


@pytest.mark.parametrize(
    ("counts", "tolerance", "moves"),
    [([10, 10, 10, 9], 0.0, 0), ([4, 4, 4, 5], 0.0, 0), ([6, 0, 6], 0.0, 4), ([12, 12, 0], 0.25, 6), ([0, 0, 30], 0.0, 20)],
)
def test_targets_need_no_more_moves_than_the_formula(counts: list[int], tolerance: float, moves: int) -> None:
    """WIX-N6 and others: sum of what is above the target."""
    given = np.array(counts)
    target = spread_targets(given, np.ones(len(counts), np.bool_), np.zeros(len(counts), np.bool_), tolerance)
    assert target.sum() == given.sum()
    assert np.maximum(given - target, 0).sum() == moves


def test_a_draining_broker_is_emptied_and_an_excluded_one_stays_as_it_is() -> None:
    brokers = [{"id": 1, "state": "draining"}, {"id": 2}, {"id": 3}, {"id": 4}, {"id": 5, "state": "excluded"}]
    partitions = [
        {"topic": "t", "partition": p, "replicas": r, "leader": r[0]}
        for p, r in enumerate([[1, 2], [1, 3], [2, 1], [2, 5], [3, 5], [2, 3], [2, 4]])
    ]
    document = {"version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local", "brokers": brokers,
                "partitions": partitions}  # fmt: skip
    snapshot = build_snapshot(document)
    made = plan(snapshot, parse_goals(GOALS, "goals.yaml"))
    replicas, leaders = counts_after(snapshot, made)
    assert replicas.tolist() == [0, 4, 4, 4, 2]
    assert leaders[0] == 0
    assert made.summary.replica_moves == 4


def test_scores_in_the_plan_are_those_of_the_contract() -> None:
    snapshot = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local",
        "brokers": [{"id": b, "rack": "abc"[b % 3]} for b in range(6)],
        "partitions": [{"topic": "t", "partition": p, "replicas": [p % 3, (p + 1) % 3], "leader": p % 3} for p in range(30)],
    }  # fmt: skip
    goals = {"version": 1, "goals": [{"kind": "rack_aware"}, {"kind": "usage_distribution", "resource": "replicas"},
                                     {"kind": "usage_distribution", "resource": "leaders"}]}  # fmt: skip
    made = plan(build_snapshot(snapshot), parse_goals(json.dumps({**goals, "policy": {"preset": "wix-minimal"}}), "goals.yaml"))
    assert made.summary.replica_moves == 30
    wrong = [line for line in check(snapshot, goals, json.loads(to_json(made))) if "0.5" not in line]
    assert wrong == []


def test_a_budget_takes_the_first_moves_and_says_how_many_are_left() -> None:
    snapshot = cluster(dealt([60, 60, 60, 30, 30, 0], 3, 3), 6)
    made = plan(snapshot, parse_goals(GOALS, "goals.yaml"), PlanOptions(max_moves=7))
    assert made.summary.replica_moves == 7
    assert any("were left out" in note for note in made.notes)
