"""Brokers that cannot keep all their bands because of what excluded topics leave on them: the proof, and what a search makes of it.

A wrong proof would tell an operator to include topics where another plan would have done; a missing one makes plans take long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp

from optimizer.conflicts import NOTHING, conflicts
from optimizer.problem import COLUMN, DISTRIBUTION, KIND, LIMIT, MOVABLE
from tests.unit.optimizer.actions import Trial, partition, usage
from tests.unit.optimizer.test_why import why

TWO = ("network_in", "disk")
LIMITED = {"kind": "capacity", "resource": "network_in", "limit": 1.0, "hard": True}


def trial_of(held: list[tuple[int, str, float, float]], *goals: dict[str, Any], capacity: float | None = None) -> Trial:
    """Brokers 1, 2, 3 with partitions of one replica: broker, topic (``__x`` is excluded), bytes in, disk."""
    brokers = [{"id": b, **({"capacity": {"network_in": capacity}} if capacity else {})} for b in (1, 2, 3)]
    parts = [partition([b], topic=topic, network_in=a, disk=d) for b, topic, a, d in held]
    return Trial(brokers, sorted(parts, key=lambda x: x["topic"]), *goals, *(usage(x) for x in TWO), exclude_topics=["__*"])


def random_trial(seed: int) -> Trial:
    """What may not move fills about the band of broker 1 in bytes in, and less of its disk; the limit is below it, at it or above."""
    r = np.random.default_rng(seed)
    held = [(int(r.integers(1, 4)), "t", *r.choice([0.0, 0.5, 1.0, 2.0, 5.0], 2).tolist()) for _ in range(int(r.integers(4, 14)))]
    share, of_disk = float(r.uniform(0.85, 1.15)), float(r.uniform(0.0, 0.8))
    full = share * sum(x[2] for x in held) / (3.0 - share)
    held.append((1, "__x", full, of_disk * sum(x[3] for x in held) / (3.0 - of_disk)))
    return trial_of(held, LIMITED, capacity=full * float(r.choice([0.9, 1.05, 3.0])) + 0.1)


def found_in(trial: Trial) -> dict[tuple[int, int, int], float]:
    compiled = trial.compiled
    return {(c.broker, c.caps, c.needs): c.most for c in conflicts(compiled.problem, compiled.replicas, compiled.lead)}


# Broker 1 holds 19 of 20 bytes in for good and nothing of the disk; whatever may move brings as much of one as of the other.
FULL = [(1, "__x", 19.0, 0.0), *[(2, "t", 2.0, 5.0)] * 5, *[(3, "t", 3.1, 5.0)] * 10]


def test_a_broker_full_of_one_load_cannot_be_filled_with_another() -> None:
    trial = trial_of(FULL)
    most = (1.1 * 60.0 / 3 - 19.0) * 5.0 / 2.0
    assert found_in(trial) == {(0, trial.names.index("network_in"), trial.names.index("disk")): pytest.approx(most)}
    assert most < 0.9 * 75.0 / 3


def test_counts_are_whole_where_bands_are_not() -> None:
    """Broker 1 follows four partitions for good: up to 2.82 replicas may come, 2.79 leaders have to, and there are no parts of either."""
    fixed = [partition([b, 1], topic="__x") for b in (2, 3, 4, 5)]
    free = [partition([2 + n % 9, 2 + (n + 1) % 9]) for n in range(27)]
    trial = Trial(list(range(1, 11)), fixed + free, usage("replicas"), usage("leaders"), exclude_topics=["__*"])
    assert found_in(trial) == {(0, 0, 1): 2.0}
    said = "leave it 2 of replicas up to the end of its target range. With that at most 2 of leaders can come, but 3 is missing"
    assert said in why(trial, 1)


def test_a_limit_is_not_given_up_for_a_band() -> None:
    trial = trial_of([(1, "__x", 30.0, 0.0), *FULL[1:]], LIMITED, capacity=29.0)
    problem = trial.compiled.problem
    found = conflicts(problem, trial.compiled.replicas, trial.compiled.lead)
    assert [(c.broker, c.caps, c.most) for c in found] == [(0, NOTHING, 0.0)]


def test_where_everything_may_move_nothing_is_looked_at() -> None:
    trial = trial_of([(b, "t", a, d) for b, _, a, d in FULL])
    assert conflicts(trial.compiled.problem, trial.compiled.replicas, trial.compiled.lead) == ()


def test_the_plan_says_what_cannot_be_kept_together() -> None:
    text = why(trial_of([(1, "__x", 30.0, 0.0), *FULL[1:]], LIMITED, capacity=29.0), 1)
    assert "excluded topics hold it beyond a hard limit, and the replicas that could come without adding to that have 0 B" in text
    text = why(trial_of(FULL), 1)
    assert "leave it 3 B/s of network_in up to the end of its target range. With that at most 7.5 B of disk can come, but 23 B is" in text


@pytest.mark.parametrize("seed", range(60))
def test_no_choice_of_replicas_keeps_two_bands_in_conflict(seed: int) -> None:
    """Against an exact model: any of the replicas that may move on the broker, led or not, both bands kept."""
    trial = random_trial(seed)
    problem = trial.compiled.problem
    for one in conflicts(problem, trial.compiled.replicas, trial.compiled.lead):
        assert not can_keep(trial, one.broker, one.caps, one.needs)


def can_keep(trial: Trial, broker: int, caps: int, needs: int) -> bool:
    """Whether some of the replicas that may move bring a broker to its bands `caps` (or no further beyond any limit) and `needs`."""
    problem, state = trial.compiled.problem, trial.state
    free = problem.partition[:, MOVABLE] == 1
    mine = (state.replicas[:, 0] == broker) & ~free
    offers = problem.vector[free, 0]
    fixed = problem.vector[mine, 0].sum(axis=0) if mine.any() else np.zeros(problem.vector.shape[2])
    rows, low, high = [], [], []
    limits = [g for g in range(len(problem.goal)) if problem.goal[g, KIND] == LIMIT]
    for g in {needs, *limits} | ({caps} if caps != NOTHING else set()):
        c = problem.goal[g, COLUMN]
        mean, bound, _, ceiling = problem.table[broker, g, :4]
        band = problem.goal[g, KIND] == DISTRIBUTION
        rows.append(offers[:, c])
        low.append((mean - bound if band else -np.inf) - fixed[c])
        high.append(mean + bound - fixed[c] if band else max(ceiling - fixed[c], 0.0))
    count = len(offers)
    solved = milp(np.zeros(count), constraints=LinearConstraint(np.array(rows), low, high), integrality=np.ones(count), bounds=(0, 1))
    return bool(solved.success)


def test_conflicts_are_found_among_random_clusters() -> None:
    """So that the test above is of something."""
    assert sum(bool(found_in(random_trial(seed))) for seed in range(60)) > 10
