"""Leader and follower loads of partitions, from the columns of the model, with what is said of each number.

Called by `cluster_model.model` in two steps: `RawLoads.read` under its lock, `derive` on what is private then.

- `network_in`, `disk`: the leader's own; the followers' where the leader's is unknown, or it is stale and theirs is not (estimated).
- `network_out`: as measured, else what consumers fetch + (RF - 1) x `network_in`; a partition whose consumers are not
  measured while others' are gets the followers' part alone (estimated).
- Consumers' bytes, requests, `cpu`: where they are old and the `network_in` of the partition is not, as much for each byte produced as
  fresh partitions of the same topic have (estimated).
- `cpu`: as measured, else a share of its broker's use in proportion to the bytes that the replica handles (estimated).
- Followers cost the `network_in` and `disk` of their leader, and what they measured of everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cluster_model.loops import ESTIMATED, STALE, UNKNOWN, Flags, attribute, read
from cluster_model.observed import CONSUMER_OUT, FOLLOWER, LEADER
from cluster_model.placement import Placement
from cluster_model.resources import FOLLOWER_COPIES_LEADER, MEASURED
from cluster_model.snapshot import FloatArray, IntArray
from cluster_model.windows import Column, HorizonName

Loads = dict[str, tuple[FloatArray, Flags]]
"""Resource -> loads of all partitions, and what is said of each: bits `ESTIMATED`, `STALE`, `UNKNOWN`."""
Key = tuple[int, str]
"""Scope and metric."""


class RawLoads:
    """Room for the loads of `count` partitions in some columns. Made, and touched, before the model is locked."""

    def __init__(self, count: int, keys: list[Key]) -> None:
        self.count = count
        self.of: dict[Key, tuple[FloatArray, Flags]] = {}
        for key in keys:
            self.reserve(key)

    def reserve(self, key: Key) -> None:
        room = (np.empty(self.count), np.empty(self.count, dtype=np.uint8))
        for array in room:
            array.fill(0)  # takes the pages from the system now
        self.of[key] = room

    def read(self, columns: Mapping[Key, Column], slots: IntArray, horizon: HorizonName, oldest_ms: int) -> None:
        """Fill from the columns, in the order of `slots`, int32 [count]. O(partitions) a column."""
        for key in [key for key in self.of if key not in columns]:
            del self.of[key]
        for key, column in columns.items():
            if key not in self.of:
                self.reserve(key)
            read(column.total(horizon), column.times, slots, oldest_ms, *self.of[key])


@dataclass(frozen=True, eq=False)
class BrokerUse:
    """Measured use of one resource by whole brokers, in rows of a `Placement`: float64 [B], NaN where not known."""

    values: FloatArray
    flags: Flags


def derive(raw: RawLoads, placed: Placement, cpu: BrokerUse | None, topic: IntArray) -> tuple[Loads, Loads]:
    """Leader and follower loads; resources of which nothing is known are left out. Takes `raw` over; `topic`, int32 [P], is each one's.

    O(partitions), O(replicas) where `cpu` has to be divided.
    """
    leading = {metric: found for (scope, metric), found in raw.of.items() if scope == LEADER}
    following = {metric: found for (scope, metric), found in raw.of.items() if scope == FOLLOWER}
    consumers = leading.pop(CONSUMER_OUT, None)
    following.pop(CONSUMER_OUT, None)
    for resource in sorted(FOLLOWER_COPIES_LEADER):
        if resource in following:
            own = following.pop(resource)
            leading[resource] = _freshened(leading[resource], own) if resource in leading else _estimated(own)
    incoming = leading.get("network_in")
    if incoming is not None:
        rates = [loads[r] for loads in (leading, following) for r in loads if r not in FOLLOWER_COPIES_LEADER and r != "cpu"]
        for found in rates if consumers is None else [*rates, consumers]:
            _by_topic(found, incoming, topic)
    if consumers is not None and "network_in" in leading:
        out = _sent(consumers, leading["network_in"], placed.factor)
        leading["network_out"] = _filled(leading["network_out"], out, mark=0) if "network_out" in leading else out
    if cpu is not None and "network_in" in leading:
        _divide_cpu(leading, following, placed, cpu, raw.count)
    if incoming is not None:
        for loads in (leading, following):
            if "cpu" in loads:
                _by_topic(loads["cpu"], incoming, topic, across=True)
    leading = _known(leading)
    following = _known(following)
    if following:
        following |= {r: leading[r] for r in FOLLOWER_COPIES_LEADER if r in leading}
    order = list(MEASURED)
    return _ordered(leading, order), _ordered(following, order)


def _sent(
    consumers: tuple[FloatArray, Flags], incoming: tuple[FloatArray, Flags], factor: IntArray
) -> tuple[FloatArray, Flags]:
    """What leaders send: to consumers, and to followers."""
    fetched, flags = consumers
    followers = factor - 1
    copied = followers * incoming[0]
    unmeasured = np.flatnonzero((flags & UNKNOWN) & ~incoming[1])
    out = fetched + copied
    said = (flags | incoming[1]).astype(np.uint8)
    replicated = unmeasured[followers[unmeasured] > 0]
    out[replicated] = copied[replicated]
    said[replicated] = incoming[1][replicated] | ESTIMATED
    return _whole(out, said)


def _divide_cpu(leading: Loads, following: Loads, placed: Placement, cpu: BrokerUse, count: int) -> None:
    lead, follow = leading.get("cpu") or _nothing(count), following.get("cpu") or _nothing(count)
    incoming = leading["network_in"]
    if not bool(((lead[1] | follow[1]) & UNKNOWN).any()):
        return
    sent = np.nan_to_num(leading["network_out"][0], nan=0.0) if "network_out" in leading else np.zeros(count)
    stale = (incoming[1] & STALE).astype(np.uint8)
    attribute(placed.replicas, placed.leader, incoming[0], sent, stale, cpu.values, cpu.flags, *lead, *follow)
    leading["cpu"], following["cpu"] = lead, follow


def _filled(first: tuple[FloatArray, Flags], second: tuple[FloatArray, Flags], mark: int = ESTIMATED) -> tuple[FloatArray, Flags]:
    """`first`, with what is not known there taken from `second` and marked."""
    values, flags = first
    rows = np.flatnonzero((flags & UNKNOWN).astype(bool) & ((second[1] & UNKNOWN) == 0))
    values[rows] = second[0][rows]
    flags[rows] = second[1][rows] | mark
    return values, flags


def _freshened(leader: tuple[FloatArray, Flags], followers: tuple[FloatArray, Flags]) -> tuple[FloatArray, Flags]:
    """The leader's own; where it is not known, or old while what followers measured is not, theirs, marked. So one reporter that is
    silent puts only what it alone measured in doubt."""
    values, flags = leader
    rows = np.flatnonzero(((flags & STALE) > 0) & ((flags & UNKNOWN) == 0) & ((followers[1] & (STALE | UNKNOWN)) == 0))
    values[rows] = followers[0][rows]
    flags[rows] = followers[1][rows] | ESTIMATED
    return _filled(leader, followers)


def _by_topic(found: tuple[FloatArray, Flags], incoming: tuple[FloatArray, Flags], topic: IntArray, *, across: bool = False) -> None:
    """Replace what is old, where `incoming` is not, by as much for each byte produced as fresh partitions of its topic have, and mark
    it; with `across`, where none of its topic is fresh, as those of all topics have. O(partitions)."""
    values, flags = found
    old = ((flags & STALE) > 0) & ((flags & UNKNOWN) == 0) & ((incoming[1] & (STALE | UNKNOWN)) == 0)
    rows = np.flatnonzero(old)
    fresh = np.flatnonzero(((flags | incoming[1]) & (STALE | UNKNOWN)) == 0)
    if not len(rows) or not len(fresh):
        return
    room = int(topic.max()) + 1
    count = np.bincount(topic[fresh], minlength=room)
    produced = np.bincount(topic[fresh], weights=incoming[0][fresh], minlength=room)
    there = np.bincount(topic[fresh], weights=values[fresh], minlength=room)
    if across:
        alone = count == 0
        count[alone], produced[alone], there[alone] = len(fresh), produced.sum(), there.sum()
    idle = (produced == 0.0) & (count > 0)  # nothing is produced to the topic: then as much as each of them has
    of, amount = topic[rows], incoming[0][rows]
    known = (produced[of] > 0.0) | (idle[of] & (amount == 0.0))
    rows, of, amount = rows[known], of[known], amount[known]
    amount, share = np.where(idle[of], 1.0, amount), there[of] / np.where(idle[of], count[of], produced[of])
    values[rows] = amount * share
    flags[rows] = incoming[1][rows] | ESTIMATED


def _estimated(found: tuple[FloatArray, Flags]) -> tuple[FloatArray, Flags]:
    values, flags = found
    return values, np.where(flags & UNKNOWN, flags, flags | ESTIMATED).astype(np.uint8)


def _whole(values: FloatArray, flags: Flags) -> tuple[FloatArray, Flags]:
    """The same, with `UNKNOWN` alone said of what is NaN."""
    flags[np.isnan(values)] = UNKNOWN
    return values, flags


def _nothing(count: int) -> tuple[FloatArray, Flags]:
    return np.full(count, np.nan), np.full(count, UNKNOWN, dtype=np.uint8)


def _known(loads: Loads) -> Loads:
    return {r: found for r, found in loads.items() if not bool((found[1] & UNKNOWN).all())}


def _ordered(loads: Loads, order: list[str]) -> Loads:
    return {r: loads[r] for r in order if r in loads}
