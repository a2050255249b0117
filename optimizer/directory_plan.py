"""Moves of replicas between the log directories of each broker, with what each volume holds before and after, and why it stays outside.

Called by `trimtab directories`. Pure: a snapshot and the policy in, a plan out. Moves between brokers are the search's; these follow them,
and change no load of a broker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from cluster_model.directories import volumes_of
from cluster_model.errors import ConfigurationError, Problem
from cluster_model.quantities import format_size
from cluster_model.snapshot import BoolArray, BrokerState, Snapshot
from goals.model import Constraints
from goals.policy_directories import Directories
from optimizer.directories import CLOSE, Levelled, Rows, Target, Volumes, level
from optimizer.options import RemovedDirectory
from optimizer.unknown import lacks
from optimizer.whatif import matching_topics, may_change, no_broker
from optimizer.why_words import counted

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
    """One volume: its log directories, bytes of it and in use before and after, the target range, and why it stays outside (or nothing).
    One that is `removed` is to hold no replica; its range is what is not a replica."""

    paths: tuple[str, ...]
    size: float
    before: float
    after: float
    low: float
    high: float
    why: str
    removed: bool = False


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


def plan_directories(
    snapshot: Snapshot, constraints: Constraints, policy: Directories, remove: Collection[RemovedDirectory] = ()
) -> DirectoryPlan:
    """The fewest bytes that bring every volume under the limit and into the target range, broker by broker. All replicas leave the
    directories to `remove` for the others of their broker, as far as the limit lets them.

    Raises
    ------
    ConfigurationError
        A directory to remove that is not there, that shares its volume with one that stays, or without which its broker has none.

    Notes
    -----
    Left alone are topics that the constraints exclude, and brokers that are not active or excluded. Excluded topics leave a directory that
    is removed; frozen ones, and those whose size is not known, never move. O(replicas log replicas).
    """
    states = dict(zip(snapshot.broker_ids.tolist(), snapshot.broker_states.tolist(), strict=True))
    out = [b for b in snapshot.directories if states[b] != BrokerState.ACTIVE or b in constraints.exclude_brokers]
    wanted = {b for b in snapshot.directories if b not in out}
    problems = [problem for each in dict.fromkeys(remove) if (problem := _not_removable(snapshot, wanted, each, remove))]
    if problems:
        raise ConfigurationError("trimtab directories", [Problem("--remove", problem) for problem in dict.fromkeys(problems)])
    frozen = matching_topics(snapshot.topics, constraints.freeze_topics)
    brokers = [_planned(each, policy) for each in _brokers_of(snapshot, may_change(snapshot.topics, constraints), frozen, wanted, remove)]
    told = [b for b in snapshot.broker_ids.tolist() if b not in {*out, *(each.broker for each in brokers)}]
    left = [f"{_brokers(told)}: one volume, or log directories that are not in the snapshot"] if told else []
    left += [f"{_brokers(out)}: not active, or excluded by the goals"] if out else []
    return DirectoryPlan(snapshot.cluster_id, snapshot.taken_at, policy, tuple(brokers), tuple(left))


def _not_removable(snapshot: Snapshot, wanted: set[int], one: RemovedDirectory, remove: Collection[RemovedDirectory]) -> str:
    """Why a directory cannot be taken out of use; empty where it can."""
    if one.broker not in snapshot.broker_ids:
        return no_broker(snapshot, one.broker)
    if one.broker not in wanted:
        why = "is not active, or excluded by the goals" if one.broker in snapshot.directories else "has none in the snapshot"
        return f"expected a broker with several log directories, found broker {one.broker}, which {why}"
    directories = snapshot.directories[one.broker]
    paths, first = [d.path for d in directories], volumes_of(directories)
    if one.path not in paths:
        return f"broker {one.broker} has the log directories {', '.join(paths)}; found {one.path!r}"
    stay = [i for i, path in enumerate(paths) if RemovedDirectory(one.broker, path) not in remove]
    if not stay:
        return f"broker {one.broker} has no other log directory; `trimtab plan --remove-broker {one.broker}` moves its replicas elsewhere"
    shared = [paths[i] for i in stay if first[i] == first[paths.index(one.path)]]
    return f"{one.path} of broker {one.broker} is on one volume with {', '.join(shared)}; name all directories of it" if shared else ""


@dataclass(frozen=True, eq=False)
class _Broker:
    """One broker: rows of its partitions and the slot that it has in each, the directory of each replica, and its volumes."""

    snapshot: Snapshot
    id: int
    rows: Rows
    held: Rows
    first: list[int]  # of each directory, the first one on its volume
    volumes: Volumes


def _brokers_of(
    snapshot: Snapshot, may: BoolArray, frozen: BoolArray, wanted: set[int], remove: Collection[RemovedDirectory]
) -> Iterator[_Broker]:
    """The `wanted` brokers with several volumes, by id, with their replicas in canonical order. Topics `may` move, or are `frozen`."""
    leading, following = snapshot.vectors("disk")
    unsized = lacks(snapshot, "disk")
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
        closed = tuple(v for v, i in enumerate(kept) if RemovedDirectory(broker, directories[i].path) in remove)
        topics = snapshot.partition_topic[own]
        movable = np.where(np.isin(place[at], closed), ~frozen[topics] & ~unsized[own], may[topics] & (weight > 0.0))
        volumes = Volumes(
            np.array([directories[i].size for i in kept]), np.array([directories[i].used for i in kept]), place[at], weight, movable, closed
        )
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
            float(volumes.size[v]), float(volumes.used[v]), max(float(found.use[v]), 0.0),
            max(float(target.low[v]), 0.0), max(float(target.high[v]), 0.0),
            _why_not_empty(broker, found, v) if v in volumes.closed else _why(volumes, target, found, v), v in volumes.closed,
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
    if over and float(volumes.used.sum() - volumes.fixed[list(volumes.closed)].sum()) > float(target.hard[volumes.open].sum()):
        return ALL_FULL
    to = volumes.at.copy()
    to[found.rows] = found.to
    fixed = float(use[volume]) - float(volumes.weight[volumes.movable & (to == volume)].sum())
    if over and fixed > float(target.high[volume]):
        return f"{format_size(fixed)} there may not move: {FIXED}"
    if not over and not (volumes.movable & (to != volume)).any():
        return f"nothing elsewhere on the broker may move: {FIXED}"
    if found.proven:
        return "a replica cannot be split, and no other choice gets closer"
    return "no move and no exchange was found that gets closer; that there is none is not proven"


def _why_not_empty(broker: _Broker, found: Levelled, volume: int) -> str:
    """What a volume that is taken out of use holds after the plan; empty where it holds no replica."""
    volumes, here = broker.volumes, broker.volumes.at == volume
    fixed, sized = here & ~volumes.movable, ~lacks(broker.snapshot, "disk")[broker.rows]
    frozen, unsized = int((fixed & sized).sum()), int((fixed & ~sized).sum())
    stay = here & volumes.movable
    stay[found.rows] = False
    parts = [f"{counted(frozen, 'replica')} of frozen topics (constraints.freeze_topics)"] if frozen else []
    if unsized:
        parts.append(f"{counted(unsized, 'replica')} whose size is not known (give leader_load.disk)")
    if stay.any():
        size = format_size(float(volumes.weight[stay].sum()))
        parts.append(f"{counted(int(stay.sum()), 'replica')} ({size}) for which no other volume was found to have room within the limit")
    unknown = int((broker.snapshot.replicas == broker.snapshot.row_of_broker[broker.id]).sum()) - len(broker.rows)
    if unknown:
        parts.append(f"perhaps some of {counted(unknown, 'replica')} whose directory is not known")
    return " and ".join(parts)


def _brokers(ids: list[int]) -> str:
    named = ", ".join(map(str, ids[:10])) + (f" and {len(ids) - 10} more" if len(ids) > 10 else "")
    return f"broker{'s' if len(ids) > 1 else ''} {named}"
