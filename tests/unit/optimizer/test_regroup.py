"""With shared storage an operator should not pay for three moves where two larger ones bring the same balance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optimizer.search.commit import build_state
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
    state = build_state(made.compiled.problem, replicas, made.state.lead)
    assert (state.score[:, :-1] == 1.0).all()
    found = regroup(made.compiled.problem, state, home, np.array([p for p, _ in moves], np.int64))
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
    assert found == 3
    assert sum(b > 0 for b in after) == 2
