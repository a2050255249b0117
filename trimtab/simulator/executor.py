"""Carrying out an approved plan on a simulated cluster; what stands behind `trimtab.executor.Executor` there.

Works in batches: so many replicas at a time into each broker, copied within the throttle, then preferred leader election
where the plan wants another leader. It leaves no throttle behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.plan import Change
from trimtab.executor import Failure, Progress
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.spec import ErrorCode, Refusal, TopicPartition

ATTEMPTS = 5


@dataclass(slots=True)
class _Step:
    change: Change
    name: TopicPartition
    bytes: float
    attempts: int = 0


class SimulatedExecutor:
    """An `Executor` on a simulated cluster; whoever owns the cluster lets time pass between polls.

    Parameters
    ----------
    throttle
        Bytes/s that moved replicas may copy into, and out of, each broker.
    concurrency
        Replicas being copied into one broker at a time.
    """

    def __init__(self, cluster: SimulatedCluster, *, throttle: float, concurrency: int = 10) -> None:
        self._cluster, self._throttle, self._concurrency = cluster, throttle, concurrency
        self._waiting: list[_Step] = []
        self._moving: list[_Step] = []
        self._electing: list[_Step] = []
        self._failed: list[Failure] = []
        self._done = 0
        self._copied = 0.0
        self._total = 0.0
        self._plan_id: str | None = None

    def submit(self, plan_id: str, proposals: Sequence[Change]) -> None:
        if self._waiting or self._moving or self._electing:
            raise ValueError(f"plan {self._plan_id} is being carried out; one plan at a time")
        self._plan_id = plan_id
        for change in proposals:
            name = TopicPartition(change.topic, change.partition)
            self._waiting.append(_Step(change, name, self._cluster.size(name) * len(change.added)))
        self._failed, self._done, self._copied = [], 0, 0.0
        self._total = sum(step.bytes for step in self._waiting)
        self._cluster.throttle = self._throttle

    def poll(self) -> Progress:
        self._finish_moves()
        self._begin_moves()
        self._elect()
        progress = self._progress()
        if progress.finished:
            self._cluster.throttle = None
        return progress

    def cancel(self) -> Progress:
        moving = {step.name: None for step in self._moving}
        refused = {n: r for n, r in self._cluster.alter_partition_reassignments(moving).items() if r is not None}
        for step in (*self._moving, *self._waiting):
            self._fail(step, refused[step.name].message if step.name in refused else "cancelled")
        self._waiting, self._moving = [], []
        self._elect()
        for step in self._electing:
            self._fail(step, "cancelled before its leader was elected")
        self._electing = []
        self._cluster.throttle = None
        return self._progress()

    def release(self) -> Progress:
        """See `Executor.release`; what is being copied goes on, within the throttle, which stays for as long."""
        for step in (*self._moving, *self._waiting, *self._electing):
            self._fail(step, "another instance decides now")
        self._waiting, self._moving, self._electing = [], [], []
        return self._progress()

    def _finish_moves(self) -> None:
        in_progress = self._cluster.list_partition_reassignments()
        still = []
        for step in self._moving:
            if step.name in in_progress:
                still.append(step)
            elif not self._cluster.has(step.name):
                self._fail(step, "the partition was deleted")
            elif self._cluster.replicas(step.name) != step.change.replicas_after:
                self._fail(
                    step,
                    f"replicas are {list(self._cluster.replicas(step.name))}: somebody else changed them",
                )
            else:
                self._copied += step.bytes
                self._electing.append(step)
        self._moving = still

    def _begin_moves(self) -> None:
        """Submit what fits beside what is moving, in the order of the plan."""
        busy = Counter(broker for step in self._moving for broker in step.change.added)
        chosen, later = [], []
        for step in self._waiting:
            if all(busy[broker] < self._concurrency for broker in step.change.added):
                busy.update(step.change.added)
                chosen.append(step)
            else:
                later.append(step)
        answers = self._cluster.alter_partition_reassignments(
            {step.name: step.change.replicas_after for step in chosen if self._differs(step)}
        )
        self._waiting = later
        for step in chosen:
            refusal = answers.get(step.name)
            if refusal is None:
                self._moving.append(step)
            else:
                self._again(step, refusal, self._waiting)

    def _differs(self, step: _Step) -> bool:
        return not self._cluster.has(step.name) or self._cluster.replicas(step.name) != step.change.replicas_after

    def _elect(self) -> None:
        """Preferred leader election where the plan wants the first replica to lead."""
        wanted = []
        for step in self._electing:
            change = step.change
            if change.leader_after == change.replicas_after[0] != self._cluster.leader(step.name):
                wanted.append(step)
            else:
                self._done += 1
        self._electing = []
        answers = self._cluster.elect_preferred_leaders([step.name for step in wanted])
        for step in wanted:
            refusal = answers[step.name]
            if refusal is None or refusal.code is ErrorCode.ELECTION_NOT_NEEDED:
                self._done += 1
            else:
                self._again(step, refusal, self._electing)

    def _again(self, step: _Step, refusal: Refusal, queue: list[_Step]) -> None:
        """Try once more later where that can help, else give this partition up."""
        step.attempts += 1
        passing = refusal.code.retriable or refusal.code is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        if passing and step.attempts < ATTEMPTS:
            queue.append(step)
        else:
            self._fail(step, f"{refusal.code}: {refusal.message}")

    def _fail(self, step: _Step, reason: str) -> None:
        self._failed.append(Failure(step.name.topic, step.name.partition, reason))
        self._total -= step.bytes

    def _progress(self) -> Progress:
        found = self._cluster.list_partition_reassignments()
        # What producers add meanwhile is copied too; it is not part of what there was to copy.
        partly = sum(min(found[s.name].copied, s.bytes) for s in self._moving if s.name in found)
        copied = min(self._copied + partly, self._total)
        moving = len(self._moving) + len(self._electing)
        return Progress(len(self._waiting), moving, self._done, tuple(self._failed), copied, self._total)
