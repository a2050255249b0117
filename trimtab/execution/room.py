"""What limits leave for another step: copies into and out of brokers, partitions in progress, bytes on disks.

Used by the transition planner. Pure; counts every reassignment in progress, also those of other tools.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from cluster_model.quantities import format_size
from trimtab.execution.state import Limits, Observed, Task


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a step does not begin: for now, or (`final`) ever; `room` says that it lacks bytes on a disk."""

    text: str
    final: bool = False
    room: bool = False


def missing_of(task: Task, seen: Observed) -> tuple[int, ...]:
    """Brokers to which a step would copy, by what is there."""
    return tuple(b for b in task.target if b not in seen.partitions[task.name].replicas)


class Room:
    """What limits leave, counting every reassignment in progress, also those of other tools, and the partitions of which old replicas
    still stand `beside` new ones."""

    def __init__(self, moving: Sequence[Task], seen: Observed, limits: Limits, *, beside: int = 0) -> None:
        self._seen, self._limits = seen, limits
        self._into: Counter[int] = Counter()
        self._out: Counter[int] = Counter()
        self._coming: dict[int, float] = defaultdict(float)
        self.count = beside
        for there in seen.partitions.values():
            if there.reassigning:
                self.count += 1
                self._into.update(there.adding)
                if there.leader is not None:
                    self._out[there.leader] += len(there.adding)
        for task in moving:
            adding = seen.partitions[task.name].adding
            for broker in adding:
                self._coming[broker] += max(task.size - seen.copied.get(task.name, 0.0) / len(adding), 0.0)

    def free(self, broker: int) -> float:
        """Bytes that may still be copied there; no end where not known."""
        known = self._seen.brokers.get(broker)
        if known is None or known.free is None:
            return float("inf")
        return max(known.free - self._limits.reserve - self._coming[broker], 0.0)

    @property
    def full(self) -> Reason | None:
        """Why nothing more may be in progress in the whole cluster; None where it may."""
        if self.count < self._limits.cluster:
            return None
        return Reason(f"waits: {self.count} partitions are in progress, the limit is {self._limits.cluster}")

    def refuses(self, task: Task) -> Reason | None:
        """Which limit a step would exceed on one of its brokers."""
        limits, missing = self._limits, missing_of(task, self._seen)
        leader = self._seen.partitions[task.name].leader
        for broker in missing:
            if self._into[broker] >= limits.into:
                return Reason(f"waits: {self._into[broker]} replicas are being copied into broker {broker}, the limit is {limits.into}")
            if task.size > self.free(broker):
                return Reason(
                    f"no room on broker {broker}: {format_size(task.size)} to copy, {format_size(self.free(broker))} free beyond the "
                    f"reserve of {format_size(limits.reserve)}", room=True,
                )  # fmt: skip
        # A partition with more new replicas than the limit is copied alone.
        if leader is not None and missing and self._out[leader] and self._out[leader] + len(missing) > limits.out_of:
            return Reason(f"waits: {self._out[leader]} replicas are being copied from broker {leader}, the limit is {limits.out_of}")
        return None

    def take(self, task: Task) -> None:
        missing, leader = missing_of(task, self._seen), self._seen.partitions[task.name].leader
        self.count += 1
        for broker in missing:
            self._into[broker] += 1
            self._coming[broker] += task.size
        if leader is not None:
            self._out[leader] += len(missing)
