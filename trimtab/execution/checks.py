"""What has to be true before an execution starts: the right cluster, no other one, partitions as the plan found them.

Called by the engine and the commands. Pure; every refusal says what to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster_model.errors import ExternalError, InputError, Problem
from trimtab.execution.documents import Header, Settings
from trimtab.execution.order import Order
from trimtab.execution.state import Observed, Partition, Task

LISTED = 5


def admit(order: Order, seen: Observed, settings: Settings) -> None:
    """Refuse what must not start.

    Raises
    ------
    InputError
        The plan is for another cluster, or, with ``strict``, a partition is not as it was when the plan was made.
    ExternalError
        Other tools reassign partitions, and ``foreign`` is refuse.
    """
    if seen.cluster_id != order.cluster_id:
        message = f"expected a plan for cluster {seen.cluster_id}, found one for {order.cluster_id}; plan on this cluster"
        raise InputError(f"plan {order.plan_id}", [Problem("snapshot.cluster_id", message)])
    foreign = sorted(name for name, p in seen.partitions.items() if p.reassigning)
    if foreign and settings.foreign == "refuse":
        raise ExternalError(
            f"other tools reassign {len(foreign)} partitions ({listed(foreign)}); wait until they are done, or give --foreign wait"
        )
    drifted = [
        Problem(str(t.name), f"expected replicas {list(t.source)}, found {_replicas_of(t, seen)}; plan again")
        for t in order.tasks
        if not _as_planned(t, seen)
    ]
    if drifted and settings.strict:
        raise InputError(f"plan {order.plan_id}", drifted)


def unfinished(header: Header, *, working: bool) -> str:
    """Why a second execution is refused, and what to do."""
    if working:
        return (
            f"{header.instance} carries out plan {header.plan_id} on this cluster; one at a time. `trimtab status` shows it, "
            "`trimtab cancel` ends it"
        )
    return (
        f"plan {header.plan_id} was started and is not finished, and {header.instance}, which carried it out, is gone. "
        "`trimtab resume` goes on with it, `trimtab rollback` takes it back, `trimtab cancel` ends it"
    )


def _as_planned(task: Task, seen: Observed) -> bool:
    there = seen.partitions.get(task.name)
    return there is not None and (there.target in (task.source, task.target))


def _replicas_of(task: Task, seen: Observed) -> str:
    there = seen.partitions.get(task.name)
    return "no such partition" if there is None else str(list(there.target))


def listed(names: Sequence[Partition]) -> str:
    """Some names, and how many more."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(str, names[:LISTED])) + more
