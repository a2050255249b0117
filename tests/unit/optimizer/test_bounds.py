"""What a plan is measured against: an operator who is told that so many moves are needed must not see a plan of fewer."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from kernels.compiled import kernel
from optimizer.bounds import fewest, lower_bounds
from optimizer.rack_bounds import most_given
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


@kernel
def fewest_leavers(amounts: np.ndarray, excess: np.ndarray) -> float:
    """Only kernels may call `fewest`: from Python, what it calls has no way in and crashes."""
    return fewest(amounts, excess)


@pytest.mark.parametrize("seed", range(60))
def test_no_choice_has_fewer_replicas_than_the_bound(seed: int) -> None:
    r = np.random.default_rng([seed, 5])
    amounts = r.lognormal(0.0, 1.5, (int(r.integers(2, 5)), int(r.integers(3, 10))))
    excess = amounts.sum(axis=1) * r.uniform(0.05, 0.7, len(amounts))
    assert 0.0 < fewest_leavers(amounts, excess) <= fewest_of_all(amounts, excess) + 1e-9


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


def test_who_has_to_give_cannot_give_for_a_rack_that_it_is_not_in() -> None:
    # Off brokers 1 and 2, of which 1 must give three anyway, come five that share rack a; and one off broker 5, which none shares with.
    assert bounds_of(racked(*[[1, 2]] * 5, *[[1]] * 4, *[[5]] * 7, [3], [4], [6]))[0] == 6


def most_of_all(leave: np.ndarray, holder: np.ndarray, need: np.ndarray) -> int:
    """As `most_given`, by trying every choice of givers."""
    choices = [list(combinations([b for b in row if b >= 0], n)) for n, row in zip(leave.tolist(), holder.tolist(), strict=True)]
    given = [np.bincount([b for givers in chosen for b in givers], minlength=len(need)) for chosen in product(*choices)]
    return max(int(np.minimum(counts, need).sum()) for counts in given)


@pytest.mark.parametrize("seed", range(60))
def test_as_many_give_for_crowded_racks_as_can(seed: int) -> None:
    r = np.random.default_rng([seed, 6])
    brokers, slots, count = int(r.integers(2, 6)), int(r.integers(2, 4)), int(r.integers(0, 7))
    slots = min(brokers, slots)
    holder = np.full((count, slots), -1, np.int64)
    leave = np.zeros(count, np.int64)
    for i in range(count):
        held = int(r.integers(1, slots + 1))
        holder[i, r.permutation(slots)[:held]] = r.permutation(brokers)[:held]
        leave[i] = r.integers(1, held + 1)
    need = r.integers(0, 4, brokers)
    assert most_given(leave, holder, need) == most_of_all(leave, holder, need)


def test_three_in_a_rack_force_two_moves() -> None:
    assert bounds_of(racked([1, 2], [1, 2], [3, 5], [4, 6], [3, 6], [4, 5])) == (2, 20)
