"""Which replica leaves a crowded rack, and which partitions get a place in a rack with little room."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest

from optimizer.planner import plan
from optimizer.search.repair import mend_racks, withdraw
from tests.unit.optimizer.actions import Document, Trial, partition, usage

RACKS: Document = {"kind": "rack_aware", "hard": True, "name": "racks"}
DISK: Document = {"kind": "capacity", "resource": "disk", "limit": 0.8, "hard": True}


def crowded() -> Trial:
    """Brokers 1 and 2 share a rack and a partition. Broker 2 has replicas to give; that of 1 leads, which broker 4 lacks more of."""
    brokers: list[int | Document] = [{"id": b, "rack": rack} for b, rack in enumerate("aabc", start=1)]
    rows = [partition([1, b], follower={"network_out": 0.0}, network_out=40.0) for b in (2, 3)]
    rows += [partition([b], topic="u", network_out=1.0) for b in (2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 3, 3)]
    return Trial(brokers, rows, RACKS, usage("replicas", bound=0.5), usage("network_out", bound=0.5))


def beside_a_small_rack(sizes: list[float]) -> Trial:
    """Partitions of these sizes have both replicas in rack a. The only broker of rack b has room for 80."""
    brokers: list[int | Document] = [
        {"id": b, "rack": rack, "capacity": {"disk": size}} for b, rack, size in ((1, "a", 1e3), (2, "a", 1e3), (3, "b", 100.0))
    ]
    return Trial(brokers, [partition([1, 2], disk=size) for size in sizes], RACKS, DISK)


def test_a_replica_leaves_the_broker_that_has_to_give_some() -> None:
    trial = crowded()
    assert mend_racks(trial.compiled.problem, trial.state, 0) == 1
    assert trial.slots(0)[0] == 1  # the leader stays
    assert trial.slots(0)[1] not in (1, 2)


@pytest.mark.parametrize("sizes", [[40.0, 30.0, 20.0, 10.0, 10.0], [60.0, 50.0, *[8.0] * 9], [80.0, 1.0, 2.0], [30.0, 45.0, 20.0, 25.0]])
def test_where_a_rack_has_little_room_as_many_partitions_as_possible_get_a_replica_there(sizes: list[float]) -> None:
    """Partitions went there in the order of their names, and then all others beyond the limit: the schedule took whichever fitted."""
    trial = beside_a_small_rack(sizes)
    most = sum(used <= 80.0 for used in accumulate(sorted(sizes)))
    made = plan(trial.snapshot, trial.parsed)
    assert sum(3 in change.replicas_after for action in made.actions for change in action.changes) == most
    assert {b.id: b.after["disk"] for b in made.brokers}[3] <= 80.0
    assert mend_racks(trial.compiled.problem, trial.state, 0) == most


def test_what_was_placed_for_want_of_room_is_withdrawn_the_largest_first() -> None:
    trial = beside_a_small_rack([40.0, 30.0, 20.0, 10.0])
    there = trial.compiled.replicas.copy()
    there[:, 1] = 2
    state = trial.moved_to(there)
    withdraw(trial.compiled.problem, state, trial.state, np.arange(4))
    assert (state.replicas[:, 1] == 2).tolist() == [False, True, True, True]
