"""The random clusters that Cruise Control's own optimizer tests use, drawn from the same streams of
`java.util.Random`.

Facts from reference: seeds and distributions of its `RandomCluster` and `TestConstants` (BSD 2-Clause,
LinkedIn), written anew. Equal parameters give the brokers, racks, topics, placement and loads that its
generator gives, with three differences, stated here:

- its extra topic of two replicas a partition, one partition a broker, is left out (80 of 50,081 replicas);
- it draws a load for every follower; a partition here has one follower vector, the average of its followers'
  draws;
- its units are MB, KB/s and percent of a cpu; they are kept as plain numbers.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import Snapshot

Distribution = Literal["uniform", "linear", "exponential"]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MULTIPLIER, ADDEND, MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1
RACK_SEED, RF_SEED, PARTITIONS_SEED = 3140, 5234, 72033
PLACEMENT_SEED, POPULARITY_SEED = 1240, 7234
LOAD_SEEDS = {"cpu": 100_000, "disk": 300_000, "network_in": 500_000, "network_out": 700_000}
MEANS = {"cpu": 0.01, "disk": 100.0, "network_in": 100.0, "network_out": 100.0}
CAPACITY = {"cpu": 100.0, "disk": 300_000.0, "network_in": 300_000.0, "network_out": 200_000.0}
SMALL_BROKER, SMALL_CAPACITY = 1, 150_000.0  # of disk and network; its cpu is as the others'

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
    """The cluster that its generator gives for these parameters, no broker dead, leaders first."""
    rack = np.arange(brokers) % max(racks, 1)
    if brokers > racks:
        rack[racks:] = first_ints(RACK_SEED + np.arange(racks, brokers), racks)
    counts = partition_counts(topics, replicas, factor)
    placed = placement(int(counts.sum()), factor, brokers, distribution, rack if rack_aware else None)
    topic = np.repeat(np.arange(topics), counts)
    number = np.arange(len(topic)) - np.repeat(np.cumsum(counts) - counts, counts)
    popularity = exponential(POPULARITY_SEED, topics)[topic]
    leading, following = {}, {}
    for resource, mean in MEANS.items():
        if resource == "network_out":
            leading[resource] = exponential(LOAD_SEEDS[resource], len(topic)) * mean * popularity
            following[resource] = np.zeros(len(topic))
        else:
            drawn = exponential(LOAD_SEEDS[resource], len(topic) * factor).reshape(len(topic), factor)
            leading[resource] = drawn[:, 0] * mean * popularity
            others = drawn[:, 1:].mean(axis=1) if factor > 1 else np.zeros(len(topic))
            following[resource] = others * mean * popularity
    names = [f"T{t}" for t in range(topics)]
    rank = np.argsort(np.argsort(names))  # snapshots have topics by name
    rows = np.lexsort((number, rank[topic]))
    capacity = {}
    for resource, amount in CAPACITY.items():
        capacity[resource] = np.full(brokers, amount)
        if resource != "cpu" and brokers > SMALL_BROKER:
            capacity[resource][SMALL_BROKER] = SMALL_CAPACITY
    return Snapshot(
        cluster_id=f"cruise-control-{distribution}-{brokers}-{replicas}",
        taken_at="2026-11-20T12:00:00Z",
        storage="local",
        broker_ids=np.arange(brokers, dtype=np.int32),
        broker_states=np.zeros(brokers, dtype=np.int8),
        racks=tuple(str(x) for x in rack),
        capacity=capacity,
        topics=tuple(sorted(names)),
        partition_topic=rank[topic][rows].astype(np.int32),
        partition_number=number[rows].astype(np.int32),
        replicas=placed[rows],
        leader=placed[rows, 0].copy(),
        leader_load={x: values[rows] for x, values in leading.items()},
        follower_load={x: values[rows] for x, values in following.items()},
        has_follower_load=np.ones(len(topic), dtype=np.bool_),
    )


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


def placement(partitions: int, factor: int, brokers: int, distribution: Distribution,
              rack: IntArray | None) -> npt.NDArray[np.int32]:  # fmt: skip
    """int32 [P, RF]: one draw a replica, by its running number; on a broker that is taken, it draws on."""

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

    first = drawn(PLACEMENT_SEED + np.arange(partitions * factor)).reshape(partitions, factor)
    label = np.arange(brokers) if rack is None else rack
    in_order = np.sort(label[first], axis=1)
    for p in np.flatnonzero((in_order[:, 1:] == in_order[:, :-1]).any(axis=1)):
        conflicts = 0
        used: list[int] = []
        for slot in range(factor):
            broker = int(first[p, slot])
            while int(label[broker]) in used:
                conflicts += 1
                seed = PLACEMENT_SEED + int(p) * factor + slot + conflicts
                broker = int(drawn(np.array([seed]))[0])
            first[p, slot] = broker
            used.append(int(label[broker]))
    return first.astype(np.int32)
