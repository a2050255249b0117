"""What a target moved without need goes home, also where another has to go first."""

from __future__ import annotations

import numpy as np

from optimizer.search.reduce import send_home
from tests.unit.optimizer.actions import Trial, partition, usage


def test_a_replica_goes_home_after_a_cheaper_one_made_room_there() -> None:
    """Within 63 to 117, broker 1 has no room for the 20 as long as it holds the 25, and the 20, which costs more, is asked first."""
    loads = ((1, 20.0, 9.0), (2, 25.0, 1.0), (1, 80.0, 5.0), (2, 65.0, 5.0), (3, 80.0, 5.0))
    made = Trial([1, 2, 3], [partition([b], network_in=x, disk=size) for b, x, size in loads], usage(bound=0.3))
    problem, home = made.compiled.problem, made.state.replicas.copy()
    lists = home.copy()
    for load, broker in ((20.0, 3), (25.0, 1)):
        lists[problem.vector[:, 0, 0] == load, 0] = made.ids.index(broker)
    state = made.moved_to(lists)
    away = np.flatnonzero((lists != home).any(axis=1))
    send_home(problem, state, home, made.compiled.lead, away[np.argsort(-problem.cost[away])])
    assert np.array_equal(state.replicas, home)
