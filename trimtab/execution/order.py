"""What is to be carried out: an approved plan as tasks, read from a plan file or taken from a plan in memory.

The tasks are the plan's proposals. What each is worth comes from its actions: how far they stand above a neutral score, for each byte
that they copy, so that what helps most for least comes first.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_model.content import STDIN, content_of
from cluster_model.errors import InputError, Problem
from cluster_model.kinds import MAKES, PLAN, other_kind
from optimizer.identity import Source, identity_of
from optimizer.plan import Batches, Change
from trimtab.execution.comparison import Loads, predicted_loads
from trimtab.execution.pacing import Headroom
from trimtab.execution.state import Partition, Task

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from optimizer.plan import Plan

NEUTRAL = 0.5
VERSION = 1


@dataclass(frozen=True)
class Order:
    """A plan as an execution sees it.

    Attributes
    ----------
    racks
        Whether a hard goal keeps replicas apart by rack, so that no step may bring them together.
    shared
        Whether storage is shared: a move copies nothing, and the partition is without a leader for a moment.
    headroom
        What is known of the network of brokers, for a throttle that paces itself.
    bytes_planned
        Bytes that the plan said it would copy; None where it could not say.
    before, predicted
        Loads of its active brokers when it was made, and as it said they would be; empty where it did not say.
    batch_pause
        Seconds from the end of one batch of tasks to the start of the next.
    edited
        Whether the file says something else than what its `plan_id` was made of.
    """

    plan_id: str
    cluster_id: str
    tasks: tuple[Task, ...]
    racks: bool = True
    shared: bool = False
    headroom: Headroom = field(default_factory=Headroom)
    bytes_planned: float | None = None
    before: Loads = field(default_factory=dict)
    predicted: Loads = field(default_factory=dict)
    batch_pause: float = 0.0
    edited: bool = False


def order_of(plan: Plan) -> Order:
    """The order of a plan in memory."""
    worth = _worth((a.score, a.bytes_to_move, [(c.topic, c.partition) for c in a.changes]) for a in plan.actions)
    racks = any(g.hard and g.kind == "rack_aware" for g in plan.goals)
    batches = Batches((), 0.0) if plan.batches is None else plan.batches
    tasks = in_batches(tasks_of(plan.proposals, worth), batches.of)
    planned = _bytes(plan.summary.bytes_to_move)
    before, predicted = predicted_loads(plan.brokers, after=False), predicted_loads(plan.brokers)
    return Order(
        plan.plan_id, plan.cluster_id, tasks, racks, plan.storage == "shared", bytes_planned=planned, before=before, predicted=predicted,
        batch_pause=batches.pause,
    )  # fmt: skip


def sized(order: Order, snapshot: Snapshot) -> Order:
    """The same with the sizes of partitions, and the head-room of brokers, in a snapshot."""
    order = replace(order, headroom=_headroom(snapshot))
    disk = snapshot.leader_load.get("disk")
    if disk is None or order.shared:
        return order
    tasks = tuple(replace(t, size=float(disk[snapshot.row_of_partition(*t.name)])) for t in order.tasks)
    return replace(order, tasks=tasks)


def _headroom(snapshot: Snapshot) -> Headroom:
    ids = [int(b) for b in snapshot.broker_ids]
    load: dict[int, float] = {}
    free: dict[int, float] = {}
    for resource in ("network_in", "network_out"):
        if resource not in snapshot.leader_load:
            continue
        values, capacity = snapshot.broker_load(resource), snapshot.capacity.get(resource)
        for row, broker in enumerate(ids):
            if resource == "network_in":
                load[broker] = float(values[row])
            if capacity is not None and capacity[row] > 0.0:  # not a number where it is not known
                free[broker] = min(free.get(broker, float("inf")), float(capacity[row] - values[row]))
    return Headroom(free, load)


def tasks_of(proposals: Iterable[Change], worth: dict[tuple[str, int], float] | None = None) -> tuple[Task, ...]:
    """One task a proposal; without `worth` all are worth the same."""
    return tuple(
        Task(
            Partition(c.topic, c.partition), c.replicas_before, c.replicas_after, c.leader_before, c.leader_after,
            value=(worth or {}).get((c.topic, c.partition), 0.0),
        )
        for c in proposals
    )  # fmt: skip


def in_batches(tasks: tuple[Task, ...], numbers: Sequence[int]) -> tuple[Task, ...]:
    """The tasks, each with the number of its batch; as they are where there are none."""
    return tuple(replace(t, batch=n) for t, n in zip(tasks, numbers, strict=True)) if numbers else tasks


def _worth(actions: Iterable[tuple[float, float, Sequence[tuple[str, int]]]]) -> dict[tuple[str, int], float]:
    """By partition, how much its actions improve per byte; those that copy nothing count as if they copied one."""
    gained: dict[tuple[str, int], float] = defaultdict(float)
    for score, size, names in actions:
        for name in names:
            gained[name] += (score - NEUTRAL) / max(size, 1.0)
    return gained


def read_order(path: Path) -> Order:
    """The order in a plan file that ``trimtab plan --format json`` wrote.

    Raises
    ------
    InputError
        It is no plan file, or its actions do not lead to its proposals. All problems with their places.
    """
    from optimizer.report.plan_file import unpacked

    try:
        content = unpacked(content_of(path), str(path))
        if not content.strip():
            where = " on stdin" if path == STDIN else ""
            raise InputError(str(path), [Problem("", f"expected a plan, found nothing{where}; `{MAKES[PLAN]}` makes one")])
        document = json.loads(content)
    except (OSError, ValueError) as error:
        raise InputError(str(path), [Problem("", f"expected a plan that `trimtab plan --format json` wrote: {error}")]) from error
    except RecursionError:
        raise InputError(str(path), [Problem("", f"nested too deep to be a plan; `{MAKES[PLAN]}` makes one")]) from None
    problems: list[Problem] = []
    if not isinstance(document, dict) or document.get("version") != VERSION or "proposals" not in document:
        if other := other_kind(document, PLAN):
            raise InputError(str(path), [Problem("", other)])
        wanted = "expected a plan, version 1, as `trimtab plan --format json` writes it"
        found = f"version {document.get('version')!r}" if isinstance(document, dict) else type(document).__name__
        raise InputError(str(path), [Problem("version", f"{wanted}, found {found}; another version needs another Trimtab")])
    proposals = [_change(f"proposals[{i}]", c, problems) for i, c in enumerate(_items(document, "proposals", problems))]
    actions = _items(document, "actions", problems)
    reached: dict[Partition, tuple[int, ...]] = {}
    steps: list[list[Task]] = []
    for i, action in enumerate(actions):
        action = action if isinstance(action, dict) else {}
        for key in ("score", "bytes_to_move"):
            if _bytes(action.get(key)) is None:
                problems.append(Problem(f"actions[{i}].{key}", f"expected a number, found {action.get(key)!r:.60}"))
        listed = enumerate(_items(action, "changes", problems, f"actions[{i}]."))
        step = [_change(f"actions[{i}].changes[{j}]", c, problems) for j, c in listed]
        steps.append([task for task in step if task is not None])
        reached |= {task.name: task.target for task in steps[-1]}
    for i, task in enumerate(proposals):
        if task is not None and actions and reached.get(task.name) != task.target:
            problems.append(
                Problem(f"proposals[{i}].replicas_after", f"the actions lead {task.name} elsewhere: the file was edited; plan again")
            )
    numbers, pause = _batches(document, len(proposals), problems)
    plan_id, snapshot = document.get("plan_id"), document.get("snapshot")
    if not isinstance(plan_id, str) or not plan_id:
        problems.append(Problem("plan_id", f"expected the id of the plan, found {plan_id!r}"))
    if not isinstance(snapshot, dict) or not isinstance(snapshot.get("cluster_id"), str):
        problems.append(Problem("snapshot.cluster_id", "expected the id of the cluster that the plan is for, found none"))
    if problems or not isinstance(snapshot, dict):
        raise InputError(str(path), problems)
    worth = _worth(
        (float(a["score"]), float(a["bytes_to_move"]), [(c["topic"], c["partition"]) for c in a.get("changes", ())]) for a in actions
    )
    net = [t for t in proposals if t is not None]
    tasks = in_batches(tuple(replace(t, value=worth.get(t.name, 0.0)) for t in net), numbers)
    goals = document.get("goals", ())
    racks = any(g.get("hard") and g.get("kind") == "rack_aware" for g in goals)
    summary = document.get("summary")
    planned = _bytes(summary.get("bytes_to_move")) if isinstance(summary, dict) else None
    shared = snapshot.get("storage") == "shared"
    before, predicted = _loads(document, "before"), _loads(document, "after")
    headroom = Headroom(load=_loads(document, "before", every=True).get("network_in", {}))
    source = Source(
        snapshot["cluster_id"], str(snapshot.get("storage")), str(snapshot.get("digest")), str(document.get("goals_digest")),
        document.get("options", {}), racks, numbers, pause,
    )  # fmt: skip
    edited = plan_id != identity_of(source, map(_as_changes, steps), _as_changes(net))
    return Order(str(plan_id), snapshot["cluster_id"], tasks, racks, shared, headroom, planned, before, predicted, pause, edited)


def _as_changes(tasks: Iterable[Task]) -> list[Change]:
    return [Change(t.name.topic, t.name.number, t.source, t.target, t.source_leader, t.leader) for t in tasks]


def _batches(document: dict[str, Any], proposals: int, problems: list[Problem]) -> tuple[list[int], float]:
    """The batch of each proposal, none where the plan has no batches, and the seconds between two."""
    found = document.get("batches")
    if found is None:
        return [], 0.0
    numbers = found.get("of") if isinstance(found, dict) else None
    if not isinstance(numbers, list) or len(numbers) != proposals or not all(_is_id(n) and n > 0 for n in numbers):
        problems.append(Problem("batches.of", f"expected the batch, from 1, of each of {proposals} proposals, found {numbers!r:.60}"))
        return [], 0.0
    pause = found.get("pause")
    if isinstance(pause, bool) or not isinstance(pause, int | float) or not 0 <= pause < float("inf"):
        problems.append(Problem("batches.pause", f"expected seconds, found {pause!r}"))
        return [], 0.0
    return numbers, float(pause)


def _bytes(found: object) -> float | None:
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def _loads(document: dict[str, Any], key: str, *, every: bool = False) -> dict[str, dict[int, float]]:
    """Loads of active brokers, or of `every` one, ``before`` or ``after`` the plan; what the file does not say is left out."""
    found: dict[str, dict[int, float]] = {}
    for broker in _dicts(document.get("brokers")):
        if (every or broker.get("state", "active") == "active") and _is_id(broker.get("id")):
            for resource, load in broker[key].items() if isinstance(broker.get(key), dict) else ():
                if isinstance(load, int | float):
                    found.setdefault(resource, {})[broker["id"]] = float(load)
    return found


def _dicts(found: object) -> list[dict[str, Any]]:
    return [d for d in found if isinstance(d, dict)] if isinstance(found, list) else []


def _items(document: dict[str, Any], key: str, problems: list[Problem], place: str = "") -> list[Any]:
    found = document.get(key, [])
    if isinstance(found, list):
        return found
    problems.append(Problem(f"{place}{key}", f"expected a list, found {type(found).__name__}"))
    return []


def _change(place: str, found: Any, problems: list[Problem]) -> Task | None:
    """One change of the file as a task; None where it is wrong, which is told."""
    before = len(problems)
    if not isinstance(found, dict):
        problems.append(Problem(place, f"expected a change of a partition, found {found!r:.60}"))
        return None
    topic, number = found.get("topic"), found.get("partition")
    if not isinstance(topic, str) or not topic:
        problems.append(Problem(f"{place}.topic", f"expected the name of a topic, found {topic!r}"))
    if not _is_id(number):
        problems.append(Problem(f"{place}.partition", f"expected the number of a partition, found {number!r}"))
    for key in ("replicas_before", "replicas_after"):
        listed = found.get(key)
        if not isinstance(listed, list) or not listed or not all(map(_is_id, listed)) or len(set(listed)) != len(listed):
            problems.append(Problem(f"{place}.{key}", f"expected broker ids, each once, found {listed!r}"))
    for key in ("leader_before", "leader_after"):
        if found.get(key) is not None and not _is_id(found[key]):
            problems.append(Problem(f"{place}.{key}", f"expected a broker id or null, found {found[key]!r}"))
    if len(problems) > before:
        return None
    return Task(
        Partition(str(topic), int(str(number))), tuple(found["replicas_before"]), tuple(found["replicas_after"]),
        found.get("leader_before"), found.get("leader_after"),
    )  # fmt: skip


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
