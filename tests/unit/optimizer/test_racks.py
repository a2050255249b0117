"""Which replica leaves a crowded rack: one too many moves for each that leaves a broker that had nothing to give."""

from __future__ import annotations

from optimizer.search.repair import mend_racks
from tests.unit.optimizer.actions import Document, Trial, partition, usage


def crowded() -> Trial:
    """Brokers 1 and 2 share a rack and a partition. Broker 2 has replicas to give; that of 1 leads, which broker 4 lacks more of."""
    brokers: list[int | Document] = [{"id": b, "rack": rack} for b, rack in enumerate("aabc", start=1)]
    rows = [partition([1, b], follower={"network_out": 0.0}, network_out=40.0) for b in (2, 3)]
    rows += [partition([b], topic="u", network_out=1.0) for b in (2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 3, 3)]
    racks = {"kind": "rack_aware", "hard": True, "name": "racks"}
    return Trial(brokers, rows, racks, usage("replicas", bound=0.5), usage("network_out", bound=0.5))


def test_a_replica_leaves_the_broker_that_has_to_give_some() -> None:
    trial = crowded()
    assert mend_racks(trial.compiled.problem, trial.state, 0) == 1
    assert trial.slots(0)[0] == 1  # the leader stays
    assert trial.slots(0)[1] not in (1, 2)
