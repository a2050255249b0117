"""What a caller asks of one planning run: seed, acceptance, budgets, what-ifs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cluster_model.partition_loads import PartitionLoads

Watch = Callable[[int], bool]
"""Told how many brokers are still outside their target range (or wait for repairs); False ends the search with what there is."""

MIN_GAIN = 0.1  # of a mean, for copying as much as a typical broker stores; docs/goals.md says how it was measured
NOISE, NOISE_OF_BOUND = 0.02, 0.2  # of a mean, and of a goal's bound: the smaller

Acceptance = Literal["score", "potential"]


@dataclass(frozen=True, slots=True)
class AddedBroker:
    """A broker that is to be imagined. `rack` None takes none."""

    id: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class RemovedDirectory:
    """A log directory of a broker that is to be taken out of use."""

    broker: int
    path: str


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Options of `optimizer.planner.plan`; sizes in bytes, topics as glob patterns, brokers as wire ids.

    `move_cost` is what each replica move costs besides its bytes, in bytes; None: as the goals' policy says, else so many replicas of mean
    size (`optimizer.columns.MOVE_COST`). `min_gain` is the least that a part of a plan gains, in means, for copying as much as a typical
    broker stores, and `noise` the share of the mean by which measured loads differ when they are measured again; None: as the goals' policy
    says, else `MIN_GAIN`, and the smaller of `NOISE` and `NOISE_OF_BOUND`. `restarts` is the most seeds that a small problem is searched
    with, 1 or more; None: as many as the cluster is worth (`docs/search.md`, stages). `threads` change how soon a plan is there, and no
    more; one by default, since a planner often runs beside a broker or a controller. `resting` are partitions, topic and number in
    ascending order, that were moved lately: nothing but repairs changes them. `demote_brokers` give up their leaderships, and nothing else
    is planned. `loads` stand in place of the snapshot's, before `scale_load`; None: the loads of the snapshot. `replication_factor` are
    patterns of topics and the factor that they are to have: such a plan changes nothing else (`optimizer.policies.replication`).
    `split_hits` are checks in a row in which bundles, by name, were over a limit of the policy's `split`; None: no further check is waited
    for.
    """

    seed: int = 0
    acceptance: Acceptance = "score"
    threads: int = 1
    max_moves: int | None = None
    max_bytes: int | None = None
    max_partitions: int | None = None
    move_cost: int | None = None
    min_gain: float | None = None
    noise: float | None = None
    restarts: int | None = None
    add_brokers: tuple[AddedBroker, ...] = ()
    remove_brokers: tuple[int, ...] = ()
    exclude_brokers: tuple[int, ...] = ()
    demote_brokers: tuple[int, ...] = ()
    exclude_topics: tuple[str, ...] = ()
    scale_load: tuple[tuple[str, float], ...] = ()
    resting: tuple[tuple[str, int], ...] = ()
    loads: PartitionLoads | None = None
    replication_factor: tuple[tuple[str, int], ...] = ()
    split_hits: tuple[tuple[str, int], ...] | None = None

    @property
    def least_gain(self) -> float:
        return MIN_GAIN if self.min_gain is None else self.min_gain

    @property
    def budgeted(self) -> bool:
        return any(x is not None for x in (self.max_moves, self.max_bytes, self.max_partitions))
