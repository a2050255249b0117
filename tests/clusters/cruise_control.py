"""The random clusters that Cruise Control's own optimizer tests use, drawn from the same streams of `java.util.Random`.

Facts from reference: seeds and distributions of its `RandomCluster` and `TestConstants` (BSD 2-Clause, LinkedIn); the code is ours.
Equal parameters give the brokers, racks, topics, placement and loads that its generator gives, with one difference: it draws a load
for every follower, and a partition here has one follower vector, the average of its followers' draws. Its MB, KB/s and percent of a
cpu are bytes, bytes/s and cores here.

Two capacities stand for what its goals measure and ours take from the snapshot: `potential_network_out` has that of `network_out`,
and `leader_network_in` has the mean of it over the brokers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import Snapshot

Distribution = Literal["uniform", "linear", "exponential"]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

GOALS_FILE = Path(__file__).with_name("cruise_control_goals.yaml")  # what its 16 default goals are in ours
MULTIPLIER, ADDEND, MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1
RACK_SEED, RF_SEED, PARTITIONS_SEED = 3140, 5234, 72033
PLACEMENT_SEED, POPULARITY_SEED = 1240, 7234
LOAD_SEEDS = {"cpu": 100_000, "disk": 300_000, "network_in": 500_000, "network_out": 700_000}
UNITS = {"cpu": 0.01, "disk": 1e6, "network_in": 1e3, "network_out": 1e3}  # its percent, MB, KB/s in ours
MEANS = {"cpu": 0.01, "disk": 100.0, "network_in": 100.0, "network_out": 100.0}  # its units, as the capacities
CAPACITY = {"cpu": 100.0, "disk": 300_000.0, "network_in": 300_000.0, "network_out": 200_000.0}
SMALL_BROKER, SMALL_CAPACITY = 1, 150_000.0  # of disk and network; its cpu is as the others'
LAST_TOPIC, LAST_FACTOR = "one-leader-per-broker", 2  # after the random topics: as many partitions as brokers

# Brokers, racks, topics, replicas of the measured cases (reference/cruise_control.md, section 2.6).
SIZES: dict[str, tuple[int, int, int, int]] = {
    "50k": (40, 10, 3_000, 50_001),
    "125k": (100, 10, 5_000, 125_001),
    "250k": (200, 20, 10_000, 249_999),
    "500k": (400, 20, 20_000, 500_001),
    "1M": (800, 20, 40_000, 999_999),
}


def next_int(seed: int, bound: int) -> int:
    """The first ``nextInt(bound)`` of ``new Random(seed)``."""
    return int(first_ints(np.array([seed], dtype=np.int64), bound)[0])


def first_ints(seeds: IntArray, bound: int) -> IntArray:
    """The first ``nextInt(bound)`` of a fresh `Random` for each seed, int64."""
    state = (seeds.astype(np.uint64) ^ np.uint64(MULTIPLIER)) & np.uint64(MASK)
    result = np.full(len(seeds), -1, dtype=np.int64)
    open_rows = np.arange(len(seeds))
    while len(open_rows):
        state[open_rows] = (state[open_rows] * np.uint64(MULTIPLIER) + np.uint64(ADDEND)) & np.uint64(MASK)
        bits = (state[open_rows] >> np.uint64(17)).astype(np.int64)
        if bound & (bound - 1) == 0:
            result[open_rows] = (bound * bits) >> 31
            break
        value = bits % bound
        kept = bits - value + (bound - 1) < 2**31  # Java sees an overflow otherwise, and draws again
        result[open_rows[kept]] = value[kept]
        open_rows = open_rows[~kept]
    return result


def doubles(seed: int, count: int) -> FloatArray:
    """The first `count` values of ``nextDouble()`` of ``new Random(seed)``."""
    states = np.empty(2 * count, dtype=np.uint64)
    if not count:
        return np.empty(0)
    state = (seed ^ MULTIPLIER) & MASK
    states[0] = (state * MULTIPLIER + ADDEND) & MASK
    factor, shift, filled = MULTIPLIER, ADDEND, 1
    while filled < len(states):  # the states so far, moved on by as many steps as there are
        more = min(filled, len(states) - filled)
        states[filled : filled + more] = (states[:more] * np.uint64(factor) + np.uint64(shift)) & np.uint64(
            MASK
        )
        factor, shift = (factor * factor) & MASK, (factor * shift + shift) & MASK
        filled += more
    high = (states[0::2] >> np.uint64(22)).astype(np.int64)
    low = (states[1::2] >> np.uint64(21)).astype(np.int64)
    return ((high << 27) + low).astype(np.float64) * 2.0**-53


def cruise_control_cluster(
    brokers: int = 40,
    racks: int = 10,
    topics: int = 3_000,
    replicas: int = 50_001,
    distribution: Distribution = "exponential",
    factor: int = 3,
    rack_aware: bool = False,
) -> Snapshot:
    """The cluster that its generator gives for these parameters, no broker dead, leaders first.

    `replicas` is a multiple of `factor` (at least 2) and counts those of the random topics.
    """
    rack = np.arange(brokers) % max(racks, 1)
    if brokers > racks:
        rack[racks:] = first_ints(RACK_SEED + np.arange(racks, brokers), racks)
    counts = np.append(partition_counts(topics, replicas, factor), brokers)
    factors = np.repeat([factor, LAST_FACTOR], [int(counts[:-1].sum()), brokers])
    placed = placement(factors, brokers, distribution, rack if rack_aware else None)
    topic = np.repeat(np.arange(topics + 1), counts)
    number = np.arange(len(topic)) - np.repeat(np.cumsum(counts) - counts, counts)
    popularity = exponential(POPULARITY_SEED, topics + 1)[topic]
    leading, following = draw_loads(factors, popularity)
    names = [f"T{t}" for t in range(topics)] + [LAST_TOPIC]
    rank = np.argsort(np.argsort(names))  # snapshots have topics by name
    rows = np.lexsort((number, rank[topic]))
    return Snapshot(
        cluster_id=f"cruise-control-{distribution}-{brokers}-{replicas}",
        taken_at="2026-11-20T12:00:00Z",
        storage="local",
        broker_ids=np.arange(brokers, dtype=np.int32),
        broker_states=np.zeros(brokers, dtype=np.int8),
        racks=tuple(str(x) for x in rack),
        capacity=capacities(brokers, float(leading["network_in"].sum())),
        topics=tuple(sorted(names)),
        partition_topic=rank[topic][rows].astype(np.int32),
        partition_number=number[rows].astype(np.int32),
        replicas=placed[rows],
        leader=placed[rows, 0].copy(),
        leader_load={x: values[rows] for x, values in leading.items()},
        follower_load={x: values[rows] for x, values in following.items()},
        has_follower_load=np.ones(len(topic), dtype=np.bool_),
    )


def capacities(brokers: int, leader_network_in: float) -> dict[str, FloatArray]:
    """Of every broker; `leader_network_in` is the sum over all leaders, bytes/s."""
    given = {x: np.full(brokers, amount * UNITS[x]) for x, amount in CAPACITY.items()}
    if brokers > SMALL_BROKER:
        for x in ("disk", "network_in", "network_out"):
            given[x][SMALL_BROKER] = SMALL_CAPACITY * UNITS[x]
    given["potential_network_out"] = given["network_out"].copy()
    given["leader_network_in"] = np.full(brokers, leader_network_in / brokers)
    return given


def draw_loads(factors: IntArray, popularity: FloatArray) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Leader and follower loads, float64 [P] each: one draw a replica, leaders first, and of `network_out` one a partition."""
    leading, following = {}, {}
    first = np.cumsum(factors) - factors
    for resource, mean in MEANS.items():
        scale = mean * UNITS[resource] * popularity
        if resource == "network_out":
            leading[resource] = exponential(LOAD_SEEDS[resource], len(factors)) * scale
            following[resource] = np.zeros(len(factors))
        else:
            drawn = exponential(LOAD_SEEDS[resource], int(factors.sum()))
            leading[resource] = drawn[first] * scale
            following[resource] = (np.add.reduceat(drawn, first) - drawn[first]) / (factors - 1) * scale
    return leading, following


def exponential(seed: int, count: int) -> FloatArray:
    """Values of mean 1."""
    return -np.log(1.0 - doubles(seed, count))


def partition_counts(topics: int, replicas: int, factor: int) -> IntArray:
    """Partitions of each topic: a uniform try that is kept while the total fits, the rest filled in turn."""
    if replicas % factor:
        raise ValueError(f"expected a multiple of {factor} replicas, found {replicas}")
    room = replicas // factor
    counts = np.ones(topics, dtype=np.int64)
    tried = 2 + first_ints(PARTITIONS_SEED + np.arange(topics), replicas // topics - 1)
    total = topics
    for t in range(topics):
        if total - 1 + tried[t] <= room:
            total += int(tried[t]) - 1
            counts[t] = tried[t]
    rounds, rest = divmod(room - total, topics)
    counts += rounds
    counts[:rest] += 1
    return counts


def placement(
    factors: IntArray, brokers: int, distribution: Distribution, rack: IntArray | None
) -> npt.NDArray[np.int32]:
    """int32 [P, R]: one draw a replica, by its running number; on a broker that is taken, it draws on."""

    def drawn(seeds: IntArray) -> IntArray:
        match distribution:
            case "uniform":
                return first_ints(seeds, brokers)
            case "linear":
                value = 1 + first_ints(seeds, brokers * (brokers + 1) // 2)
                edges = np.cumsum(np.arange(1, brokers + 1))
            case "exponential":
                value = 1 + first_ints(seeds, brokers * brokers)
                edges = np.arange(1, brokers + 1) ** 2
        return np.searchsorted(edges, value)

    used = np.arange(int(factors.max())) < factors[:, None]
    placed = np.full(used.shape, -1, dtype=np.int64)
    placed[used] = drawn(PLACEMENT_SEED + np.arange(int(factors.sum())))
    label = np.arange(brokers) if rack is None else rack
    labels = np.sort(np.where(used, label[placed], -1 - np.arange(used.shape[1])), axis=1)
    running = np.cumsum(factors) - factors
    for p in np.flatnonzero((labels[:, 1:] == labels[:, :-1]).any(axis=1)):
        conflicts = 0
        taken: list[int] = []
        for slot in range(int(factors[p])):
            broker = int(placed[p, slot])
            while int(label[broker]) in taken:
                conflicts += 1
                seed = PLACEMENT_SEED + int(running[p]) + slot + conflicts
                broker = int(drawn(np.array([seed]))[0])
            placed[p, slot] = broker
            taken.append(int(label[broker]))
    return placed.astype(np.int32)
