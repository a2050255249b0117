"""How an execution stands, as one value: counts, bytes, pace, what is left to copy, and why it waits.

Made by the engine after every turn; shown by the commands, the service and the page.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from trimtab.execution.state import Mark, Partition, Stage, Task
from trimtab.execution.throttle import Setting

if TYPE_CHECKING:
    from trimtab.execution.documents import Header

WINDOW_MS = 60_000  # over which a pace is measured


@dataclass(frozen=True, slots=True)
class PartitionStanding:
    """One partition: `copied` of `size` bytes, over all replicas that it gets; `rate` is bytes/s, None where not known."""

    name: Partition
    stage: Stage
    reason: str
    target: tuple[int, ...]
    copied: float
    size: float
    rate: float | None = None

    @property
    def eta_s(self) -> float | None:
        """Seconds left; None where that is not known."""
        return (self.size - self.copied) / self.rate if self.rate and self.stage.begun else None


@dataclass(frozen=True, slots=True)
class Report:
    """What was planned, and what came of it. None where it is not known, or not yet."""

    bytes_planned: float | None
    bytes_made: float | None
    seconds_planned: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Standing:
    """An execution as a whole. Bytes are those that moves copy; `rate` is bytes/s and `eta_s` seconds, None where not known yet."""

    plan_id: str
    state: str
    direction: str
    why: str  # it goes back
    instance: str
    paused: str
    counts: Mapping[Stage, int]
    bytes_copied: float
    bytes_total: float
    rate: float | None
    eta_s: float | None
    waits: str
    throttle: int | None  # bytes/s that hold now
    throttle_why: str  # where it paces itself
    throttles_left: int
    gaps: int  # partitions that a step left without a leader for a moment
    report: Report
    partitions: Sequence[PartitionStanding]
    batch: int = 0  # that is at work, or waits to start; 0: the plan has none
    batches: int = 0

    @property
    def over(self) -> bool:
        return self.state != "running"

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def final(self) -> int:
        return sum(n for stage, n in self.counts.items() if stage.final)

    @property
    def moving(self) -> tuple[PartitionStanding, ...]:
        return tuple(p for p in self.partitions if p.stage.begun)

    @property
    def unchanged(self) -> tuple[PartitionStanding, ...]:
        """What was not brought where it was to go, with the reasons."""
        if self.direction == "rollback":  # what was never touched is as before
            return tuple(p for p in self.partitions if p.stage is Stage.FAILED)
        return tuple(p for p in self.partitions if p.stage in (Stage.SKIPPED, Stage.FAILED, Stage.BACK))


@dataclass(eq=False)
class Pace:
    """Bytes copied over the last minute; a dozen or so notes are kept."""

    _notes: deque[tuple[int, float]] = field(default_factory=deque)

    def note(self, at_ms: int, copied: float) -> None:
        self._notes.append((at_ms, copied))
        while len(self._notes) > 2 and at_ms - self._notes[1][0] >= WINDOW_MS:
            self._notes.popleft()

    @property
    def rate(self) -> float | None:
        """Bytes/s; None before two looks."""
        if len(self._notes) < 2:
            return None
        (since, before), (until, now) = self._notes[0], self._notes[-1]
        return max(now - before, 0.0) / (until - since) * 1000 if until > since else None


class Paces:
    """The pace of an execution, and of each partition that is being copied."""

    def __init__(self) -> None:
        self.all = Pace()
        self._each: dict[Partition, Pace] = {}

    def note(self, at_ms: int, found: Standing) -> None:
        self.all.note(at_ms, found.bytes_copied)
        moving = {p.name: p.copied for p in found.moving}
        self._each = {name: self._each.get(name, Pace()) for name in moving}
        for name, copied in moving.items():
            self._each[name].note(at_ms, copied)

    def of(self, name: Partition) -> float | None:
        known = self._each.get(name)
        return None if known is None else known.rate


def standing(
    header: Header, tasks: Mapping[Partition, Task], marks: Mapping[Partition, Mark], copied: Mapping[Partition, float], paces: Paces,
    waits: str, throttles: Sequence[Setting],
) -> Standing:  # fmt: skip
    """How it stands by what is written down and what adding replicas have."""
    from trimtab.execution.documents import rate_of

    counts = dict.fromkeys(Stage, 0)
    partitions = []
    have = total = 0.0
    gaps = sum(task.gap and marks[name].touched for name, task in tasks.items())
    for name in sorted(tasks):
        task, mark = tasks[name], marks[name]
        counts[mark.stage] += 1
        lost = mark.stage in (Stage.SKIPPED, Stage.FAILED) or (mark.stage is Stage.BACK and header.direction != "rollback")
        size = 0.0 if lost else task.to_copy
        done = size if mark.stage in (Stage.PLACED, Stage.DONE, Stage.BACK) else min(copied.get(name, 0.0), size)
        partitions.append(PartitionStanding(name, mark.stage, mark.reason, task.target, done, task.to_copy, paces.of(name)))
        have, total = have + done, total + size
    took = None if header.ended_ms is None else (header.ended_ms - header.started_ms) / 1000
    rate = paces.all.rate
    eta = None if not rate or header.state != "running" else (total - have) / rate
    return Standing(
        header.plan_id, header.state, header.direction, header.why, header.instance, header.paused, counts, have, total, rate, eta,
        waits, rate_of(header), "" if header.pace is None else header.pace.why, len(throttles), gaps,
        Report(header.bytes_planned, header.bytes_made, header.seconds_planned, took), partitions, header.batch,
        max((t.batch for t in tasks.values()), default=0),
    )  # fmt: skip


def document(found: Standing, *, working: bool) -> dict[str, Any]:
    """The same as the commands and the service write it; `working` says whether an instance carries it out now."""
    return {
        "version": 1, "plan_id": found.plan_id, "state": found.state, "direction": found.direction, "instance": found.instance,
        "at_work": working, "paused_by": found.paused or None, "waits": found.waits or None,
        "partitions": {str(stage): count for stage, count in found.counts.items()},
        "bytes_copied": round(found.bytes_copied), "bytes_total": round(found.bytes_total), "bytes_per_second": found.rate,
        "seconds_left": found.eta_s, "throttle": found.throttle, "throttle_reason": found.throttle_why or None,
        "throttles_left": found.throttles_left, "leader_gaps": found.gaps, "report": asdict(found.report),
        "batch": found.batch or None, "batches": found.batches or None,
        "details": [
            {
                "topic": p.name.topic, "partition": p.name.number, "stage": str(p.stage), "reason": p.reason or None,
                "replicas": list(p.target), "bytes_copied": round(p.copied), "bytes_total": round(p.size), "bytes_per_second": p.rate,
                "seconds_left": p.eta_s,
            }
            for p in found.partitions
        ],
    }  # fmt: skip
