"""Small stretches of history for the tests of the backtest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from goals.document import parse_goals
from goals.model import GoalSet
from spark.backtest.stretch import Stretch

HOUR = 3600.0
START = 1_788_134_400  # a Monday


def stretch(
    network: npt.ArrayLike,
    hosts: list[list[int]],
    brokers: int = 3,
    *,
    disk: float = 1e9,
    window: float = HOUR,
) -> Stretch:
    """One partition a column of `network` (network_in of each window, NaN: not measured), each with `disk` bytes."""
    load = np.array(network, dtype=np.float32)
    windows, partitions = load.shape
    width = max(map(len, hosts))
    replicas = np.array([row + [-1] * (width - len(row)) for row in hosts], dtype=np.int32)
    return Stretch(
        cluster_id="c", start=START, window=window, topics=("t",),
        partition_topic=np.zeros(partitions, np.int32), partition_number=np.arange(partitions, dtype=np.int32),
        broker_ids=np.arange(10, 10 + brokers, dtype=np.int32), replicas=replicas,
        load={"network_in": load, "disk": np.full(load.shape, disk, np.float32)},
        first=np.zeros(partitions, np.int32), last=np.full(partitions, windows - 1, np.int32),
    )  # fmt: skip


def level(bound: float = 0.1, more: str = "") -> GoalSet:
    """One goal: network_in level within `bound`."""
    text = f"version: 1\ngoals:\n  - {{kind: usage_distribution, resource: network_in, name: net, bound: {bound}, var: {6 * bound}}}\n"
    return parse_goals(text + more, "test")


def swinging(
    days: int = 4, partitions: int = 12, brokers: int = 3, noise: float = 0.3, seed: int = 0
) -> Stretch:
    """Partitions whose load swings with the day, half of them against the others, on top of noise; all start on two brokers."""
    r = np.random.default_rng(seed)
    hour = np.arange(24 * days)[:, None]
    phase = np.where(np.arange(partitions) % 2 == 0, 0.0, np.pi)
    load = (
        100.0
        * (1.0 + 0.8 * np.sin(2 * np.pi * hour / 24 + phase))
        * r.lognormal(0, noise, (24 * days, partitions))
    )
    return stretch(load, [[p % 2] for p in range(partitions)], brokers)
