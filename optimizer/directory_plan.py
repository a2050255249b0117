"""Moves of replicas between the log directories of each broker, with what each volume holds before and after, and why it stays outside.

Called by `trimtab directories`. Pure: a snapshot and the policy in, a plan out. Moves between brokers are the search's; these follow them,
and change no load of a broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cluster_model.directories import volumes_of
from cluster_model.quantities import format_size
from cluster_model.snapshot import BoolArray, BrokerState, Snapshot
from goals.model import Constraints
from goals.policy_directories import Directories
from optimizer.directories import CLOSE, Levelled, Rows, Target, Volumes, level
from optimizer.whatif import may_change

ALL_FULL = "all volumes of the broker together hold more than the limit lets them; `trimtab plan` moves replicas to other brokers"
FIXED = "other files, topics that the goals exclude, and replicas whose size or directory is not known"


@dataclass(frozen=True, slots=True)
class DirectoryMove:
    """One replica, from one log directory of its broker to another; `bytes` are copied within the broker."""

    topic: str
    partition: int
    broker: int
    replicas: tuple[int, ...]
    source: str
    target: str
    bytes: float


@dataclass(frozen=True, slots=True)
class VolumeOutcome:
    """One volume: its log directories, bytes of it and in use before and after, the target range, and why it stays outside (or nothing)."""

    paths: tuple[str, ...]
    size: float
    before: float
    after: float
    low: float
    high: float
    why: str


@dataclass(frozen=True, slots=True)
class BrokerDirectories:
    """One broker with several volumes. `least`: bytes that no plan with as good an end can avoid; `proven`: none is better."""

    broker: int
    volumes: tuple[VolumeOutcome, ...]
    moves: tuple[DirectoryMove, ...]
    least: float
    proven: bool


@dataclass(frozen=True, slots=True)
class DirectoryPlan:
    """All brokers with several volumes, by id. `left` says of others why nothing is planned there."""

    cluster_id: str
    taken_at: str
    policy: Directories
    brokers: tuple[BrokerDirectories, ...]
    left: tuple[str, ...]

    @property
    def moves(self) -> tuple[DirectoryMove, ...]:
        """Of all brokers, each broker's in the order in which they find room."""
        return tuple(move for broker in self.brokers for move in broker.moves)


def plan_directories(snapshot: Snapshot, constraints: Constraints, policy: Directories) -> DirectoryPlan:
    """The fewest bytes that bring every volume under the limit and into the target range, broker by broker.

    Notes
    -----
    Left alone are topics that the constraints exclude, and brokers that are not active or excluded. O(replicas log replicas).
    """
    states = dict(zip(snapshot.broker_ids.tolist(), snapshot.broker_states.tolist(), strict=True))
    out = [b for b in snapshot.directories if states[b] != BrokerState.ACTIVE or b in constraints.exclude_brokers]
    wanted = {b for b in snapshot.directories if b not in out}
    brokers = [_planned(each, policy) for each in _brokers_of(snapshot, may_change(snapshot.topics, constraints), wanted)]
    told = [b for b in snapshot.broker_ids.tolist() if b not in {*out, *(each.broker for each in brokers)}]
    left = [f"{_brokers(told)}: one volume, or log directories that are not in the snapshot"] if told else []
    left += [f"{_brokers(out)}: not active, or excluded by the goals"] if out else []
    return DirectoryPlan(snapshot.cluster_id, snapshot.taken_at, policy, tuple(brokers), tuple(left))


@dataclass(frozen=True, eq=False)
class _Broker:
    """One broker: rows of its partitions and the slot that it has in each, the directory of each replica, and its volumes."""

    snapshot: Snapshot
    id: int
    rows: Rows
    held: Rows
    first: list[int]  # of each directory, the first one on its volume
    volumes: Volumes


def _brokers_of(snapshot: Snapshot, may: BoolArray, wanted: set[int]) -> Iterator[_Broker]:
    """The `wanted` brokers with several volumes, by id, with their replicas in canonical order."""
    leading, following = snapshot.vectors("disk")
    held = snapshot.replica_directory
    rows, slots = (np.zeros(0, np.int64),) * 2 if held is None else np.nonzero(held >= 0)
    hosts = snapshot.replicas[rows, slots]
    order = np.argsort(hosts, kind="stable")
    starts = np.searchsorted(hosts[order], np.arange(snapshot.broker_count + 1))
    for row, broker in enumerate(snapshot.broker_ids.tolist()):
        directories = snapshot.directories.get(broker, ())
        first = volumes_of(directories)
        if broker not in wanted or len(set(first)) < 2:
            continue
        mine = order[starts[row] : starts[row + 1]]
        own, at = rows[mine], np.zeros(0, np.int64) if held is None else held[rows[mine], slots[mine]].astype(np.int64)
        kept = sorted(set(first))
        place = np.array([kept.index(each) for each in first], np.int64)
        weight = np.where(snapshot.leader[own] == row, leading[own], following[own])
        volumes = Volumes(
            np.array([directories[i].size for i in kept]), np.array([directories[i].used for i in kept]), place[at], weight,
            may[snapshot.partition_topic[own]] & (weight > 0.0),
        )  # fmt: skip
        yield _Broker(snapshot, broker, own, at, first, volumes)


def _planned(broker: _Broker, policy: Directories) -> BrokerDirectories:
    volumes, directories = broker.volumes, broker.snapshot.directories[broker.id]
    target = Target.of(volumes, policy.limit, policy.bound)
    found = level(volumes, target)
    kept = sorted(set(broker.first))
    moves = tuple(
        _move(broker, row, directories[kept[to]].path) for row, to in zip(found.rows.tolist(), found.to.tolist(), strict=True)
    )
    outcomes = tuple(
        VolumeOutcome(
            tuple(d.path for d, first in zip(directories, broker.first, strict=True) if first == kept[v]),
            float(volumes.size[v]), float(volumes.used[v]), float(found.use[v]), float(target.low[v]), float(target.high[v]),
            _why(volumes, target, found, v),
        )
        for v in range(len(kept))
    )  # fmt: skip
    return BrokerDirectories(broker.id, outcomes, moves, found.least, found.proven)


def _move(broker: _Broker, row: int, target: str) -> DirectoryMove:
    snapshot, partition = broker.snapshot, int(broker.rows[row])
    replicas = tuple(int(snapshot.broker_ids[b]) for b in snapshot.replicas[partition] if b >= 0)
    topic = snapshot.topics[snapshot.partition_topic[partition]]
    source = snapshot.directories[broker.id][broker.held[row]].path
    number = int(snapshot.partition_number[partition])
    return DirectoryMove(topic, number, broker.id, replicas, source, target, float(broker.volumes.weight[row]))


def _why(volumes: Volumes, target: Target, found: Levelled, volume: int) -> str:
    """Why a volume is outside its target range after the plan; empty where it is not."""
    use, near = found.use, CLOSE * float(volumes.size[volume])
    if float(target.off(use)[volume]) <= near:
        return ""
    over = float(use[volume]) > float(target.high[volume])
    if over and float(volumes.used.sum()) > float(target.hard.sum()):
        return ALL_FULL
    to = volumes.at.copy()
    to[found.rows] = found.to
    fixed = float(use[volume]) - float(volumes.weight[volumes.movable & (to == volume)].sum())
    if over and fixed > float(target.high[volume]):
        return f"{format_size(fixed)} there may not move: {FIXED}"
    if not over and not (volumes.movable & (to != volume)).any():
        return f"nothing elsewhere on the broker may move: {FIXED}"
    if found.proven:
        return "no choice of replicas comes nearer, since each is in one directory as a whole"
    return "no move and no exchange was found that comes nearer; that there is none is not proven"


def _brokers(ids: list[int]) -> str:
    named = ", ".join(map(str, ids[:10])) + (f" and {len(ids) - 10} more" if len(ids) > 10 else "")
    return f"broker{'s' if len(ids) > 1 else ''} {named}"
