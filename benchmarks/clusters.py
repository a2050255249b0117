"""Synthetic clusters of any size, straight as `Snapshot`, from a seed: the model of the planner benchmark.

Topics have Zipf partition counts, lognormal rates (sigma 1.5), a partition skew of 0.3, 0 to 5 consumers and
a lognormal retention; RF 3; no leader carries more than half of the mean broker load in bytes in or out.
Broker capacities are equal, such that the limit of 0.8 of preset `default` stands at 1.5 times the mean.
Scenarios:

- ``a``: a tenth of the brokers is new and empty; the others are balanced;
- ``b``: skewed random placement, brokers weighted lognormally (0.5);
- ``c``, ``c5``: one broker, or 5 % of them, draining; all are balanced before;
- ``d``: a tenth of the topics is 4 to 15 times hotter (bytes and cpu, not disk), the rest 0.9, after
  balancing.

Balanced means dealt out: partitions by falling size, each replica to the best of some sampled legal brokers
by sum of squares over the six resources. It owes nothing to the planner that it is there to measure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from cluster_model.compiled import kernel
from cluster_model.snapshot import BrokerState, Snapshot

Scenario = Literal["a", "b", "c", "c5", "d"]
SCENARIOS: tuple[Scenario, ...] = ("a", "b", "c", "c5", "d")
SIZES: dict[str, tuple[int, int]] = {
    "10x1k": (10, 1_000),
    "100x50k": (100, 50_000),
    "1000x1M": (1_000, 1_000_000),
    "2000x3M": (2_000, 3_000_000),
}

RF = 3
RACKS = 5
RATES = ("network_in", "network_out", "cpu")
CPU_IN, CPU_OUT, CPU_REPLICATE = (
    1.0e-8,
    4.0e-9,
    6.0e-9,
)  # cores for a byte per second led in, out, and followed
MEAN_RATE = 2.0e5  # bytes/s in of a typical partition
RETENTION = 4.0e4  # seconds, typical
CLIP = 0.5  # of the mean broker load, one leader
HEADROOM = 1.5 / 0.8  # capacity over mean
SAMPLED = 24  # brokers looked at for one replica

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Loads:
    """Partitions of a cluster before they are placed: topic rows and vectors, all [P]."""

    topic: IntArray
    number: IntArray
    leading: dict[str, FloatArray]
    following: dict[str, FloatArray]


def cluster(brokers: int, replicas: int, scenario: Scenario, seed: int = 0, racks: int = RACKS) -> Snapshot:
    """A cluster of so many brokers and about so many replicas in the state of a scenario.

    Racks are of equal size where `racks` divides `brokers`. Equal arguments give equal snapshots.
    """
    r = np.random.default_rng([seed, brokers, replicas])
    loads = draw_loads(r, max(1, replicas // RF), brokers)
    rack = np.arange(brokers, dtype=np.int32) % racks
    open_to_all = np.ones(brokers, dtype=np.bool_)
    states = np.zeros(brokers, dtype=np.int8)
    match scenario:
        case "a":
            new = np.arange(brokers - max(1, brokers // 10), brokers)
            open_to_all[new] = False
        case "c" | "c5":
            gone = r.choice(brokers, 1 if scenario == "c" else max(1, brokers // 20), replace=False)
            states[gone] = BrokerState.DRAINING
        case _:
            pass
    if scenario == "b":
        placed = skewed(r, len(loads.topic), rack)
    else:
        placed = balanced(loads, rack, open_to_all, int(r.integers(1, 2**31)))
    if scenario == "d":
        loads = heated(r, loads, brokers)
    return snapshot_of(f"{scenario}-{brokers}-{replicas}-{seed}", loads, placed, rack, states)


def draw_loads(r: np.random.Generator, partitions: int, brokers: int) -> Loads:
    """Random topics and partitions; bytes/s, cores, bytes."""
    topics = max(3, partitions // 10)
    shares = 1.0 / np.arange(1, topics + 1)
    counts = np.maximum(1, (shares / shares.sum() * partitions).astype(np.int64))
    counts[0] += partitions - counts.sum()
    if counts[0] < 1:
        raise ValueError(f"{partitions} partitions are too few for {topics} topics")
    order = r.permutation(topics)
    topic = np.repeat(order, counts).astype(np.int32)
    number = (np.arange(partitions) - np.repeat(np.cumsum(counts) - counts, counts)).astype(np.int32)
    rows = np.lexsort((number, topic))
    topic, number = topic[rows], number[rows]
    rate = MEAN_RATE * r.lognormal(0.0, 1.5, topics)[topic] * r.lognormal(0.0, 0.3, partitions)
    consumers = r.integers(0, 6, topics)[topic]
    retention = RETENTION * r.lognormal(0.0, 0.5, topics)[topic]
    rate = clipped(rate, consumers + RF - 1, brokers)
    bytes_out = rate * (consumers + RF - 1)
    leading = {
        "network_in": rate, "network_out": bytes_out, "disk": rate * retention,
        "cpu": CPU_IN * rate + CPU_OUT * bytes_out,
    }  # fmt: skip
    return Loads(topic, number, leading, followers(leading))


def clipped(rate: FloatArray, fan: npt.NDArray[np.int64], brokers: int) -> FloatArray:
    """Rates at which no leader carries more than `CLIP` of the mean broker load in bytes in or out."""
    for _ in range(50):  # the mean falls with what is cut off
        most_in = CLIP * rate.sum() * RF / brokers
        most_out = CLIP * (rate * fan).sum() / brokers
        cut = np.minimum(rate, np.minimum(most_in, most_out / np.maximum(fan, 1)))
        if np.allclose(cut, rate, rtol=1e-9):
            break
        rate = cut
    return rate


def followers(leading: dict[str, FloatArray]) -> dict[str, FloatArray]:
    none = np.zeros(len(leading["disk"]))
    return {
        "network_in": leading["network_in"], "network_out": none, "disk": leading["disk"],
        "cpu": CPU_REPLICATE * leading["network_in"],
    }  # fmt: skip


def heated(r: np.random.Generator, loads: Loads, brokers: int) -> Loads:
    """Rates with a tenth of the topics 4 to 15 times hotter and the rest at 0.9; disk stays."""
    topics = int(loads.topic.max()) + 1
    factor = np.full(topics, 0.9)
    hot = r.choice(topics, max(1, topics // 10), replace=False)
    factor[hot] = r.uniform(4.0, 15.0, len(hot))
    given = loads.leading["network_in"]
    fan = np.rint(loads.leading["network_out"] / np.maximum(given, 1e-9)).astype(np.int64)
    rate = clipped(given * factor[loads.topic], fan, brokers)
    bytes_out = rate * fan
    leading = {
        "network_in": rate, "network_out": bytes_out, "disk": loads.leading["disk"],
        "cpu": CPU_IN * rate + CPU_OUT * bytes_out,
    }  # fmt: skip
    return Loads(loads.topic, loads.number, leading, followers(leading))


def skewed(r: np.random.Generator, partitions: int, rack: IntArray) -> IntArray:
    """int32 [P, RF]: random brokers in different racks, some brokers more attractive than others."""
    weight = r.lognormal(0.0, 0.5, len(rack))
    placed = np.full((partitions, RF), -1, dtype=np.int32)
    cumulated = np.cumsum(weight / weight.sum())
    for slot in range(RF):
        open_rows = np.arange(partitions)
        while len(open_rows):
            drawn = np.searchsorted(cumulated, r.random(len(open_rows)) * cumulated[-1]).astype(np.int32)
            earlier = placed[open_rows, :slot]
            clash = (rack[earlier] == rack[drawn][:, None]).any(axis=1)
            placed[open_rows[~clash], slot] = drawn[~clash]
            open_rows = open_rows[clash]
    return placed


def balanced(loads: Loads, rack: IntArray, allowed: npt.NDArray[np.bool_], seed: int) -> IntArray:
    """int32 [P, RF]: an even placement on the allowed brokers, leaders first."""
    brokers = np.flatnonzero(allowed).astype(np.int32)
    count = len(loads.topic)
    ones, zeros = np.ones(count), np.zeros(count)
    names = ("network_in", "network_out", "disk", "cpu")
    leading = np.stack([*(loads.leading[x] for x in names), ones, ones], axis=1)
    following = np.stack([*(loads.following[x] for x in names), ones, zeros], axis=1)
    means = (leading + (RF - 1) * following).sum(axis=0) / len(brokers)
    leading, following = leading / means, following / means
    order = np.argsort(-(leading + (RF - 1) * following).max(axis=1), kind="stable")
    placed = np.full((count, RF), -1, dtype=np.int32)
    deal(order, leading, following, brokers, rack, np.zeros((len(rack), 6)), placed, np.uint64(seed))
    return placed


@kernel
def deal(
    order: npt.NDArray[np.int64],
    leading: FloatArray,
    following: FloatArray,
    brokers: IntArray,
    rack: IntArray,
    load: FloatArray,
    placed: IntArray,
    seed: np.uint64,
) -> None:
    """Fill `placed`, partition by partition: each replica to the sampled broker where squares grow least."""
    state = np.uint64(seed) | np.uint64(1)
    for p in order:
        for slot in range(placed.shape[1]):
            best, least = -1, 1e300
            tries = 0
            while tries < SAMPLED or best < 0:
                tries += 1
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                b = brokers[int(state >> np.uint64(33)) % len(brokers)]
                clash = False
                for earlier in range(slot):
                    clash |= rack[placed[p, earlier]] == rack[b]
                if clash:
                    continue
                cost = 0.0
                for c in range(load.shape[1]):
                    more = leading[p, c] if slot == 0 else following[p, c]
                    cost += more * (2.0 * load[b, c] + more)
                if cost < least:
                    best, least = b, cost
            placed[p, slot] = best
            for c in range(load.shape[1]):
                load[best, c] += leading[p, c] if slot == 0 else following[p, c]


def snapshot_of(name: str, loads: Loads, placed: IntArray, rack: IntArray,
                states: npt.NDArray[np.int8]) -> Snapshot:  # fmt: skip
    """The snapshot of placed partitions; the first replica leads."""
    brokers = len(rack)
    topics = int(loads.topic.max()) + 1
    width = len(str(topics))
    capacity = {}
    for resource, leading in loads.leading.items():
        total = float((leading + (RF - 1) * loads.following[resource]).sum())
        capacity[resource] = np.full(brokers, HEADROOM * total / brokers)
    return Snapshot(
        cluster_id=f"benchmark-{name}",
        taken_at="2026-11-20T12:00:00Z",
        storage="local",
        broker_ids=np.arange(1, brokers + 1, dtype=np.int32),
        broker_states=states,
        racks=tuple(f"rack-{x}" for x in rack),
        capacity=capacity,
        topics=tuple(f"topic-{t:0{width}d}" for t in range(topics)),
        partition_topic=loads.topic,
        partition_number=loads.number,
        replicas=placed,
        leader=placed[:, 0].copy(),
        leader_load={x: values.copy() for x, values in loads.leading.items()},
        follower_load={x: values.copy() for x, values in loads.following.items()},
        has_follower_load=np.ones(len(loads.topic), dtype=np.bool_),
    )
