"""What a plan is measured against: an operator who is told that so many moves are needed must not see a plan of fewer."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from optimizer.bounds import lower_bounds
from optimizer.search import uncompiled
from optimizer.search.commit import build_state
from tests.unit.optimizer.actions import Document, Trial, partition, usage


def test_replicas_that_each_mend_one_goal_do_not_count_as_one_that_mends_both() -> None:
    rows = [partition([1], network_in=80.0, network_out=1.0), partition([1], network_in=1.0, network_out=80.0)]
    rows += [partition([1], network_in=100.0, network_out=100.0) for _ in range(3)]
    rows += [partition([b], network_in=100.0, network_out=100.0) for b in (2, 2, 3, 3)]
    made = Trial([1, 2, 3], rows, usage(bound=0.1), usage("network_out", bound=0.1))
    state = build_state(made.compiled.problem, made.compiled.replicas, made.compiled.lead)
    assert lower_bounds(made.compiled.problem, state).replica_moves == 2  # 120 too much of each, of which one takes 100


def fewest_of_all(amounts: np.ndarray, excess: np.ndarray) -> int:
    for size in range(1, amounts.shape[1] + 1):
        for chosen in combinations(range(amounts.shape[1]), size):
            if (amounts[:, list(chosen)].sum(axis=1) >= excess * (1 - 1e-12)).all():
                return size
    return 0


@pytest.mark.parametrize("seed", range(60))
def test_no_choice_has_fewer_replicas_than_the_bound(seed: int) -> None:
    r = np.random.default_rng([seed, 5])
    amounts = r.lognormal(0.0, 1.5, (int(r.integers(2, 5)), int(r.integers(3, 10))))
    excess = amounts.sum(axis=1) * r.uniform(0.05, 0.7, len(amounts))
    assert 0.0 < uncompiled.fewest(amounts, excess) <= fewest_of_all(amounts, excess) + 1e-9


def racked(*replicas: list[int]) -> Trial:
    """Brokers 1 to 6 in racks a, a, b, b, c, c with these partitions."""
    brokers: list[int | Document] = [{"id": b, "rack": "aabbcc"[b - 1]} for b in range(1, 7)]
    rows = [partition(list(brokers_of), network_in=1.0, disk=10.2) for brokers_of in replicas]
    return Trial(brokers, rows, {"kind": "rack_aware", "hard": True, "name": "racks"}, usage(bound=0.5))


def bounds_of(made: Trial) -> tuple[int, int]:
    state = build_state(made.compiled.problem, made.compiled.replicas, made.compiled.lead)
    found = lower_bounds(made.compiled.problem, state)
    return found.replica_moves, found.bytes_to_move


def test_a_crowded_rack_of_level_brokers_forces_a_move_beside_those_of_others() -> None:
    # Of two replicas in rack a one must leave; and broker 5 holds four where the mean is two, so one leaves it, too.
    assert bounds_of(racked([1, 2], [1, 3], [2, 4], [5, 3], [5, 4], [5], [5])) == (2, 20)


def test_a_move_that_mends_a_rack_and_a_broker_counts_once() -> None:
    assert bounds_of(racked([5, 6], [1, 3], [2, 4], [5, 3], [5, 4], [5, 1], [2])) == (1, 10)


def test_three_in_a_rack_force_two_moves() -> None:
    assert bounds_of(racked([1, 2], [1, 2], [3, 5], [4, 6], [3, 6], [4, 5])) == (2, 20)
