"""A rack that is out of reach still counts: replicas that were on three racks stay on three racks.

Found on a cluster whose third rack was restarting: 16 of 120 partitions fell from three racks to two in a plan of 31 moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from optimizer.options import AddedBroker
from tests.unit.optimizer.actions import Trial, partition, usage
from tests.unit.optimizer.scenarios import IN, RACK, REPLICAS, cluster, placed, planned

Document = dict[str, Any]


def racked(seed: int, racks: Sequence[str], factor: int, state: str, each: int = 4, partitions: int = 40) -> Document:
    """Brokers of all racks in turn, those of the last rack in `state`; every partition on as many racks as there can be, skewed."""
    r = Random(seed)
    ids = range(1, each * len(racks) + 1)
    rack = {b: racks[b % len(racks)] for b in ids}
    lists: list[tuple[list[int], Mapping[str, float]]] = []
    for _ in range(partitions):
        on: list[int] = []
        for k in range(factor):
            there = [b for b in ids if rack[b] == racks[(k + len(lists)) % len(racks)] and b not in on]
            on.append(r.choice(there[:2] if r.random() < 0.7 else there))
        lists.append((on, {"network_in": r.lognormvariate(0.0, 0.7), "disk": 1.0}))
    brokers = [{"id": b, "rack": rack[b], "state": state if rack[b] == racks[-1] else "active"} for b in ids]
    return cluster(brokers, lists)


def racks_of(snapshot: Document, replicas: Sequence[int]) -> set[str]:
    rack = {b["id"]: b["rack"] for b in snapshot["brokers"]}
    return {rack[b] for b in replicas}


@pytest.mark.parametrize("factor", [2, 3, 4])
@pytest.mark.parametrize("racks", ["abc", "abcd", "ab"])
@pytest.mark.parametrize("seed", range(3))
def test_no_partition_falls_to_fewer_racks_while_a_rack_is_out_of_reach(racks: str, factor: int, seed: int) -> None:
    snapshot = racked(seed, racks, factor, "excluded")
    result = planned(snapshot, RACK, REPLICAS, IN)
    assert result.actions
    after = placed(snapshot, result)
    for p in snapshot["partitions"]:
        assert len(racks_of(snapshot, after[p["partition"]])) >= len(racks_of(snapshot, p["replicas"]))


@pytest.mark.parametrize("seed", range(3))
def test_excluding_a_rack_by_option_is_the_same(seed: int) -> None:
    snapshot = racked(seed, "abc", 3, "active")
    third = tuple(b["id"] for b in snapshot["brokers"] if b["rack"] == "c")
    result = planned(snapshot, RACK, REPLICAS, IN, exclude_brokers=third)
    after = placed(snapshot, result)
    assert all(len(racks_of(snapshot, after[p["partition"]])) == 3 for p in snapshot["partitions"])


@pytest.mark.parametrize("state", ["dead", "draining"])
@pytest.mark.parametrize("seed", range(3))
def test_a_rack_that_goes_is_left_and_partitions_elsewhere_keep_their_racks(state: str, seed: int) -> None:
    """Four racks, replication factor 3: what was on the rack that goes finds another one, and nothing else falls to fewer."""
    snapshot = racked(seed, "abcd", 3, state)
    result = planned(snapshot, RACK, REPLICAS, IN)
    after = placed(snapshot, result)
    assert all(len(racks_of(snapshot, on)) == 3 for on in after.values())
    assert not any("d" in racks_of(snapshot, on) for on in after.values())


@pytest.mark.parametrize("factor", [4, 5])
def test_more_replicas_than_racks_stay_on_every_rack(factor: int) -> None:
    """Two a rack are allowed with four on three racks, but not two on each of only two racks."""
    snapshot = racked(7, "abc", factor, "active")
    result = planned(snapshot, RACK, REPLICAS, IN, add_brokers=(AddedBroker(90, "a"), AddedBroker(91, "b")))
    assert result.actions
    brokers = {**snapshot, "brokers": [*snapshot["brokers"], {"id": 90, "rack": "a"}, {"id": 91, "rack": "b"}]}
    after = placed(snapshot, result)
    assert all(len(racks_of(brokers, on)) == 3 for on in after.values())


def test_an_action_that_lowers_the_number_of_racks_is_not_allowed_unless_a_broker_goes() -> None:
    brokers: list[int | Document] = [
        {"id": 1, "rack": "a"}, {"id": 2, "rack": "b"}, {"id": 3, "rack": "c"}, {"id": 4, "rack": "a"}, {"id": 5, "rack": "b"},
        {"id": 6, "rack": "b", "state": "draining"},
    ]  # fmt: skip
    trial = Trial(brokers, [partition([1, 2, 3, 4]), partition([1, 6, 3, 4])], RACK, usage("replicas"))
    assert not trial.judge((0, [1, 2, 5, 4], 1)).allowed  # rack c is left: b holds two, which the excess allows
    assert trial.judge((0, [1, 2, 3, 5], 1)).allowed
    assert trial.judge((1, [1, 5, 3, 4], 1)).allowed
