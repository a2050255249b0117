"""Clusters to start with: racks, mixed capacities, heavy-tailed topics, uneven placement, and brokers that
are new and empty.

From a seed; used by the demo, tests and benchmarks.
"""

from __future__ import annotations

import numpy as np

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.snapshot import FloatArray, IntArray
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.spec import GB, MB, BrokerSpec, TopicSpec
from trimtab.simulator.traffic import Traffic

RACKS = 3
REPLICATION_FACTOR = 3
MEAN_NETWORK_IN = 40 * MB  # of an average broker
LARGEST_SHARE = 0.05  # of an average broker's network_in that one partition brings
SUBJECTS = (
    "orders", "payments", "clicks", "sessions", "inventory", "shipments", "prices", "emails", "searches",
    "audit",
)  # fmt: skip
KINDS = ("events", "changes", "enriched", "retry", "raw", "daily")


def growing_cluster(
    seed: int, *, brokers: int = 12, partitions: int = 900, noise: float = 0.05, noise_memory_s: float = 60.0
) -> SimulatedCluster:
    """A cluster in three racks to which brokers were just added (every sixth), replication factor 3.

    The first broker of every rack has double capacity. Topic rates are heavy-tailed, placement keeps racks
    apart and is uneven within them. Logs are full, so sizes stay about as they are.

    Raises
    ------
    ConfigurationError
        Fewer than 4 brokers, or fewer partitions than brokers.
    """
    if problems := size_problems(brokers, partitions):
        raise ConfigurationError("demo", problems)
    random = np.random.default_rng(seed)
    old = brokers - max(1, brokers // 6)
    racks = [chr(ord("a") + i % RACKS) for i in range(brokers)]
    traffic = Traffic(seed, noise=noise, memory_s=noise_memory_s)
    cluster = SimulatedCluster([], cluster_id=f"demo-{seed}", traffic=traffic)
    for i in range(brokers):
        cluster.add_broker(_broker(i + 1, racks[i], double=i < RACKS))
    topics = _topics(random, partitions, brokers)
    favour = random.lognormal(0.0, 0.25, old)
    for name, produce, consumers, retention in topics:
        assignment = tuple(_replicas(random, racks[:old], favour) for _ in produce)
        cluster.create_topic(TopicSpec(name, assignment, produce, consumers, retention, filled=1.0))
    return cluster


def size_problems(brokers: int, partitions: int) -> list[Problem]:
    """What keeps a cluster from having this size."""
    problems = []
    if brokers < RACKS + 1:
        problems.append(Problem("--brokers", f"expected at least {RACKS + 1}, found {brokers}"))
    if partitions < brokers:
        problems.append(Problem("--partitions", f"expected at least one a broker ({brokers}), found {partitions}"))
    return problems


def _broker(id: int, rack: str, *, double: bool) -> BrokerSpec:
    scale = 2.0 if double else 1.0
    return BrokerSpec(
        id, rack, network_in=125 * MB * scale, network_out=250 * MB * scale, disk=500 * GB * scale,
        disk_write=400 * MB * scale, cores=8.0 * scale,
        counts={"replicas": 2000 * scale, "leaders": 1000 * scale},
    )  # fmt: skip


def _topics(random: np.random.Generator, partitions: int, brokers: int) -> list[tuple[str, FloatArray, float, FloatArray]]:
    """Name, bytes/s per partition, consumers and bytes kept per partition of every topic."""
    names = [f"{subject}.{kind}" for kind in KINDS for subject in SUBJECTS]
    count = max(2, min(len(names), partitions // 15))
    total = MEAN_NETWORK_IN * brokers / REPLICATION_FACTOR
    parts = _divided(random, partitions, count)
    rate = np.repeat(random.lognormal(0.0, 1.1, count) / np.sqrt(parts), parts)
    rate = _capped(rate * random.lognormal(0.0, 0.35, partitions), total, max(LARGEST_SHARE, 2 * brokers / partitions))
    consumers = random.choice([0.0, 1.0, 1.0, 2.0, 3.0], count)
    seconds = random.choice([900.0, 1800.0, 3600.0], count)
    bounds = np.cumsum(parts)[:-1]
    rates = np.split(rate, bounds)
    return [(names[i], rates[i], float(consumers[i]), rates[i] * seconds[i]) for i in range(count)]


def _divided(random: np.random.Generator, total: int, count: int) -> IntArray:
    """int32 [count] positive numbers that add up to `total`, some much larger than others."""
    weights = random.lognormal(0.0, 0.8, count)
    parts = 1 + np.floor((total - count) * weights / weights.sum()).astype(np.int32)
    parts[: total - int(parts.sum())] += 1
    return np.asarray(parts, dtype=np.int32)


def _capped(rate: FloatArray, total: float, share: float) -> FloatArray:
    """The rates scaled to `total`, none above `share` of an average broker's network_in."""
    largest = min(share, 1.0) * MEAN_NETWORK_IN
    for _ in range(20):
        rate = np.minimum(rate * (total / rate.sum()), largest)
    return rate


def _replicas(random: np.random.Generator, racks: list[str], favour: FloatArray) -> tuple[int, ...]:
    """One broker of every rack, in random order, favoured ones more often."""
    chosen = []
    for rack in random.permutation(sorted(set(racks))).tolist():
        rows = [i for i, r in enumerate(racks) if r == rack]
        weights = favour[rows] / favour[rows].sum()
        chosen.append(int(random.choice(rows, p=weights)) + 1)
    return tuple(chosen)
