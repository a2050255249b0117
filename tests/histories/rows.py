"""Samples of a synthetic cluster, some intervals at a time: levels, noise, saturation, cpu, then damage; as Arrow tables.

Called by `tests.histories.synthetic`. A piece depends on the truth and its own number only, so that pieces can be made in any
order by any process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_array

from tests.clusters.loads import FloatArray, IntArray
from tests.histories.truth import DAY, FUTURE, HOUR, KNEE, SPIKE, WORST_LATENCY, World

NOBODY = -1
WOBBLE = 0.3  # how much consumers and sizes of requests swing round the day, each topic at its own hour


@dataclass(frozen=True)
class Piece:
    """Sampling steps `first` to `last` (not included), all of one day and one placement."""

    number: int
    first: int
    last: int


@dataclass
class Rows:
    """Columns of samples: microseconds, broker id, rows of topic and metric, partition, value. `NOBODY`: a whole broker's."""

    time: npt.NDArray[np.int64]
    broker: IntArray
    topic: IntArray
    partition: IntArray
    metric: IntArray
    value: FloatArray
    damaged: dict[str, int] = field(default_factory=dict)

    def take(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Rows:
        return Rows(
            self.time[rows], self.broker[rows], self.topic[rows], self.partition[rows], self.metric[rows], self.value[rows],
            self.damaged,
        )  # fmt: skip


def metrics(world: World) -> tuple[str, ...]:
    """Every metric of the history, ascending: rows of `Rows.metric`."""
    broker = ["network_in", "network_out", "produce_rate", "fetch_rate", "cpu", "disk", "produce_latency_ms", "request_latency_ms"]
    return tuple(sorted({*broker, "capacity.network_in", *world.truth.partition_metrics}))


def rows_per_step(world: World) -> int:
    """Rows of one interval before any are left out or doubled."""
    truth = world.truth
    replicas = sum(truth.replication - 1 if m.startswith("follower.") else 1 for m in truth.partition_metrics)
    return truth.partitions * replicas + truth.brokers * 8 + int(world.reporting.sum())


def pieces(world: World, most_rows: int) -> Iterator[Piece]:
    """The whole span in pieces of at most so many rows, in the order of time."""
    truth = world.truth
    steps = max(1, most_rows // rows_per_step(world))
    cuts = {0, truth.steps, *(first for first, _ in world.placements), *range(0, truth.steps, DAY // truth.interval)}
    ends = sorted(cut for cut in cuts if 0 <= cut <= truth.steps)
    number = 0
    for begin, end in pairwise(ends):
        for first in range(begin, end, steps):
            yield Piece(number, first, min(first + steps, end))
            number += 1


def rows_of(world: World, piece: Piece) -> Rows:
    """The samples of a piece, sorted by metric, topic and partition, whole brokers first; then damage."""
    truth = world.truth
    r = np.random.default_rng([truth.seed, 1, piece.number])
    names = metrics(world)
    values, brokers = _values(world, piece, r)
    steps = np.arange(piece.first, piece.last)
    blocks = []
    for code, name in enumerate(names):
        for block, partitions in ((brokers.get(name), False), (values.get(name), True)):
            if block is not None:
                blocks.append(_block(world, steps, code, block[0], block[1], partitions))
    columns = [np.concatenate(parts) for parts in zip(*blocks, strict=True)]
    return damaged(Rows(*columns), world, r)  # type: ignore[arg-type]


def table(rows: Rows, world: World, plain: bool = True) -> pa.Table:
    """Arrow with the columns of docs/history.md; `plain`: names as strings, else as dictionaries."""
    nobody = rows.topic == NOBODY
    one = np.zeros(len(rows.time), dtype=np.int32)

    def named(names: tuple[str, ...], codes: IntArray, absent: npt.NDArray[np.bool_] | None = None) -> pa.Array:
        found = pa.DictionaryArray.from_arrays(pa.array(codes, mask=absent), pa.array(names, pa.string()))
        return found.cast(pa.string()) if plain else found

    return pa.table({
        "time": pa.array(rows.time).cast(pa.timestamp("us", tz="UTC")),
        "cluster_id": named((world.truth.cluster_id,), one),
        "broker": pa.array(rows.broker),
        "topic": named(world.topics, rows.topic, nobody),
        "partition": pa.array(rows.partition, mask=nobody),
        "metric": named(metrics(world), rows.metric),
        "value": pa.array(rows.value, from_pandas=False),
    })  # fmt: skip


# -- values ----------------------------------------------------------------------------------------------------------------

Block = tuple[FloatArray, IntArray]  # values [N, steps] and the broker of each row [N]


def _values(world: World, piece: Piece, r: np.random.Generator) -> tuple[dict[str, Block], dict[str, Block]]:
    """By metric: values of replicas, rows in the order of partitions, and of whole brokers."""
    truth = world.truth
    replicas = next(found for first, found in reversed(world.placements) if first <= piece.first)
    leader, followers = replicas[:, 0], replicas[:, 1:]
    time = truth.begin + truth.interval * (np.arange(piece.first, piece.last, dtype=np.float64) + 0.5)
    level = _levels(world, time)
    swing = _swing(world, time)
    steady = world.rate[:, None] * level[world.topic]
    jitter = _lognormal(r, truth.partition_noise, steady.shape)
    noise = {name: _held(world, time, name, sigma) for name, sigma in truth.noise}
    flat = np.ones((truth.brokers, len(time)))
    noise_in, noise_out = noise.get("network_in", flat), noise.get("network_out", flat)

    leads, holds = _on_brokers(leader[:, None], truth.brokers), _on_brokers(replicas, truth.brokers)
    offered = (holds @ (steady * jitter)) * noise_in
    kept = flat if world.capacity is None else _capped(offered / world.capacity[:, None])
    into = steady * jitter
    led = into * (noise_in * kept)[leader]
    fan = world.consumers[:, None] * swing[0][world.topic] + (truth.replication - 1)
    out = into * fan * (noise_out * kept)[leader]
    produced = led / (world.per_batch[:, None] * swing[1][world.topic])
    fetched = out / (world.per_fetch[:, None] * swing[2][world.topic])
    stored = world.rate[:, None] * world.retention[:, None] * truth.level(time, truth.growth)

    def copied(values: FloatArray, scale: FloatArray | None = None) -> Block:
        wide = np.repeat(values, followers.shape[1], axis=0)
        brokers = followers.ravel()
        return (wide if scale is None else wide * scale[brokers], brokers)

    carried = offered * kept
    sums = {
        "network_in": carried, "network_out": leads @ out, "produce_rate": leads @ produced, "fetch_rate": leads @ fetched,
        "disk": holds @ np.ascontiguousarray(np.broadcast_to(stored, steady.shape)),
    }  # fmt: skip
    sums |= _cpu(world, sums, r) | _latency(world, carried, r)
    all_brokers = np.arange(truth.brokers, dtype=np.int32)
    by_broker: dict[str, Block] = {name: (found, all_brokers) for name, found in sums.items()}
    if world.capacity is not None and world.reporting.any():
        told = np.flatnonzero(world.reporting).astype(np.int32)
        by_broker["capacity.network_in"] = (np.repeat(world.capacity[told][:, None], len(time), axis=1), told)
    by_replica: dict[str, Block] = {
        "network_in": (led, leader), "network_out": (out, leader), "produce_rate": (produced, leader),
        "fetch_rate": (fetched, leader), "disk": (np.broadcast_to(stored, steady.shape), leader),
        "consumer_out": (np.maximum(out - (truth.replication - 1) * led, 0.0), leader),
    }  # fmt: skip
    if "follower.network_in" in truth.partition_metrics:
        by_replica["follower.network_in"] = copied(into, noise_in * kept)
    if "follower.disk" in truth.partition_metrics:
        by_replica["follower.disk"] = copied(np.broadcast_to(stored, steady.shape))
    return {name: by_replica[name] for name in truth.partition_metrics}, by_broker


def _levels(world: World, time: FloatArray) -> FloatArray:
    """float64 [T, steps]: what a topic carries over its mean, without noise."""
    truth = world.truth
    pattern = np.array(world.pattern)
    level = np.where((pattern == "steady")[:, None], 1.0, truth.season(time)) * truth.level(time, truth.growth)
    level = level * np.where((pattern == "growing")[:, None], truth.level(time, truth.topic_growth), 1.0)
    bursty = np.flatnonzero(pattern == "bursty")
    if len(bursty):
        hours = (time // HOUR).astype(np.int64)
        drawn = {h: np.random.default_rng([truth.seed, 2, h]).random(len(bursty)) < truth.burst_share for h in np.unique(hours)}
        level[bursty] *= np.stack([np.where(drawn[h], truth.burst, 1.0) for h in hours], axis=1)
    return level


def _swing(world: World, time: FloatArray) -> FloatArray:
    """float64 [3, T, steps]: consumers, bytes of a produce request and of a fetch over their means."""
    phase = np.random.default_rng([world.truth.seed, 3]).uniform(0, 2 * np.pi, (3, len(world.topics), 1))
    found: FloatArray = 1.0 + WOBBLE * np.cos(2 * np.pi * time / DAY + phase)
    return found


def _held(world: World, time: FloatArray, name: str, sigma: float) -> FloatArray:
    """float64 [B, steps]: noise factors of brokers, the same within `noise_hold`, whatever piece asks."""
    hold = world.truth.noise_hold or world.truth.interval
    slots, place = np.unique((time // hold).astype(np.int64), return_inverse=True)
    salt = sum(name.encode())
    drawn = [np.random.default_rng([world.truth.seed, 4, salt, s]).standard_normal(world.truth.brokers) for s in slots]
    return np.maximum(1.0 + sigma * np.stack(drawn, axis=1)[:, place], 0.01)


def _lognormal(r: np.random.Generator, sigma: float, shape: tuple[int, ...]) -> FloatArray:
    """Factors with mean 1."""
    return np.exp(sigma * r.standard_normal(shape) - sigma * sigma / 2) if sigma else np.ones(shape)


def _capped(utilization: FloatArray) -> FloatArray:
    """Share of what is offered that is carried: all of it well below capacity, never more than capacity."""
    found: FloatArray = (1.0 + utilization**KNEE) ** (-1.0 / KNEE)
    return found


def _cpu(world: World, sums: dict[str, FloatArray], r: np.random.Generator) -> dict[str, FloatArray]:
    cost = world.truth.cpu
    cores = (
        cost.idle + cost.byte_in * sums["network_in"] + cost.byte_out * sums["network_out"]
        + cost.produce * sums["produce_rate"] + cost.fetch * sums["fetch_rate"]
    )  # fmt: skip
    return {"cpu": np.maximum(cores * (1.0 + cost.noise * r.standard_normal(cores.shape)), 0.0)}


def _latency(world: World, carried: FloatArray, r: np.random.Generator) -> dict[str, FloatArray]:
    """Milliseconds: as in a queue where there is a capacity, a slight straight rise where there is none."""
    truth = world.truth
    if world.capacity is None:
        rise = 1.0 + truth.latency_slope * carried / carried.mean()
    else:
        rise = np.minimum(1.0 / np.maximum(1.0 - carried / world.capacity[:, None], 1e-9), WORST_LATENCY)
    return {
        name: truth.latency_ms * share * rise * _lognormal(r, truth.latency_noise, rise.shape)
        for name, share in (("produce_latency_ms", 1.0), ("request_latency_ms", 0.5))
    }


def _on_brokers(replicas: IntArray, brokers: int) -> csr_array:
    """Sparse [B, P]: 1 where a broker holds one of the replicas."""
    partitions, factor = replicas.shape
    columns = np.repeat(np.arange(partitions), factor)
    return csr_array((np.ones(replicas.size), (replicas.ravel(), columns)), shape=(brokers, partitions))


# -- rows ------------------------------------------------------------------------------------------------------------------


def _block(
    world: World, steps: npt.NDArray[np.int64], metric: int, values: FloatArray, brokers: IntArray, partitions: bool
) -> tuple[npt.NDArray[np.generic], ...]:
    """Columns of one metric; a broker measures all its replicas at one instant."""
    truth = world.truth
    copies = len(values) // truth.partitions if partitions else 1
    time = ((truth.begin + truth.interval * steps + world.offset[brokers][:, None]) * 1e6).astype(np.int64)
    shape = values.shape
    topic = np.repeat(world.topic, copies) if partitions else np.full(len(values), NOBODY, dtype=np.int32)
    number = np.repeat(world.number, copies) if partitions else np.full(len(values), NOBODY, dtype=np.int32)
    return (
        time.ravel(), np.repeat(brokers + np.int32(1), shape[1]), np.repeat(topic, shape[1]),
        np.repeat(number, shape[1]), np.full(values.size, metric, dtype=np.int32), np.ascontiguousarray(values).ravel(),
    )  # fmt: skip


def damaged(rows: Rows, world: World, r: np.random.Generator) -> Rows:
    """Rows with their share missing and their share damaged; no row is damaged twice. Counts by kind are in `damaged`."""
    truth = world.truth
    count = len(rows.time)
    if truth.missing:
        rows = rows.take(r.random(count) >= truth.missing)
        rows.damaged = {"missing": count - len(rows.time)}
        count = len(rows.time)
    if not truth.corrupt or not truth.damage:
        return rows
    hit = np.flatnonzero(r.random(count) < truth.corrupt)
    kind = r.integers(0, len(truth.damage), len(hit))
    by_kind = {name: hit[kind == i] for i, name in enumerate(truth.damage)}
    value, time = rows.value.copy(), rows.time.copy()
    for name, at in by_kind.items():
        match name:
            case "nan":
                value[at] = np.nan
            case "negative":
                value[at] = -1.0 - value[at]
            case "spike":
                value[at] *= SPIKE
            case "future":
                time[at] += FUTURE * 1_000_000
            case "duplicate":
                pass
    counts = rows.damaged | {name: len(at) for name, at in by_kind.items()}
    rows = replace(rows, value=value, time=time, damaged=counts)
    if "duplicate" in by_kind:
        twice = np.ones(count, dtype=np.int64)
        twice[by_kind["duplicate"]] = 2
        rows = rows.take(np.repeat(np.arange(count), twice))
    return rows
