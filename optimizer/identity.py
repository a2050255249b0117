"""`plan_id`: a hash of all that decides what an execution does, the same for a plan in memory and for its file.

Called where a plan is made, and where a plan file is read, to see whether it was edited.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from optimizer.actions import ActionLog
from optimizer.changes import ChangeTable, Proposals
from optimizer.plan import Change, Plan

# Topics by name, and int64 columns: topic, partition number, leaders (-1 none), and for the lists before and after their lengths and the
# replicas of all of them.
Columns = tuple[list[str], list[np.ndarray]]


@dataclass(frozen=True)
class Source:
    """What a plan is for and was made from. `racks`: a hard goal keeps replicas apart by rack; `batches`: of each proposal, none where all
    is carried out at once."""

    cluster_id: str
    storage: str
    snapshot_digest: str
    goals_digest: str
    options: Mapping[str, object]
    racks: bool
    batches: Sequence[int] = ()
    pause: float = 0.0


def identified(plan: Plan) -> Plan:
    """The plan with the `plan_id` of what it says."""
    racks = any(g.hard and g.kind == "rack_aware" for g in plan.goals)
    source = Source(plan.cluster_id, plan.storage, plan.snapshot_digest, plan.goals_digest, plan.options, racks)
    if plan.batches is not None:
        source = replace(source, batches=plan.batches.of, pause=plan.batches.pause)
    log, net = plan.actions, plan.proposals
    if isinstance(log, ActionLog) and isinstance(net, Proposals):
        return replace(plan, plan_id=_hashed(source, log.sizes, (_of_table(log.changes), _of_table(net.table))))
    return replace(plan, plan_id=identity_of(source, [a.changes for a in log], net))


def identity_of(source: Source, actions: Iterable[Sequence[Change]], proposals: Sequence[Change]) -> str:
    """``sha256:`` and the hash of a plan with these changes, action by action and in sum."""
    actions = list(actions)
    steps = list(chain.from_iterable(actions))
    return _hashed(source, np.array([len(each) for each in actions], np.int64), (_of_changes(steps), _of_changes(proposals)))


def _hashed(source: Source, sizes: np.ndarray, parts: Iterable[Columns]) -> str:
    """`sizes` int64: how many changes each action has. Numbers of the options count with the nine digits that a plan file has."""
    head = json.loads(json.dumps(vars(source), default=dict), parse_float=_nine_digits, parse_int=_nine_digits)
    found = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    found.update(sizes.tobytes())
    for names, columns in parts:
        found.update(json.dumps(names).encode())
        for column in columns:
            found.update(np.ascontiguousarray(column, np.int64).tobytes())
    return f"sha256:{found.hexdigest()}"


def _nine_digits(number: str) -> str:
    return f"{float(number):.9g}"


def _of_table(table: ChangeTable) -> Columns:
    known, topic = np.unique(table.snapshot.partition_topic[table.partition], return_inverse=True)
    names = [table.snapshot.topics[t] for t in known.tolist()]
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.argsort(np.array(order, np.int64))
    lists = [column for each in (table.before, table.after) for column in ((each >= 0).sum(axis=1), each[each >= 0])]
    numbers = table.snapshot.partition_number[table.partition]
    return [names[i] for i in order], [rank[topic], numbers, table.leader_before, table.leader_after, *lists]


def _of_changes(changes: Sequence[Change]) -> Columns:
    names = sorted({c.topic for c in changes})
    rank = {name: i for i, name in enumerate(names)}
    columns: list[Iterable[int]] = [
        [rank[c.topic] for c in changes], [c.partition for c in changes],
        [-1 if c.leader_before is None else c.leader_before for c in changes],
        [-1 if c.leader_after is None else c.leader_after for c in changes],
    ]  # fmt: skip
    for lists in ([c.replicas_before for c in changes], [c.replicas_after for c in changes]):
        columns += [map(len, lists), chain.from_iterable(lists)]
    return names, [np.fromiter(column, np.int64) for column in columns]
