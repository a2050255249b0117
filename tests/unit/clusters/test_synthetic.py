"""Benchmark clusters are what their names say; otherwise a row of the table measures something else."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_model.snapshot import BrokerState, Snapshot
from tests.clusters.synthetic import DRAINING, FIXED_GLOB, FIXED_TOPICS, SCENARIOS, VARIANTS, Scenario, cluster

BROKERS, REPLICAS = 40, 8_000


def made(scenario: Scenario, variant: str = "even", seed: int = 0) -> Snapshot:
    return cluster(BROKERS, REPLICAS, scenario, seed, variant)


def levels(snapshot: Snapshot, resource: str) -> np.ndarray:
    """Load of every broker over its share, by capacity."""
    capacity = snapshot.capacity.get(resource, np.ones(snapshot.broker_count))
    load = snapshot.broker_load(resource)
    found: np.ndarray = load / capacity * (capacity.sum() / load.sum())
    return found


def test_equal_arguments_give_equal_clusters_and_another_seed_another() -> None:
    assert made("b", "everything").digest == made("b", "everything").digest
    assert made("b", "everything").digest != made("b", "everything", seed=1).digest


def shares_a_rack(snapshot: Snapshot) -> bool:
    """Whether one of the first partitions has two replicas in a rack."""
    lists = [[snapshot.racks[b] for b in hosts if b >= 0] for hosts in snapshot.replicas[:300]]
    return any(len(racks) > len(set(racks)) for racks in lists)


@pytest.mark.parametrize("variant", [name for name, variant in VARIANTS.items() if not variant.crowded])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_partition_has_two_replicas_in_a_rack(scenario: Scenario, variant: str) -> None:
    assert not shares_a_rack(made(scenario, variant))


def test_small_racks_are_of_a_cluster_not_placed_by_racks() -> None:
    assert shares_a_rack(made("b", "racks-small"))


@pytest.mark.parametrize("variant", [name for name, variant in VARIANTS.items() if variant.largest < 1.0])
def test_new_brokers_are_empty_and_the_others_level(variant: str) -> None:
    snapshot = made("a", variant)
    new = snapshot.broker_load("replicas") == 0
    assert np.flatnonzero(new).tolist() == list(range(BROKERS - BROKERS // 10, BROKERS))
    for resource in ("network_in", "network_out", "disk", "cpu", "replicas", "leaders"):
        old = levels(snapshot, resource)[~new]
        assert np.abs(old / old.mean() - 1).max() < 0.05, resource


def test_giants_exceed_every_band() -> None:
    snapshot = made("b", "giants")
    mean = snapshot.broker_load("network_in").mean()
    assert snapshot.leader_load["network_in"].max() > 1.2 * mean


def test_a_skewed_cluster_is_outside_its_target_ranges() -> None:
    assert levels(made("b"), "network_in").std() > 0.3
    assert levels(made("b", "capacities"), "network_in").std() > 0.3


@pytest.mark.parametrize(("variant", "factors"), [("even", {3}), ("rf1", {1}), ("rf2", {2}), ("rf-mixed", {1, 2, 3})])
def test_replication_factors(variant: str, factors: set[int]) -> None:
    snapshot = made("b", variant)
    assert set(snapshot.replication_factor.tolist()) == factors
    assert abs(snapshot.replica_count / REPLICAS - 1) < 0.15


def test_capacities_of_counts_and_resources_are_in_proportion() -> None:
    capacity = made("b", "capacities").capacity
    weight = capacity["disk"] / capacity["disk"].min()
    assert set(weight.tolist()) == {1.0, 2.0, 4.0}
    for resource in ("network_in", "network_out", "cpu", "replicas", "leaders"):
        assert np.allclose(capacity[resource] / capacity[resource].min(), weight), resource
    assert "replicas" not in made("b").capacity


def test_racks_are_unequal_but_force_nothing() -> None:
    sizes = np.unique(np.array(made("b", "racks").racks), return_counts=True)[1]
    assert sorted(sizes.tolist()) == [4, 6, 8, 10, 12]
    assert sizes.max() * 3 < BROKERS


def test_a_fifth_of_the_topics_is_excluded_by_name() -> None:
    names = made("b", "excluded").topics
    fixed = [name for name in names if name.startswith(FIXED_GLOB.rstrip("*"))]
    assert len(fixed) == round(FIXED_TOPICS * len(names))
    assert list(names) == sorted(names)
    assert not any(name.startswith(FIXED_GLOB.rstrip("*")) for name in made("b").topics)


def test_some_brokers_drain_beside_those_of_the_scenario() -> None:
    draining = [int((made(s, "draining").broker_states == BrokerState.DRAINING).sum()) for s in ("b", "c5")]
    assert draining[0] == round(DRAINING * BROKERS)
    assert draining[1] > draining[0]


def test_topics_are_spread_before_brokers_are_added() -> None:
    """Else scenario a would ask the planner to move nearly everything."""
    snapshot = cluster(20, 4_000, "d", variant="topics")
    hosts, topic = snapshot.replicas.ravel(), np.repeat(snapshot.partition_topic, 3)
    held = np.zeros((len(snapshot.topics), 20))
    np.add.at(held, (topic, hosts), 1)
    mean = held.sum(axis=1, keepdims=True) / 20
    outside = (held > np.ceil(1.1 * mean)) | (held < np.floor(0.9 * mean))
    assert outside.any(axis=0).mean() < 0.2


def test_shared_storage_has_one_replica() -> None:
    snapshot = made("a", "shared")
    assert snapshot.storage == "shared"
    assert snapshot.replicas.shape[1] == 1
