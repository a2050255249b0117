"""An operator should not pay for two moves where one does, nor copy a large replica where a smaller one brings the same balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from optimizer.search.sideways import sideways
from tests.unit.optimizer.actions import Document, Trial, partition, usage

RACKS: Document = {"kind": "rack_aware", "name": "racks"}
Load = tuple[float, float]  # network in and disk
LIMIT: Document = {"kind": "capacity", "resource": "cpu", "limit": 1.0, "name": "cpu", "hard": True}


def replaced(made: Trial, *moves: tuple[int, int, int]) -> tuple[bool, list[list[int]]]:
    """Whether random steps save something after these moves (partition, slot, broker row), and where replicas are then. Scores hold."""
    home = made.state.replicas.copy()
    lists = home.copy()
    for p, slot, broker in moves:
        lists[p, slot] = broker
    state = made.moved_to(lists)
    before = state.score.copy()
    rows = np.flatnonzero((lists != home).any(axis=1))
    saved = sideways(made.compiled.problem, state, home, rows, float(made.compiled.problem.cost[rows].sum()), 0)
    assert (state.score[:, :-1] >= before[:, :-1]).all()
    return saved > 0.0, state.replicas.tolist()


def held_after(held: Mapping[int, Sequence[float]], *moves: tuple[int, int, int]) -> tuple[int, dict[int, list[float]]]:
    """The same for brokers that hold these loads and moves of (broker, which of its own, to): what brokers hold then."""
    owners = [b for b, amounts in held.items() for _ in amounts]
    amounts = [x for own in held.values() for x in own]
    rows = [partition([b], network_in=x) for b, x in zip(owners, amounts, strict=True)]
    made = Trial(tuple(held), rows, usage(bound=0.1))
    found, after = replaced(made, *((owners.index(b) + which, 0, made.ids.index(to)) for b, which, to in moves))
    return found, {b: sorted(x for p, x in enumerate(amounts) if after[p][0] == made.ids.index(b)) for b in held}


def sized(held: Sequence[Load], *goals: Document, moved: int = 1, others: Sequence[Load] = ((40.0, 100.0), (70.0, 50.0))) -> list[int]:
    """The broker row of each partition of broker 1 after the first ones `moved` to 2."""
    rows = [partition([1], network_in=x, disk=y, follower={}) for x, y in held]
    rows += [partition([b], network_in=x, disk=y) for b, (x, y) in zip((2, 3), others, strict=True)]
    made = Trial([1, 2, 3], rows, *goals)
    _, after = replaced(made, *((p, 0, 1) for p in range(moved)))
    return [row[0] for row in after[: len(held)]]


# --- one for one: a smaller replica of the same broker ---------------------------------------------------------------

ALIKE = [(20.0, 900.0), (20.0, 500.0), (20.0, 100.0), (20.0, 100.0), (5.0, 10.0)]


def test_the_smallest_that_keeps_both_brokers_within_range_goes_instead() -> None:
    assert sized(ALIKE, usage(bound=0.15)) == [0, 0, 1, 0, 0]  # the first of two of the same size; that of 10 would be too little


def test_a_large_replica_goes_where_a_smaller_one_would_leave_a_band() -> None:
    assert sized([(20.0, 900.0), (5.0, 10.0), (60.0, 10.0)], usage(bound=0.15)) == [1, 0, 0]


def test_a_smaller_replica_may_not_take_a_hard_limit_of_another_load_with_it() -> None:
    rows = [partition([1], network_in=20.0, disk=y, cpu=x) for y, x in ((900.0, 1.0), (100.0, 9.0), (400.0, 1.0))]
    rows += [partition([2], network_in=1.0, disk=1.0, cpu=1.0)]
    made = Trial([{"id": b, "capacity": {"cpu": 5.0}} for b in (1, 2)], rows, LIMIT)
    assert replaced(made, (0, 0, 1)) == (1, [[0], [0], [1], [1]])


@pytest.mark.parametrize("at", [0, 1, 127, 128, 129, 255, 256, 298])
def test_the_one_that_fits_is_found_among_any_number(at: int) -> None:
    """Stand-ins are compared 128 at a time, by the load first by which none of the last ones fitted."""
    held = [(20.0, 900.0), *((60.0, 900.0) if n % 2 else (20.0, 901.0) for n in range(299))]
    held[1 + at] = (20.0, 800.0)
    amounts = np.array(held)
    rows = [partition([1], network_in=x, disk=y, follower={}) for x, y in held]
    rows += [partition([2], network_in=amounts[:, 0].sum() - 40.0, disk=100.0)]
    made = Trial([1, 2], rows, usage(bound=0.0005))
    found, after = replaced(made, (0, 0, 1))
    assert found == 1
    assert [p for p, row in enumerate(after[:300]) if row[0] == 1] == [1 + at]


def test_one_whose_other_replica_is_there_does_not_hide_the_next() -> None:
    """It would copy nothing, and so look best; but it cannot go."""
    rows = [
        partition([1], network_in=20.0, disk=900.0), partition([1, 2], network_in=20.0, disk=100.0, follower={}),
        partition([1], network_in=20.0, disk=200.0), partition([1], network_in=20.0, disk=900.0),
        partition([2], network_in=40.0, disk=100.0),
    ]  # fmt: skip
    found, after = replaced(Trial([1, 2], rows, usage(bound=0.05)), (0, 0, 1))
    assert found
    assert [row[0] for row in after] == [0, 0, 1, 0, 1]


def test_one_that_may_not_move_does_not_hide_the_next() -> None:
    rows = [
        partition([1], topic="kept", network_in=20.0, disk=100.0), partition([1], network_in=20.0, disk=900.0),
        partition([1], network_in=20.0, disk=200.0), partition([1], network_in=20.0, disk=900.0),
        partition([2], network_in=40.0, disk=100.0),
    ]  # fmt: skip
    found, after = replaced(Trial([1, 2], rows, usage(bound=0.05), exclude_topics=["kept"]), (1, 0, 1))
    assert found
    assert [row[0] for row in after] == [0, 0, 1, 0, 1]


def test_every_large_replica_finds_another_stand_in() -> None:
    held = [(20.0, 900.0), (20.0, 800.0), (20.0, 100.0), (20.0, 50.0), (20.0, 50.0)]
    assert sized(held, usage(bound=0.15), moved=2, others=((15.0, 100.0), (70.0, 50.0))) == [0, 0, 0, 1, 1]


# --- one for one: a replica that came and goes on, whose move is paid for ----------------------------------------------


def test_what_was_given_comes_home_and_what_was_taken_goes_on() -> None:
    held = {1: [76.0, 30.0], 2: [50.0, 29.0], 3: [55.0]}
    assert held_after(held, (1, 1, 2), (2, 1, 3)) == (1, {1: [76.0], 2: [29.0, 50.0], 3: [30.0, 55.0]})


def test_a_chain_stays_where_another_broker_would_leave_its_band() -> None:
    held = {1: [70.0, 50.0], 2: [60.0, 20.0], 3: [72.0]}
    assert held_after(held, (1, 1, 2), (2, 1, 3)) == (0, {1: [70.0], 2: [50.0, 60.0], 3: [20.0, 72.0]})


def test_what_came_does_not_go_on_to_a_rack_that_has_its_partition() -> None:
    rows = [
        partition([1, 4], network_in=30.0), partition([2, 4], network_in=30.0), partition([1], network_in=60.0),
        partition([2], network_in=70.0), partition([3], network_in=69.0),
    ]  # fmt: skip
    brokers = [{"id": b, "rack": rack} for b, rack in ((1, "a"), (2, "b"), (3, "c"), (4, "c"))]
    made = Trial(brokers, rows, RACKS, usage(bound=0.5))
    _, after = replaced(made, (0, 0, 1), (1, 0, 2), (1, 1, 0))  # whose second replica left its rack for the third broker
    racks = [0, 1, 2, 2]
    assert all(len({racks[b] for b in row if b >= 0}) == sum(b >= 0 for b in row) for row in after)


# --- one for two ---------------------------------------------------------------------------------------------------------

SMALL = (20.0, 100.0)


def lumped(other: Load, mate: bool = False) -> tuple[int, list[int]]:
    """How often one replica stood in for two where `other` stayed on broker 1 (with a `mate` of it on 2), and where its replicas are."""
    held = [SMALL, SMALL, other, (60.0, 100.0)]
    rows = [partition([1, 2] if mate and i == 2 else [1], network_in=x, disk=y, follower={}) for i, (x, y) in enumerate(held)]
    rows += [partition([b], network_in=x, disk=100.0) for b, x in ((2, 60.0), (3, 100.0))]
    made = Trial([1, 2, 3], rows, usage(bound=0.05), move_cost=100)
    found, after = replaced(made, (0, 0, 1), (1, 0, 1))
    return found, [row[0] for row in after[: len(held)]]


@pytest.mark.parametrize("other", [(40.0, 200.0), (38.0, 150.0), (40.0, 202.0)])
def test_one_replica_goes_in_the_place_of_two(other: Load) -> None:
    assert lumped(other) == (1, [0, 0, 1, 0])


@pytest.mark.parametrize(("other", "why"), [((40.0, 400.0), "it costs more than both"), ((30.0, 200.0), "a broker leaves its band")])
def test_two_go_where_one_does_not_do(other: Load, why: str) -> None:
    assert lumped(other) == (0, [1, 1, 0, 0]), why


def test_two_go_where_one_has_a_replica_there_already() -> None:
    assert lumped((40.0, 200.0), mate=True) == (0, [1, 1, 0, 0])


def test_of_two_brokers_one_may_go_without() -> None:
    """Broker 1 holds 40, 20, 10 and 10, the others 50 each: 10 went to either of them, and the 20 to one does as well."""
    amounts = [(1, 40.0), (1, 20.0), (1, 10.0), (1, 10.0), (2, 50.0), (3, 50.0)]
    for bound, moves in ((0.2, 1), (0.1, 2)):
        made = Trial([1, 2, 3], [partition([b], network_in=x) for b, x in amounts], usage(bound=bound))
        _, after = replaced(made, (2, 0, 1), (3, 0, 2))
        assert sum(row[0] != b - 1 for row, (b, _) in zip(after, amounts, strict=True)) == moves
