"""An operator should not see two moves between the same brokers where one of about as many bytes does the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from optimizer.search.lump import lump_together
from tests.unit.optimizer.actions import Trial, partition, usage

# Network in and disk of what broker 1 held; the first two have moved to broker 2, which leaves all three brokers at 100.
SMALL = (20.0, 100.0)


def lumped(other: Sequence[float], mate: bool = False) -> tuple[int, list[int]]:
    """How often one replica stood in for two where `other` stayed on broker 1 (with a `mate` of it on 2), and where its replicas are."""
    held = [SMALL, SMALL, tuple(other), (60.0, 100.0)]
    rows = [partition([1, 2] if mate and i == 2 else [1], network_in=x, disk=y, follower={}) for i, (x, y) in enumerate(held)]
    rows += [partition([b], network_in=x, disk=100.0) for b, x in ((2, 60.0), (3, 100.0))]
    made = Trial([1, 2, 3], rows, usage(bound=0.05))
    home = made.state.replicas.copy()
    replicas = home.copy()
    replicas[:2, 0] = 1
    state = made.moved_to(replicas)
    found = lump_together(made.compiled.problem, state, home, np.arange(2))
    return int(found), state.replicas[: len(held), 0].tolist()


@pytest.mark.parametrize("other", [(40.0, 200.0), (38.0, 150.0), (40.0, 202.0)])
def test_one_replica_goes_in_the_place_of_two(other: tuple[float, float]) -> None:
    assert lumped(other) == (1, [0, 0, 1, 0])


def test_two_go_where_one_would_cost_more_than_both() -> None:
    assert lumped((40.0, 260.0)) == (0, [1, 1, 0, 0])


def test_two_go_where_one_would_take_a_broker_out_of_band() -> None:
    assert lumped((30.0, 200.0)) == (0, [1, 1, 0, 0])


def test_two_go_where_one_has_a_replica_there_already() -> None:
    assert lumped((40.0, 200.0), mate=True) == (0, [1, 1, 0, 0])
