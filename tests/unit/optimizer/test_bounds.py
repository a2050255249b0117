"""What a plan is measured against: an operator who is told that so many moves are needed must not see a plan of fewer."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from kernels.compiled import kernel
from optimizer.bounds import fewest, fraction, lower_bounds
from optimizer.course import Placement
from optimizer.placement.commit import build_state
from optimizer.problem import CEILING
from optimizer.rack_bounds import most_given
from tests.unit.optimizer.actions import Document, Trial, partition, usage
from tests.unit.optimizer.exact import Loads, cheapest, linear_goals


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


def test_a_broker_that_leads_nothing_gives_away_followers() -> None:
    """Six leaders of 30, 10 as followers, above a limit of 40: leaderships alone leave 60, so two replicas have to go."""
    assert bounds_of(six_leaders([1, 2]))[0] == 2


def test_a_partition_of_one_replica_is_led_where_it_is() -> None:
    """It has no other leader: of 180, five of 30 have to go. Printed was 2, and 0 where followers cost nothing."""
    assert bounds_of(six_leaders([1]))[0] == 5


def six_leaders(replicas: list[int]) -> Trial:
    rows = [partition(replicas, follower={"cpu": 10.0}, cpu=30.0) for _ in range(6)]
    brokers: list[int | Document] = [{"id": b, "capacity": {"cpu": 1000.0 if b == 2 else 40.0}} for b in range(1, 11)]
    return Trial(brokers, rows, {"kind": "capacity", "resource": "cpu", "limit": 1.0, "hard": True})


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


def soft_limits(seed: int) -> Trial:
    """3 to 5 brokers, in racks or not, some of them above soft limits of disk and of replicas; leaders cost more network than followers."""
    r = np.random.default_rng([seed, 11])
    brokers, factor, racked = int(r.integers(3, 6)), int(r.integers(1, 3)), seed % 2 == 0
    weight = r.lognormal(0.0, 0.8, brokers)
    rows = []
    for _ in range(int(r.integers(8, 12))):
        hosts = [0, 3]
        while 0 in hosts or (racked and len(hosts) == 2 and hosts[0] % 3 == hosts[1] % 3):
            hosts = (r.choice(brokers, factor, replace=False, p=weight / weight.sum()) + 1).tolist()
        rate = float(r.lognormal(2.0, 0.7))
        rows.append(partition(hosts, follower={"network_out": 0.0, "disk": rate}, network_out=rate * float(r.uniform(0.5, 2.0)), disk=rate))
    each = sum(len(row["replicas"]) for row in rows) / brokers
    disk = sum(row["leader_load"]["disk"] * len(row["replicas"]) for row in rows) / brokers
    out = sum(row["leader_load"]["network_out"] for row in rows) / brokers
    entries: list[int | Document] = [
        {"id": b, "capacity": {"disk": 1.4 * disk, "network_out": 1.5 * out}, **({"rack": "abc"[b % 3]} if racked else {})}
        for b in range(1, brokers + 1)
    ]
    goals: list[Document] = [
        {"kind": "capacity", "resource": "disk", "limit": 1.0, "hard": False},
        {"kind": "capacity", "resource": "network_out", "limit": 1.0, "hard": False},
        {"kind": "count_limit", "resource": "replicas", "max": float(np.ceil(each) + 1), "hard": False},
    ]
    return Trial(entries, rows, *goals, *([{"kind": "rack_aware"}] if racked else []))


def test_no_placement_within_soft_limits_takes_less_than_the_bounds() -> None:
    """They were 0 for soft limits. HiGHS finds the fewest moves, and the fewest bytes, of each cluster."""
    compared, moves, data = 0, np.zeros(2), np.zeros(2)
    for seed in range(20):
        compiled = soft_limits(seed).compiled
        problem, start = compiled.problem, Placement(compiled.replicas, compiled.lead)
        bounds = lower_bounds(problem, start.state(compiled))
        goals = linear_goals(problem)
        ceiling = problem.table[:, goals, CEILING]
        within = Loads(goals, np.full(ceiling.shape, -np.inf), ceiling)
        fewest_moves = cheapest(compiled, start, within, np.ones(len(start.lead)), 2_000)
        least_bytes = cheapest(compiled, start, within, problem.size, 2_000)
        if fewest_moves is None or least_bytes is None or not (fewest_moves.proven and least_bytes.proven):
            continue
        compared += 1
        assert bounds.replica_moves <= round(fewest_moves.price), seed
        assert bounds.bytes_to_move <= least_bytes.price * (1 + 1e-6), seed
        moves += bounds.replica_moves, fewest_moves.price
        data += bounds.bytes_to_move, least_bytes.price
    assert compared >= 12
    assert moves[0] >= 0.8 * moves[1]
    assert data[0] >= 0.6 * data[1]


def test_a_soft_limit_that_brokers_cannot_all_keep_forces_nothing() -> None:
    rows = [partition([1 + n % 2], disk=10.1) for n in range(10)]
    goal: Document = {"kind": "count_limit", "resource": "replicas", "max": 3, "hard": False}
    assert bounds_of(Trial([1, 2], rows, goal)) == (0, 0)
    assert bounds_of(Trial([1, 2, 3, 4], rows, goal)) == (4, 40)


@kernel
def price_of_fraction(keys: np.ndarray, amount: np.ndarray, size: np.ndarray, by_size: bool, need: float) -> float:
    """As `fewest_leavers`, for `fraction`."""
    return fraction(keys, amount, size, by_size, need, np.zeros(len(keys), np.int64))


@pytest.mark.parametrize("by_size", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_items_are_taken_in_the_order_of_their_keys_and_the_last_in_part(seed: int, by_size: bool) -> None:
    """Many keys are equal, some infinite, and some amounts are nothing."""
    random = np.random.default_rng(seed)
    amount = random.integers(0, 6, 60).astype(float)
    size = random.integers(1, 9, 60).astype(float)
    keys = np.where(amount > 0.0, np.round(size / np.maximum(amount, 1.0), 1), np.inf)
    need = float(random.uniform(0.1, 0.9)) * amount.sum()
    expected, gone = 0.0, 0.0
    equal = [np.flatnonzero(keys == key) for key in np.unique(keys[amount > 0.0])]
    for rows in equal:
        gained = float(amount[rows].sum())
        if gone + gained >= need:
            rest = rows
            break
        expected, gone = expected + (float(size[rows].sum()) if by_size else len(rows)), gone + gained
    found = price_of_fraction(keys, amount, size, by_size, need)
    ways = []
    for row in rest:  # of equal keys any may come first
        ways.append((size[row] if by_size else 1.0) / amount[row])
    assert min(ways) - 1e-9 <= (found - expected) / (need - gone) <= max(ways) + 1e-9
    assert price_of_fraction(keys, amount, size, by_size, need / 2) < found
