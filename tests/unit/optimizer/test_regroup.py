"""With shared storage an operator should not pay for three moves where two larger ones bring the same balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from optimizer.search.partners import crowd_of
from optimizer.search.regroup import regroup
from tests.unit.optimizer.actions import Document, Trial, partition, usage


def placed(held: Sequence[float], *moves: tuple[int, int], brokers: Sequence[int | Document] = (1, 2, 3)) -> tuple[int, list[int]]:
    """How often one fewer was found after these moves (partition, broker row) off broker 1, and the rows of its partitions."""
    rows = [partition([1], network_in=x) for x in held]
    rows += [partition([b], network_in=60.0) for b in (2, 3)]
    made = Trial(brokers, rows, usage(bound=0.1))
    home = made.state.replicas.copy()
    replicas = home.copy()
    for p, b in moves:
        replicas[p, 0] = b
    state = made.moved_to(replicas)
    assert (state.score[:, :-1] == 1.0).all()
    found = regroup(made.compiled.problem, state, crowd_of(made.compiled.problem), home, np.array([p for p, _ in moves], np.int64))
    assert (state.score[:, :-1] == 1.0).all()
    return int(found), state.replicas[: len(held), 0].tolist()


# Between 69 and 84.3 are in band: broker 1 has to lose 26 to 41, and the others to get 9 to 24 each.


def test_two_leave_instead_of_three_and_both_targets_stay_in_band() -> None:
    found, after = placed([40.0, 10.0, 10.0, 10.0, 20.0, 20.0], (1, 1), (2, 2), (3, 2))
    assert found == 1
    assert sorted(after) == [0, 0, 0, 0, 1, 2]


def test_three_stay_where_two_would_leave_a_target_out_of_band() -> None:
    found, after = placed([40.0, 10.0, 10.0, 10.0, 30.0, 10.0], (1, 1), (2, 2), (3, 2))
    assert (found, after) == (0, [0, 1, 2, 2, 0, 0])


def test_replicas_that_take_room_from_one_another_are_told_apart() -> None:
    held = [40.0, 10.0, 5.0, 5.0, 5.0, 5.0, 20.0, 20.0]
    found, after = placed(held, (1, 1), (2, 1), (3, 2), (4, 2), (5, 2))
    assert found > 0
    assert sum(b > 0 for b in after) == 2


LIMIT: Document = {"kind": "capacity", "resource": "network_in", "limit": 1.0}


def limited(held: Mapping[int, Sequence[float]], *moves: tuple[int, int, int]) -> dict[int, list[float]]:
    """Where is what `held` says of brokers, limited to 100, once these moves (broker, which of its own, to) are regrouped."""
    owners = [b for b, amounts in held.items() for _ in amounts]
    made = Trial(
        [{"id": b, "capacity": {"network_in": 100.0}} for b in held],
        [partition([b], network_in=x) for b, amounts in held.items() for x in amounts],
        LIMIT,
    )
    home = made.state.replicas.copy()
    replicas = home.copy()
    for source, which, target in moves:
        replicas[owners.index(source) + which, 0] = made.ids.index(target)
    state = made.moved_to(replicas)
    assert (state.score[:, :-1] == 1.0).all()
    regroup(made.compiled.problem, state, crowd_of(made.compiled.problem), home, np.flatnonzero((replicas != home).any(axis=1)))
    assert (state.score[:, :-1] == 1.0).all()
    amounts = [x for own in held.values() for x in own]
    return {b: sorted(amounts[p] for p in np.flatnonzero(state.replicas[:, 0] == made.ids.index(b))) for b in held}


def test_what_came_to_a_broker_goes_on_where_that_makes_room_for_one_large_replica_instead_of_three() -> None:
    held = {1: [50.0, 14.0, 14.0, 14.0, 20.0, 28.0], 2: [45.0], 3: [60.0], 4: [90.0, 30.0]}
    after = limited(held, (1, 1, 2), (1, 2, 3), (1, 3, 3), (4, 1, 2))
    assert after == {1: [14.0, 14.0, 14.0, 20.0, 28.0], 2: [45.0, 50.0], 3: [30.0, 60.0], 4: [90.0]}


def test_one_of_a_broker_that_gave_nothing_leaves_for_a_large_replica_where_that_is_a_move_less() -> None:
    held = {1: [50.0, 14.0, 14.0, 14.0, 20.0, 28.0], 2: [32.0, 30.0], 3: [60.0], 4: [90.0]}
    after = limited(held, (1, 1, 2), (1, 2, 3), (1, 3, 3))
    assert after == {1: [14.0, 14.0, 14.0, 20.0, 28.0], 2: [32.0, 50.0], 3: [30.0, 60.0], 4: [90.0]}


def test_what_came_to_a_broker_that_has_to_give_goes_on() -> None:
    held = {1: [40.0, 36.0, 35.0, 9.0], 2: [41.0], 3: [42.0], 4: [85.0, 20.0]}
    after = limited(held, (1, 2, 2), (1, 3, 3), (4, 1, 1))
    assert sum(len(own) for own in held.values()) - sum(x in held[b] for b, own in after.items() for x in own) == 2
    assert 20.0 not in after[1]


def test_replicas_that_go_on_come_back_where_the_large_one_finds_no_room_all_the_same() -> None:
    held = {1: [50.0, 14.0, 14.0, 14.0, 20.0, 28.0], 2: [65.0], 3: [60.0], 4: [90.0, 20.0]}
    after = limited(held, (1, 1, 2), (1, 2, 3), (1, 3, 3), (4, 1, 2))
    assert (len(after[1]), len(after[4])) == (3, 1)


def test_where_topics_alone_want_replicas_to_leave_none_goes_home() -> None:
    rows = [partition([1], topic="a") for _ in range(8)] + [partition([2])]
    made = Trial((1, 2), rows, {"kind": "topic_distribution", "resource": "replicas", "name": "topics", "bound": 0.1})
    home = made.state.replicas.copy()
    replicas = home.copy()
    replicas[:4, 0] = 1
    state = made.moved_to(replicas)
    assert regroup(made.compiled.problem, state, crowd_of(made.compiled.problem), home, np.arange(4)) == 0
    assert (state.replicas == replicas).all()
