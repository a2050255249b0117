"""What a broker gave comes home where what it took can go on in its place: one move less, and nobody is out of band for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from optimizer.search.chains import shorten_chains
from tests.unit.optimizer.actions import Document, Trial, partition, usage

RACKS: Document = {"kind": "rack_aware", "name": "racks"}


def shortened(
    held: Mapping[int, Sequence[float]], moves: Sequence[tuple[int, int, int]]
) -> tuple[int, dict[int, list[float]]]:
    """How often a chain was shortened after these moves (broker, which of its own, to), and what brokers hold then."""
    owners = [b for b, amounts in held.items() for _ in amounts]
    amounts = [x for own in held.values() for x in own]
    rows = [partition([b], network_in=x) for b, x in zip(owners, amounts, strict=True)]
    made = Trial((1, 2, 3), rows, usage(bound=0.1))
    home = made.state.replicas.copy()
    replicas = home.copy()
    for source, which, target in moves:
        replicas[owners.index(source) + which, 0] = made.ids.index(target)
    state = made.moved_to(replicas)
    before = state.score.copy()
    done = shorten_chains(made.compiled.problem, state, home, np.flatnonzero((replicas != home).any(axis=1)))
    assert (state.score[:, :-1] >= before[:, :-1]).all()
    return int(done), {b: sorted(x for p, x in enumerate(amounts) if state.replicas[p, 0] == made.ids.index(b)) for b in held}


def test_what_was_given_comes_home_and_what_was_taken_goes_on() -> None:
    held = {1: [76.0, 30.0], 2: [50.0, 29.0], 3: [55.0]}
    done, after = shortened(held, [(1, 1, 2), (2, 1, 3)])
    assert (done, after) == (1, {1: [76.0], 2: [29.0, 50.0], 3: [30.0, 55.0]})


def test_a_chain_stays_where_another_broker_would_leave_its_band() -> None:
    held = {1: [70.0, 50.0], 2: [60.0, 20.0], 3: [72.0]}
    done, after = shortened(held, [(1, 1, 2), (2, 1, 3)])
    assert (done, after) == (0, {1: [70.0], 2: [50.0, 60.0], 3: [20.0, 72.0]})


def test_what_came_does_not_go_on_to_a_rack_that_has_its_partition() -> None:
    rows = [
        partition([1, 4], network_in=30.0), partition([2, 4], network_in=30.0), partition([1], network_in=60.0),
        partition([2], network_in=70.0), partition([3], network_in=69.0),
    ]  # fmt: skip
    brokers = [{"id": b, "rack": rack} for b, rack in ((1, "a"), (2, "b"), (3, "c"), (4, "c"))]
    made = Trial(brokers, rows, RACKS, usage(bound=0.5))
    home = made.state.replicas.copy()
    replicas = home.copy()
    replicas[0, 0], replicas[1, 0] = 1, 2
    replicas[1, 1] = 0  # whose second replica left its rack for the third broker
    state = made.moved_to(replicas)
    shorten_chains(made.compiled.problem, state, home, np.array([0, 1]))
    racks = np.array([0, 1, 2, 2])
    assert all(len(set(racks[row[row >= 0]])) == len(row[row >= 0]) for row in state.replicas)
