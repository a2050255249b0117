"""Synthetic clusters of any size, straight as `Snapshot`, from a seed: what the planner benchmark plans.

Scenarios:

- ``a``: a tenth of the brokers is new and empty; the others are balanced;
- ``b``: skewed random placement, brokers weighted lognormally (0.5);
- ``c``, ``c5``: one broker, or 5 % of them, draining; all are balanced before;
- ``d``: a tenth of the topics is 4 to 15 times hotter (bytes and cpu, not disk), the rest 0.9, after balancing.

Each of them on equal brokers and racks with RF 3, or in a variant that has what real clusters have (`VARIANTS`). Broker
capacities are such that the limit of 0.8 of preset `default` stands at 1.5 times the mean.

Balanced means dealt out: partitions by falling size, each replica to the best of some sampled legal brokers by sum of squares
over the six resources. It owes nothing to the planner that it is there to measure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BrokerState, Snapshot
from kernels.compiled import kernel
from tests.clusters.loads import CLIP, FactorShares, FloatArray, IntArray, Loads, draw_loads, heated

Scenario = Literal["a", "b", "c", "c5", "d"]
BoolArray = npt.NDArray[np.bool_]
SCENARIOS: tuple[Scenario, ...] = ("a", "b", "c", "c5", "d")
SIZES: dict[str, tuple[int, int]] = {
    "10x1k": (10, 1_000),
    "20x400": (20, 400),
    "60x6k": (60, 6_000),
    "100x50k": (100, 50_000),
    "300x150k": (300, 150_000),
    "1000x500k": (1_000, 500_000),
    "1000x1M": (1_000, 1_000_000),
    "2000x3M": (2_000, 3_000_000),
}

RACKS = 5
UNEQUAL = (0.10, 0.15, 0.20, 0.25, 0.30)  # of the brokers in each rack; none above 1/3, so that RF 3 forces nothing
SMALL = (2 / 15, 13 / 30, 13 / 30)  # one far below 1/3: with RF 3 it has to hold a third of everything, 2.5 times the mean a broker
CAPACITIES = (1.0, 2.0, 1.0, 4.0)  # in turn over the brokers of a rack
DRAINING = 0.05  # of the brokers
FIXED_TOPICS = 0.20
FIXED_GLOB = "fixed-*"  # matches the topics of variant `excluded`
HEADROOM = 1.5 / 0.8  # capacity over mean
SKEW = 0.5  # sigma of what makes brokers attractive in scenario b
SAMPLED = 24  # brokers looked at for one replica
CROWDED = 1e3  # cost of a replica where one of its topic is already, where topics are spread


@dataclass(frozen=True)
class Variant:
    """How a cluster differs from equal brokers with three replicas of everything."""

    text: str
    factors: FactorShares = ((3, 1.0),)
    racks: tuple[float, ...] = ()  # share of the brokers in each; left out: `RACKS` of equal size
    crowded: bool = False  # placed before there were racks
    unequal_capacities: bool = False
    excluded: bool = False
    draining: bool = False
    spread_topics: bool = False
    topic_bound: float = 0.10
    shared: bool = False
    largest: float = CLIP  # leader, in mean broker loads
    tail: float = 0.0
    limits: Literal["soft", "hard"] | None = None  # upper ones alone, instead of ranges on both sides


MIXED: FactorShares = ((1, 0.2), (2, 0.3), (3, 0.5))
VARIANTS: dict[str, Variant] = {
    "even": Variant("equal brokers and racks, RF 3"),
    "capacities": Variant("brokers of 1, 2 and 4 times the capacity, counts included", unequal_capacities=True),
    "racks": Variant("racks of 10 to 30 % of the brokers", racks=UNEQUAL),
    "racks-small": Variant(
        "three racks, one of them with 13 % of the brokers, whose disks cannot hold what the rack goal asks", racks=SMALL, crowded=True
    ),
    "rf1": Variant("RF 1", factors=((1, 1.0),)),
    "rf2": Variant("RF 2", factors=((2, 1.0),)),
    "rf-mixed": Variant("topics of RF 1, 2 and 3", factors=MIXED),
    "excluded": Variant("20 % of the topics excluded", excluded=True),
    "draining": Variant("5 % of the brokers draining", draining=True),
    "topics": Variant("replicas and leaders of every topic spread, too, within 10 %", spread_topics=True),
    "topics-wide": Variant("the same within 100 %", spread_topics=True, topic_bound=1.0),
    "shared": Variant("shared storage, RF 1", factors=((1, 1.0),), shared=True),
    "giants": Variant(
        "RF 1, leaders of up to 1.3 times the mean load of a broker", factors=((1, 1.0),), largest=1.3, tail=1.2
    ),
    "heavy": Variant("leaders of up to 1.3 times the mean load of a broker, RF 3", largest=1.3, tail=1.2),
    "limits": Variant("heavy tails, soft limits where the range would end, nothing below", tail=1.2, limits="soft"),
    "limits-hard": Variant("the same with hard limits", tail=1.2, limits="hard"),
    "everything": Variant(
        "capacities, racks, rf-mixed, excluded and draining at once",
        MIXED, racks=UNEQUAL, unequal_capacities=True, excluded=True, draining=True,
    ),
}  # fmt: skip


def cluster(brokers: int, replicas: int, scenario: Scenario, seed: int = 0, variant: str = "even") -> Snapshot:
    """A cluster of so many brokers and about so many replicas in the state of a scenario. Equal arguments, equal snapshots."""
    chosen = VARIANTS[variant]
    r = np.random.default_rng([seed, brokers, replicas])
    uneven = np.random.default_rng([seed, brokers, replicas, 1])  # what a variant adds leaves the other draws alone
    mean_factor = sum(factor * share for factor, share in chosen.factors)
    loads = draw_loads(r, max(1, int(replicas / mean_factor)), brokers, chosen.factors, chosen.largest, chosen.tail)
    rack = racks_of(uneven, brokers, chosen)
    weight = capacities_of(rack, chosen)
    open_to_all = np.ones(brokers, dtype=np.bool_)
    states = np.zeros(brokers, dtype=np.int8)
    match scenario:
        case "a":
            open_to_all[brokers - max(1, brokers // 10) :] = False
        case "c" | "c5":
            gone = r.choice(brokers, 1 if scenario == "c" else max(1, brokers // 20), replace=False)
            states[gone] = BrokerState.DRAINING
        case _:
            pass
    if chosen.draining:
        old = np.flatnonzero(open_to_all)
        states[uneven.choice(old, max(1, round(DRAINING * brokers)), replace=False)] = BrokerState.DRAINING
    apart = np.arange(brokers, dtype=np.int32) if chosen.crowded else rack
    if scenario == "b":
        placed = skewed(r, loads.factor, apart, weight)
    else:
        placed = balanced(loads, apart, weight, open_to_all, int(r.integers(1, 2**31)), chosen.spread_topics)
    if scenario == "d":
        loads = heated(r, loads, brokers)
    name = "-".join(str(x) for x in (scenario, variant, brokers, replicas, seed) if x != "even")
    return snapshot_of(name, loads, placed, rack, weight, states, chosen)


def racks_of(r: np.random.Generator, brokers: int, variant: Variant) -> IntArray:
    """int32 [B]: of equal size where their number divides the brokers, or those of the variant over all brokers at random."""
    if not variant.racks:
        return np.arange(brokers, dtype=np.int32) % RACKS
    place = (np.arange(brokers) + 0.5) / brokers
    in_blocks = np.searchsorted(np.cumsum(variant.racks)[:-1], place).astype(np.int32)
    return r.permutation(in_blocks)


def capacities_of(rack: IntArray, variant: Variant) -> FloatArray:
    """float64 [B]: capacity of each broker over the smallest; alike in all racks."""
    if not variant.unequal_capacities:
        return np.ones(len(rack))
    weight = np.empty(len(rack))
    for one in np.unique(rack):
        members = np.flatnonzero(rack == one)
        weight[members] = np.resize(CAPACITIES, len(members))
    return weight


def skewed(
    r: np.random.Generator, factor: IntArray, rack: IntArray, capacity: FloatArray, spread: float = SKEW
) -> IntArray:
    """int32 [P, R]: random brokers in different racks, some brokers more attractive than their capacity makes them."""
    weight = r.lognormal(0.0, spread, len(rack)) * capacity
    placed = np.full((len(factor), int(factor.max())), -1, dtype=np.int32)
    cumulated = np.cumsum(weight / weight.sum())
    for slot in range(placed.shape[1]):
        open_rows = np.flatnonzero(factor > slot)
        while len(open_rows):
            drawn = np.searchsorted(cumulated, r.random(len(open_rows)) * cumulated[-1]).astype(np.int32)
            earlier = placed[open_rows, :slot]
            clash = (rack[earlier] == rack[drawn][:, None]).any(axis=1)
            placed[open_rows[~clash], slot] = drawn[~clash]
            open_rows = open_rows[clash]
    return placed


def balanced(
    loads: Loads, rack: IntArray, capacity: FloatArray, allowed: BoolArray, seed: int, spread_topics: bool
) -> IntArray:
    """int32 [P, R]: an even placement on the allowed brokers, in proportion to their capacity, leaders first."""
    brokers = np.flatnonzero(allowed).astype(np.int32)
    count = len(loads.topic)
    ones, zeros = np.ones(count), np.zeros(count)
    names = ("network_in", "network_out", "disk", "cpu")
    leading = np.stack([*(loads.leading[x] for x in names), ones, ones], axis=1)
    following = np.stack([*(loads.following[x] for x in names), ones, zeros], axis=1)
    others = (loads.factor - 1)[:, None]
    means = (leading + others * following).sum(axis=0) / len(brokers)
    leading, following = leading / means, following / means
    order = np.argsort(-(leading + others * following).max(axis=1), kind="stable")
    placed = np.full((count, int(loads.factor.max())), -1, dtype=np.int32)
    weight = capacity / capacity[allowed].mean()
    held = np.zeros((2, loads.topic_count if spread_topics else 0, len(rack)), dtype=np.int16)
    deal(
        order, leading, following, loads.factor, brokers, rack, weight, loads.topic, held,
        np.zeros((len(rack), 6)), placed, np.uint64(seed),
    )  # fmt: skip
    return placed


@kernel
def deal(
    order: npt.NDArray[np.int64],
    leading: FloatArray,
    following: FloatArray,
    factor: IntArray,
    brokers: IntArray,
    rack: IntArray,
    weight: FloatArray,
    topic: IntArray,
    held: npt.NDArray[np.int16],
    load: FloatArray,
    placed: IntArray,
    seed: np.uint64,
) -> None:
    """Fill `placed`, partition by partition: each replica to the sampled broker where squares grow least.

    `held` counts leaders (0) and replicas (1) of each topic on each broker, or is empty where topics need no spreading.
    """
    state = np.uint64(seed) | np.uint64(1)
    spread = held.shape[1] > 0
    for p in order:
        t = topic[p]
        for slot in range(factor[p]):
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
                cost /= weight[b]
                if spread:
                    cost += CROWDED * held[1, t, b] / weight[b]
                    if slot == 0:
                        cost += CROWDED * held[0, t, b] / weight[b]
                if cost < least:
                    best, least = b, cost
            placed[p, slot] = best
            for c in range(load.shape[1]):
                load[best, c] += leading[p, c] if slot == 0 else following[p, c]
            if spread:
                held[1, t, best] += 1
                if slot == 0:
                    held[0, t, best] += 1


def snapshot_of(name: str, loads: Loads, placed: IntArray, rack: IntArray, weight: FloatArray,
                states: npt.NDArray[np.int8], variant: Variant) -> Snapshot:  # fmt: skip
    """The snapshot of placed partitions; the first replica leads."""
    brokers = len(rack)
    totals = {resource: loads.total(resource) for resource in loads.leading}
    if variant.unequal_capacities:
        totals |= {"replicas": float(loads.factor.sum()), "leaders": float(len(loads.topic))}
    return Snapshot(
        cluster_id=f"benchmark-{name}",
        taken_at="2026-11-20T12:00:00Z",
        storage="shared" if variant.shared else "local",
        broker_ids=np.arange(1, brokers + 1, dtype=np.int32),
        broker_states=states,
        racks=tuple(f"rack-{x}" for x in rack),
        capacity={x: HEADROOM * total * weight / weight.sum() for x, total in totals.items()},
        topics=topic_names(loads.topic_count, variant.excluded),
        partition_topic=loads.topic,
        partition_number=loads.number,
        replicas=placed,
        leader=placed[:, 0].copy(),
        leader_load={x: values.copy() for x, values in loads.leading.items()},
        follower_load={x: values.copy() for x, values in loads.following.items()},
        has_follower_load=np.ones(len(loads.topic), dtype=np.bool_),
    )


def topic_names(topics: int, some_fixed: bool) -> tuple[str, ...]:
    """Ascending; where some are excluded, they come first (rows are in no order of size)."""
    width = len(str(topics))
    fixed = round(FIXED_TOPICS * topics) if some_fixed else 0
    return tuple(f"{'fixed' if t < fixed else 'topic'}-{t:0{width}d}" for t in range(topics))
