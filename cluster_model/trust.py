"""Which numbers of a snapshot can be trusted, per resource, partition and broker, in words and as data.

Made by `cluster_model.model`; read by the planner, by the HTTP interface and by people. Nothing is taken out of a
snapshot because it is stale: its last known load counts, and only what depends on it is refused (`LiveSnapshot.refusals`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from cluster_model.latency import BrokerLatency
from cluster_model.loops import ESTIMATED, STALE, UNKNOWN, Flags
from cluster_model.resources import FOLLOWER_COPIES_LEADER
from cluster_model.snapshot import BoolArray, FloatArray, Snapshot
from cluster_model.windows import HorizonName

NAMED = 5  # in a sentence
DOUBTFUL_SHARE = 0.1  # of a broker's load or replicas: as much as the usual band around the mean

Voice = Literal["fresh", "late", "silent", "never"]


@dataclass(frozen=True, slots=True)
class BrokerVoice:
    """Whether a broker's reporter is heard.

    Attributes
    ----------
    age_ms
        Since the end of the newest interval it reported; None where it never reported.
    voice
        ``late``: batches arrive, but of long ago (its clock is behind, or it works off what it kept); ``silent``: none
        arrive any more; ``never``: none ever did.
    """

    broker: int
    voice: Voice
    age_ms: int | None


@dataclass(frozen=True, slots=True)
class Staleness:
    """How fresh the model is.

    Attributes
    ----------
    partitions
        Partitions of which no leader sent anything for longer than the limit, or ever.
    examples
        The first of them by topic and number.
    brokers
        Every registered broker that is not ``fresh``, by id.
    """

    partitions: int
    examples: tuple[tuple[str, int], ...]
    brokers: tuple[BrokerVoice, ...]


@dataclass(frozen=True, eq=False)
class BrokerDoubts:
    """How much of each broker's load of one resource is in doubt, in rows of the snapshot's brokers.

    Attributes
    ----------
    load, stale, estimated
        float64 [B] in the resource's unit; a load that is both counts in both.
    replicas, unknown
        int64 [B]: replicas hosted, and those among them that count as 0 because no reporter measured them.
    """

    load: FloatArray
    stale: FloatArray
    estimated: FloatArray
    replicas: np.ndarray
    unknown: np.ndarray

    def share(self) -> FloatArray:
        """float64 [B], 0..1: the larger of the stale share of the load and the unknown share of the replicas."""
        stale = self.stale / np.where(self.load > 0.0, self.load, 1.0)
        unknown = self.unknown / np.maximum(self.replicas, 1)
        return np.asarray(np.maximum(stale, unknown))


@dataclass(frozen=True, eq=False)
class LoadTrust:
    """What is said of the loads of a snapshot.

    Attributes
    ----------
    horizon, horizon_ms
        Which means these are, and over how long at most.
    leader, follower
        Resource -> uint8 [P], bits `ESTIMATED` 1, `STALE` 2, `UNKNOWN` 4; 0 is measured and fresh. `follower` has the
        resources that followers have loads of their own for.
    voices
        Every registered broker, by id.
    latencies
        How long brokers take for requests, by broker and metric; of those that report it.
    """

    horizon: HorizonName
    horizon_ms: int
    stale_after_ms: int
    leader: Mapping[str, Flags]
    follower: Mapping[str, Flags]
    voices: tuple[BrokerVoice, ...]
    latencies: tuple[BrokerLatency, ...] = ()

    def __post_init__(self) -> None:
        for table in (self.leader, self.follower):
            for flags in table.values():
                flags.flags.writeable = False


@dataclass(frozen=True, eq=False)
class LiveSnapshot(Snapshot):
    """A snapshot of the live model, with what is said of its numbers; `notes` has the same for people."""

    trust: LoadTrust = field(kw_only=True)

    @cached_property
    def _doubts(self) -> dict[str, BrokerDoubts]:
        return {}

    def untrusted(self, resources: Iterable[str]) -> BoolArray:
        """bool [P]: partitions whose load of one of the resources is stale or unknown. Moving one of them is a guess."""
        found = np.zeros(self.partition_count, dtype=np.bool_)
        several = self.replication_factor > 1
        for resource in resources:
            if resource in self.trust.leader:
                found |= (self.trust.leader[resource] & (STALE | UNKNOWN)) > 0
            if resource in self.trust.follower:
                found |= ((self.trust.follower[resource] & (STALE | UNKNOWN)) > 0) & several
        return found

    def is_doubtful(self, resource: str) -> bool:
        """Whether any load of the resource is stale or unknown. O(partitions)."""
        unknown = np.full(1, UNKNOWN, dtype=np.uint8)
        tables = (self.trust.leader.get(resource, unknown), self.trust.follower.get(resource, unknown[:0]))
        return any(bool((flags & (STALE | UNKNOWN)).any()) for flags in tables)

    def broker_doubts(self, resource: str) -> BrokerDoubts:
        """How much of each broker's load is in doubt. O(replicas) the first time."""
        if resource not in self._doubts:
            self._doubts[resource] = self._weigh(resource)
        return self._doubts[resource]

    def _weigh(self, resource: str) -> BrokerDoubts:
        leading, following = self.vectors(resource)
        none = np.full(self.partition_count, UNKNOWN, dtype=np.uint8)
        lead = self.trust.leader.get(resource, none)
        implied = lead if resource in FOLLOWER_COPIES_LEADER else np.zeros_like(none)
        follow = self.trust.follower.get(resource, implied)
        present = self.replicas >= 0
        leads = (self.replicas == self.leader[:, None])[present]
        hosts = self.replicas[present]
        row = np.nonzero(present)[0]
        load = np.where(leads, leading[row], following[row])
        flags = np.where(leads, lead[row], follow[row])

        def total(weights: FloatArray | BoolArray) -> FloatArray:
            return np.bincount(hosts, weights=weights, minlength=self.broker_count).astype(np.float64)

        return BrokerDoubts(
            load=total(load),
            stale=total(np.where(flags & STALE, load, 0.0)),
            estimated=total(np.where(flags & ESTIMATED, load, 0.0)),
            replicas=np.bincount(hosts, minlength=self.broker_count),
            unknown=total((flags & UNKNOWN) > 0).astype(np.int64),
        )

    def refusals(
        self,
        partitions: Iterable[tuple[str, int]],
        brokers: Iterable[int],
        resources: Collection[str],
        *,
        limit: float = DOUBTFUL_SHARE,
    ) -> tuple[str, ...]:
        """Why a change cannot be trusted that moves these partitions and touches these brokers (wire ids), for the sake
        of these resources; empty where it can.

        A partition is in doubt when its own load is stale or unknown, a broker when more than `limit` of its load is
        stale, or of its replicas unknown. Nothing else on the broker is held against the change.
        """
        reasons = []
        known = [r for r in resources if r in self.trust.leader]
        for topic, number in partitions:
            row = self.row_of_partition(topic, number)
            for resource in known if row >= 0 else ():
                said = int(self.trust.leader[resource][row])
                if resource in self.trust.follower and self.replication_factor[row] > 1:
                    said |= int(self.trust.follower[resource][row])
                if said & (STALE | UNKNOWN):
                    what = "was never measured" if said & UNKNOWN else f"is older than {spoken(self.trust.stale_after_ms)}"
                    reasons.append(f"{resource} of {topic}-{number} {what}")
        for broker in brokers:
            place = self.row_of_broker.get(broker)
            for resource in known if place is not None else ():
                share = float(self.broker_doubts(resource).share()[place])
                if share > limit:
                    reasons.append(f"{share:.0%} of the {resource} of broker {broker} is stale or unknown (limit {limit:.0%})")
        return tuple(reasons)

    def trust_document(self) -> dict[str, object]:
        """The same as data for JSON: per resource how many partitions are in doubt and which brokers by how much, and
        the reporters that are not heard. Does not grow with partitions."""
        loads: dict[str, object] = {}
        for resource, flags in self.trust.leader.items():
            counts = counts_of(flags)
            entry: dict[str, object] = {name: counts[name] for name in ("fresh", "estimated", "stale", "unknown")}
            if counts["fresh"] < len(flags):
                doubts = self.broker_doubts(resource)
                entry["brokers"] = {
                    str(int(self.broker_ids[row])): {
                        "load": float(doubts.load[row]),
                        "stale": float(doubts.stale[row]),
                        "estimated": float(doubts.estimated[row]),
                        "unknown_replicas": int(doubts.unknown[row]),
                    }
                    for row in np.flatnonzero((doubts.stale > 0) | (doubts.estimated > 0) | (doubts.unknown > 0)).tolist()
                }
            loads[resource] = entry
        return {
            "horizon": self.trust.horizon,
            "horizon_ms": self.trust.horizon_ms,
            "stale_after_ms": self.trust.stale_after_ms,
            "loads": loads,
            "brokers": [
                {"id": v.broker, "voice": v.voice, "age_ms": v.age_ms} for v in self.trust.voices if v.voice != "fresh"
            ],
        }


def counts_of(flags: Flags) -> dict[str, int]:
    """How many loads are fresh (measured, and within the limit), estimated, stale, unknown; the last two may be
    estimated too."""
    count = np.bincount(flags, minlength=8)
    return {
        "fresh": int(count[0]),
        "estimated": int(sum(count[f] for f in range(8) if f & ESTIMATED)),
        "stale": int(sum(count[f] for f in range(8) if f & STALE)),
        "unknown": int(sum(count[f] for f in range(8) if f & UNKNOWN)),
    }


def spoken(ms: int) -> str:
    """A length of time for people: ``90 s``, ``5 min``, ``3 h``, ``4 d``."""
    seconds = ms / 1000
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
