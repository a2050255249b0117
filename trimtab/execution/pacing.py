"""`--throttle auto`: which rate an execution copies at, chosen from head-room and changed by what is seen while it runs.

Pure; called by the engine, which writes the rate and its reason down. The rate falls by half as soon as a replica that is not being moved
falls behind, and rises by a quarter while none does and copies use what they may: it finds what the cluster bears from below.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from cluster_model.quantities import format_size
from trimtab.execution.state import Mark, Partition, Stage, Task

AUTO = -1  # in the place of a rate
LEAST, FIRST = 1_000_000, 10_000_000  # bytes/s: never below, and where nothing is known
SHARE = 0.8  # of the head-room
EVERY_MS = 15_000  # between two changes
USED = 0.7  # of the rate: below, another limit holds the copies
UP, DOWN = 1.25, 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """Bytes/s into, and out of, each broker, the most it may become (None: not known), and why it is this."""

    rate: int
    most: int | None
    why: str


@dataclass(frozen=True)
class Headroom:
    """What is known of the network of brokers before anything is moved, in bytes/s.

    Attributes
    ----------
    free
        Capacity less load, of whichever direction has less; only brokers whose capacity is known.
    load
        What each takes in.
    """

    free: Mapping[int, float] = field(default_factory=dict)
    load: Mapping[int, float] = field(default_factory=dict)


def first(tasks: Collection[Task], known: Headroom) -> Pace:
    """Where to start."""
    involved = sorted({b for t in tasks if t.adding for b in (*t.source, *t.adding)})
    if involved and all(b in known.free for b in involved):
        least = min(involved, key=lambda b: (known.free[b], b))
        rate = max(round(SHARE * known.free[least]), LEAST)
        free = max(known.free[least], 0.0)
        why = f"broker {least} has the least head-room, {format_size(free)}/s of its network; "
        share = f"{SHARE:.0%} of that"
        return Pace(rate, rate, why + (share if rate > LEAST else f"{share} is below the least rate, {format_size(LEAST)}/s"))
    loads = [known.load[b] for b in involved if b in known.load]
    if loads:
        rate = max(round(max(loads) / 2), FIRST)
        half = "half of what the busiest broker takes in" if rate > FIRST else "nothing busy takes part"
        return Pace(rate, None, f"no capacity of the network is known, so it starts low: {half}")
    return Pace(FIRST, None, "neither loads nor capacities are known, so it starts low")


def then(now: Pace, behind: Collection[Partition], used: float) -> Pace:
    """What follows after `EVERY_MS`.

    Parameters
    ----------
    behind
        Partitions with a replica out of sync that was in sync before the execution and is not being added.
    used
        Bytes/s that the busiest broker took in.
    """
    if behind:
        rate = max(round(now.rate * DOWN), LEAST)
        more = f" and {len(behind) - 1} more" if len(behind) > 1 else ""
        least = "" if rate < now.rate else ", and it is the least already"
        return Pace(rate, now.most, f"lowered by half: {min(behind)}{more} fell behind{least}")
    if used < USED * now.rate:
        return now
    rate = round(now.rate * UP) if now.most is None else min(round(now.rate * UP), now.most)
    if rate <= now.rate:
        return now
    return Pace(rate, now.most, f"raised: nothing fell behind, and copies took {format_size(used)}/s of the {format_size(now.rate)}/s")


@dataclass(eq=False)
class Meter:
    """Bytes/s that the busiest broker takes in of an execution's copies, between two readings."""

    _at_ms: int | None = None
    _before: Mapping[int, float] = field(default_factory=dict)

    @property
    def begun(self) -> bool:
        return self._at_ms is not None

    def due(self, now_ms: int) -> bool:
        return self._at_ms is None or now_ms - self._at_ms >= EVERY_MS

    def read(self, now_ms: int, into: Mapping[int, float]) -> float:
        """`into` is what each broker has taken in since the execution started."""
        before, since = self._before, self._at_ms
        self._before, self._at_ms = into, now_ms
        if since is None or now_ms <= since:
            return 0.0
        return max((size - before.get(b, 0.0) for b, size in into.items()), default=0.0) / (now_ms - since) * 1000


def taken_in(tasks: Mapping[Partition, Task], marks: Mapping[Partition, Mark], copied: Mapping[Partition, float]) -> dict[int, float]:
    """Bytes that each broker has of what it is to get."""
    found: dict[int, float] = {}
    for name, task in tasks.items():
        for broker in task.adding:
            if marks[name].stage in (Stage.PLACED, Stage.DONE):
                found[broker] = found.get(broker, 0.0) + task.size
            elif marks[name].stage.begun:
                found[broker] = found.get(broker, 0.0) + min(copied.get(name, 0.0) / len(task.adding), task.size)
    return found
