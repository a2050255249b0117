"""Random partitions with their loads: topics, rates, consumers, retention. Called by `tests.clusters.synthetic`.

Topics have Zipf partition counts, lognormal rates (sigma 1.5), a partition skew of 0.3, 0 to 5 consumers and a lognormal
retention. No leader carries more than half of the mean broker load in bytes in or out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
FactorShares = tuple[tuple[int, float], ...]  # replication factors, each with the share of topics that have it

CPU_IN, CPU_OUT, CPU_REPLICATE = 1.0e-8, 4.0e-9, 6.0e-9  # cores for a byte/s led in, sent out, followed
MEAN_RATE = 2.0e5  # bytes/s in of a typical partition
RETENTION = 4.0e4  # seconds, typical
CLIP = 0.5  # of the mean broker load, one leader
PARTITIONS_PER_TOPIC = 10


@dataclass(frozen=True)
class Loads:
    """Partitions of a cluster before they are placed, in the order of topics and numbers; arrays are [P]."""

    topic: IntArray
    number: IntArray
    factor: IntArray  # replicas of each
    fan: npt.NDArray[np.int64]  # bytes out for a byte in: consumers, and followers
    leading: dict[str, FloatArray]
    following: dict[str, FloatArray]

    @property
    def topic_count(self) -> int:
        return int(self.topic.max()) + 1

    def total(self, resource: str) -> float:
        """Load of all replicas together."""
        return float((self.leading[resource] + (self.factor - 1) * self.following[resource]).sum())


def draw_loads(
    r: np.random.Generator, partitions: int, brokers: int, factors: FactorShares, most: float = CLIP, tail: float = 0.0
) -> Loads:
    """Random topics and partitions; bytes/s, cores, bytes. No leader carries more than `most` of the mean broker load in bytes.

    `tail` is the sigma of a further lognormal factor on each partition's rate.
    """
    topics = max(3, partitions // PARTITIONS_PER_TOPIC)
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
    if tail:
        rate *= r.lognormal(0.0, tail, partitions)
    consumers = r.integers(0, 6, topics)[topic]
    retention = RETENTION * r.lognormal(0.0, 0.5, topics)[topic]
    if len(factors) == 1:
        factor = np.full(partitions, factors[0][0], dtype=np.int32)
    else:
        kinds, chances = zip(*factors, strict=True)
        factor = r.choice(np.array(kinds, dtype=np.int32), topics, p=chances)[topic]
    fan = consumers + factor - 1
    rate = clipped(rate, factor, fan, brokers, most)
    leading = rates(rate, fan) | {"disk": rate * retention}
    return Loads(topic, number, factor, fan, leading, followers(leading))


def rates(rate: FloatArray, fan: npt.NDArray[np.int64]) -> dict[str, FloatArray]:
    """What a leader costs besides disk."""
    bytes_out = rate * fan
    return {"network_in": rate, "network_out": bytes_out, "cpu": CPU_IN * rate + CPU_OUT * bytes_out}


def followers(leading: dict[str, FloatArray]) -> dict[str, FloatArray]:
    return {
        "network_in": leading["network_in"],
        "network_out": np.zeros(len(leading["disk"])),
        "disk": leading["disk"],
        "cpu": CPU_REPLICATE * leading["network_in"],
    }


def clipped(
    rate: FloatArray, factor: IntArray, fan: npt.NDArray[np.int64], brokers: int, most: float = CLIP
) -> FloatArray:
    """Rates at which no leader carries more than `most` of the mean broker load in bytes in or out."""
    for _ in range(50):  # the mean falls with what is cut off
        most_in = most * (rate * factor).sum() / brokers
        most_out = most * (rate * fan).sum() / brokers
        cut = np.minimum(rate, np.minimum(most_in, most_out / np.maximum(fan, 1)))
        if np.allclose(cut, rate, rtol=1e-9):
            break
        rate = cut
    return rate


def heated(r: np.random.Generator, loads: Loads, brokers: int) -> Loads:
    """Rates with a tenth of the topics 4 to 15 times hotter and the rest at 0.9; disk stays."""
    factor = np.full(loads.topic_count, 0.9)
    hot = r.choice(len(factor), max(1, len(factor) // 10), replace=False)
    factor[hot] = r.uniform(4.0, 15.0, len(hot))
    rate = clipped(loads.leading["network_in"] * factor[loads.topic], loads.factor, loads.fan, brokers)
    leading = rates(rate, loads.fan) | {"disk": loads.leading["disk"]}
    return replace(loads, leading=leading, following=followers(leading))
