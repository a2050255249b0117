"""Where every move costs the same, an operator of shared storage should not pay for two where one does."""

from __future__ import annotations

import numpy as np

from optimizer.search.merge import largest, merge
from optimizer.search.partners import crowd_of
from optimizer.search.state import Rows, State
from tests.unit.optimizer.actions import Document, Trial, partition, usage


def trial(bound: float) -> Trial:
    """Broker 1 holds 40, 20, 10 and 10, the others 50 each: 10 % to either of them, or the 20 to one."""
    amounts = [(1, 40.0), (1, 20.0), (1, 10.0), (1, 10.0), (2, 50.0), (3, 50.0)]
    rows: list[Document] = [partition([b], network_in=x) for b, x in amounts]
    return Trial([1, 2, 3], rows, usage(bound=bound))


def merged(made: Trial, state: State, home: Rows, moved: Rows, *asked: int) -> tuple[int, int]:
    """What `merge` says when brokers at the rows `asked` are asked, all where there are none."""
    problem = made.compiled.problem
    marks = np.isin(np.arange(len(problem.broker)), asked or range(len(problem.broker))).astype(np.uint8)
    found, looks = merge(problem, state, crowd_of(problem), home, moved, largest(problem, home), marks)
    return int(found), int(looks)


def placed(made: Trial, *moves: tuple[int, int], asked: tuple[int, ...] = ()) -> tuple[int, list[int]]:
    """How often `merge` found one move for two after these (partition, broker row), and where partitions are then."""
    home = made.state.replicas.copy()
    replicas = home.copy()
    for p, b in moves:
        replicas[p, 0] = b
    state = made.moved_to(replicas)
    found, _ = merged(made, state, home, np.array([p for p, _ in moves], np.int64), *asked)
    return found, state.replicas[:, 0].tolist()


def test_one_replica_goes_instead_of_two_where_it_is_enough() -> None:
    found, after = placed(trial(0.2), (2, 1), (3, 2))
    assert found == 1
    assert after == [0, 0, 1, 0, 1, 2]  # the smallest that is enough


def test_two_moves_stay_where_one_would_leave_a_band() -> None:
    found, after = placed(trial(0.1), (2, 1), (3, 2))
    assert (found, after) == (0, [0, 0, 1, 2, 1, 2])


def test_one_larger_replica_goes_where_neither_of_two_is_enough() -> None:
    amounts = [(1, 40.0), (1, 20.0), (1, 5.0), (1, 15.0), (2, 50.0), (3, 50.0)]
    made = Trial([1, 2, 3], [partition([b], network_in=x) for b, x in amounts], usage(bound=0.17))
    found, after = placed(made, (2, 1), (3, 2))
    assert found == 1
    assert sum(after[p] != b for p, b in enumerate([0, 0, 0, 0, 1, 2])) == 1


def test_one_comes_instead_of_two() -> None:
    amounts = [(1, 10.0), (1, 10.0), (1, 50.0), (2, 20.0), (2, 50.0), (3, 40.0)]
    made = Trial([1, 2, 3], [partition([b], network_in=x) for b, x in amounts], usage(bound=0.2))
    found, after = placed(made, (0, 2), (1, 2))
    assert found == 1
    assert sum(after[p] != b for p, b in enumerate([0, 0, 0, 1, 1, 2])) == 1


def test_what_cannot_free_a_move_is_not_looked_at() -> None:
    """Two of 10 have to leave broker 1, and everything else that it has is smaller: at a million replicas looking took a minute."""
    rows = [partition([1], network_in=10.0) for _ in range(2)] + [partition([1], network_in=2.0) for _ in range(24)]
    rows += [partition([b], network_in=1.0) for b in (2, 3) for _ in range(40)]
    made = Trial([1, 2, 3], rows, usage(bound=0.1))
    home = made.state.replicas.copy()
    replicas = home.copy()
    replicas[0, 0], replicas[1, 0] = 1, 2
    state = made.moved_to(replicas)
    assert merged(made, state, home, np.array([0, 1], np.int64)) == (0, 0)


def test_only_those_are_asked_of_whom_it_may_be_new() -> None:
    """Merges that could not be put in order were found again, and refused again, turn after turn."""
    assert placed(trial(0.2), (2, 1), (3, 2), asked=(1, 2))[0] == 0
    assert placed(trial(0.2), (2, 1), (3, 2), asked=(0,))[0] == 1


def test_what_fits_no_pair_is_looked_at_once() -> None:
    """Broker 1 has to lose 20, in two of 10 or one of 20, and holds hundreds of 1: they were looked at for every partner."""
    rows = [partition([1], network_in=x) for x in (10.0, 10.0, 20.0)] + [partition([1], network_in=1.0) for _ in range(400)]
    rows += [partition([b], network_in=395.0) for b in range(2, 22)]
    made = Trial(list(range(1, 22)), rows, usage(bound=0.062))
    home = made.state.replicas.copy()
    replicas = home.copy()
    replicas[0, 0], replicas[1, 0] = 1, 2
    state = made.moved_to(replicas)
    _, looks = merged(made, state, home, np.array([0, 1], np.int64), 0)
    assert looks < 2 * len(rows)
