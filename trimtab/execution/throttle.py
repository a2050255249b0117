"""Replication throttles of an execution: what to set for exactly the replicas that move, and how it was before.

Pure; the engine writes down what is found before anything is set, so that any instance can restore it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trimtab.execution.port import Configs, Resource
from trimtab.execution.state import Task

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
RATES, LISTS = (LEADER_RATE, FOLLOWER_RATE), (LEADER_REPLICAS, FOLLOWER_REPLICAS)
KEYS = (*RATES, *LISTS)
EVERY = "*"


@dataclass(frozen=True, slots=True)
class Setting:
    """One key that an execution sets: the value before (None: there was none), and its own."""

    resource: Resource
    key: str
    before: str | None
    own: str


def resources(tasks: Iterable[Task]) -> list[Resource]:
    """What throttles for these tasks are set on, in a fixed order."""
    moves = [t for t in tasks if t.adding]
    brokers = sorted({b for t in moves for b in (*t.source, *t.adding)})
    topics = sorted({t.name.topic for t in moves})
    return [*(Resource("broker", str(b)) for b in brokers), *(Resource("topic", t) for t in topics)]


def settings(tasks: Sequence[Task], rate: int, found: Configs) -> list[Setting]:
    """What to set so that these tasks copy at most `rate` bytes/s into, and out of, each broker.

    Only the replicas that are read from or made are named. A list that names every replica already stays as it is.
    """
    lists: dict[tuple[str, str], list[str]] = defaultdict(list)
    for task in tasks:
        if task.adding:
            number = task.name.number
            lists[task.name.topic, LEADER_REPLICAS] += [f"{number}:{b}" for b in task.source]
            lists[task.name.topic, FOLLOWER_REPLICAS] += [f"{number}:{b}" for b in task.adding]
    made = []
    for resource in resources(tasks):
        before = found.get(resource, {})
        for key in RATES if resource.kind == "broker" else LISTS:
            if resource.kind == "broker":
                own = str(rate)
            else:
                had = before.get(key, "")
                if had == EVERY:
                    continue
                own = ",".join(dict.fromkeys([*filter(None, had.split(",")), *lists[resource.name, key]]))
            made.append(Setting(resource, key, before.get(key), own))
    return made


def joined(written: Setting | None, new: Setting) -> Setting:
    """`new` with all that was ever set under this key, so that whatever of it stands is known for ours. Of rates the last one holds."""
    if written is None or written.own == new.own:
        return new
    own = ",".join(dict.fromkeys([*(x for x in written.own.split(",") if x != new.own), *new.own.split(",")]))
    return Setting(new.resource, new.key, new.before, own)


def value(setting: Setting) -> str:
    """What is to stand under the key."""
    return setting.own.rpartition(",")[2] if setting.key in RATES else setting.own


def to_set(settings: Iterable[Setting]) -> dict[Resource, dict[str, str | None]]:
    changes: dict[Resource, dict[str, str | None]] = defaultdict(dict)
    for setting in settings:
        changes[setting.resource][setting.key] = value(setting)
    return dict(changes)


def to_restore(settings: Iterable[Setting], found: Configs) -> dict[Resource, dict[str, str | None]]:
    """What brings the values of before back. What another tool changed meanwhile stays, less the replicas that are ours."""
    changes: dict[Resource, dict[str, str | None]] = defaultdict(dict)
    for setting in settings:
        now = found.get(setting.resource, {}).get(setting.key)
        if now is None or now == setting.before:
            continue
        if now == setting.own or (setting.key in RATES and now in setting.own.split(",")):
            changes[setting.resource][setting.key] = setting.before
        elif setting.key in LISTS and now != EVERY:
            ours = set(setting.own.split(",")) - set((setting.before or "").split(","))
            left = ",".join(r for r in now.split(",") if r not in ours)
            if left != now:
                changes[setting.resource][setting.key] = left or None
    return dict(changes)


def seconds_at(tasks: Sequence[Task], rate: float | None) -> float | None:
    """Seconds that these tasks take at least at `rate` bytes/s; None without a throttle."""
    return None if not rate else 3600 * max(hours(tasks, rate).values(), default=0.0)


def hours(tasks: Iterable[Task], rate: float) -> Mapping[int, float]:
    """Hours that each broker needs for what it receives or sends, whichever is more, at `rate` bytes/s; a first leader sends."""
    into: dict[int, float] = defaultdict(float)
    out: dict[int, float] = defaultdict(float)
    for task in tasks:
        sender = task.source_leader if task.source_leader is not None else task.source[0]
        for broker in task.adding:
            into[broker] += task.size
            out[sender] += task.size
    return {b: max(into[b], out[b]) / rate / 3600 for b in sorted({*into, *out})}
