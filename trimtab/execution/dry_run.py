"""A dry run of an execution: the engine's own turns on a cluster on paper, so that its steps are told before any is taken.

Called by `trimtab execute --dry-run`. The cluster is described once. From then on every step that the engine asks for is done at once, on
paper only, and written down: so limits, batches, order, throttles and refusals are those of the execution itself. What a real cluster does
meanwhile (slow copies, brokers that go, other tools) is not in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from metrics_reporter.reporter import Clock
from trimtab.execution.documents import Settings
from trimtab.execution.engine import Execution
from trimtab.execution.ledger import Documents, MemoryDocuments, MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.pacing import AUTO, first
from trimtab.execution.port import Answers, ClusterPort, Refusal, Resource
from trimtab.execution.progress import PartitionStanding
from trimtab.execution.state import Observed, Partition, SeenPartition, Task

TURN_MS = 1_000  # between two turns, as in a real execution
IDLE_MS = 60_000  # after a turn without a step
MOST_IDLE = 20  # such turns in a row, until what holds it back is told


@dataclass(frozen=True, slots=True)
class Throttled:
    """Settings of brokers and topics that are set, or brought back where `off`; None removes a key."""

    changes: Mapping[Resource, Mapping[str, str | None]]
    off: bool


@dataclass(frozen=True, slots=True)
class Moved:
    """Reassignments that are asked for in one turn: they start together."""

    tasks: tuple[Task, ...]

    @property
    def batch(self) -> int:
        """Of the plan's batches, 0 where it has none."""
        return max(t.batch for t in self.tasks)


@dataclass(frozen=True, slots=True)
class Elected:
    """Preferred leader elections that are asked for in one turn."""

    tasks: tuple[Task, ...]


Step = Throttled | Moved | Elected


@dataclass(frozen=True)
class DryRun:
    """What an execution would do, step by step, and what it would leave.

    Attributes
    ----------
    unchanged
        Partitions that would not be as planned at the end, with the reasons.
    left
        Partitions that still wait at the end of the steps.
    waits
        Why they wait, as the cluster is now; empty where none is left.
    """

    plan_id: str
    settings: Settings
    tasks: Mapping[Partition, Task]
    steps: Sequence[Step]
    unchanged: Sequence[PartitionStanding]
    left: Sequence[Partition]
    waits: str


def dry_run(order: Order, settings: Settings, port: ClusterPort, documents: Documents) -> DryRun:
    """The steps of an order on the cluster behind `port`, from which this only reads. `documents` are those of its ledger.

    Raises
    ------
    InputError, ExternalError
        As `Execution.begin`: the order would be refused.
    """
    if settings.throttle == AUTO:  # the rate that it starts with; later ones depend on how copies go
        settings = replace(settings, throttle=first(order.tasks, order.headroom).rate)
    paper = _Paper(port, order.tasks)
    kept = MemoryDocuments()
    kept.documents = dict(documents)
    clock = Clock(lambda: paper.now_ms / 1000, lambda: paper.now_ms)
    execution = Execution(paper, MemoryLedger(kept), clock, instance="a dry run")
    found, idle = execution.begin(order, replace(settings, windows=())), 0
    paper.tasks = execution.tasks
    while not found.over and idle < MOST_IDLE:
        steps, final = len(paper.steps), found.final
        found = execution.turn()
        works = len(paper.steps) > steps or found.final > final
        idle = 0 if works else idle + 1
        paper.now_ms += TURN_MS if works else IDLE_MS
        header = execution.header
        if header is not None and paper.now_ms < header.batch_from_ms:
            paper.now_ms = header.batch_from_ms
    left = [] if found.over else [p.name for p in found.partitions if not p.stage.final]
    return DryRun(order.plan_id, settings, execution.tasks, paper.steps, found.unchanged, left, found.waits if left else "")


@dataclass
class _Paper:
    """See `ClusterPort`: reads of a cluster and writes to paper."""

    port: ClusterPort
    order: Sequence[Task]
    steps: list[Step] = field(default_factory=list)
    tasks: Mapping[Partition, Task] = field(default_factory=dict)
    now_ms: int = 0

    def __post_init__(self) -> None:
        brokers = {b for t in self.order for b in (*t.source, *t.target)}
        self._seen = self.port.look([t.name for t in self.order], brokers)
        self.now_ms = self._seen.at_ms
        self._partitions = dict(self._seen.partitions)
        self._free = {b: known.free for b, known in self._seen.brokers.items()}
        self._configs: dict[Resource, dict[str, str]] = {}
        self._before: dict[Resource, dict[str, str]] = {}

    def look(self, names: Collection[Partition], brokers: Collection[int] = (), topics: Collection[str] | None = None) -> Observed:
        partitions = {n: p for n, p in self._partitions.items() if topics is None or n.topic in topics or p.reassigning}
        known = {b: replace(of, free=self._free[b] if b in brokers else None) for b, of in self._seen.brokers.items()}
        return replace(self._seen, at_ms=self.now_ms, brokers=known, partitions=partitions, copied={})

    def sizes(self, names: Collection[Partition]) -> dict[Partition, float]:
        return self.port.sizes(names)

    def reassign(self, targets: Mapping[Partition, tuple[int, ...] | None]) -> Answers:
        moved = []
        for name, target in targets.items():
            if target is not None:
                self._place(name, target)
                moved.append(self.tasks[name])
        if moved:
            self.steps.append(Moved(tuple(moved)))
        return dict.fromkeys(targets)

    def _place(self, name: Partition, target: tuple[int, ...]) -> None:
        there, size = self._partitions[name], self.tasks[name].size
        added = [b for b in target if b not in there.replicas]
        for broker, change in [*((b, -size) for b in added), *((b, size) for b in there.replicas if b not in target)]:
            free = self._free.get(broker)
            if free is not None:
                self._free[broker] = free + change
        in_sync = tuple(b for b in target if b in added or b in there.isr)
        leader = there.leader if there.leader in target else next(iter(in_sync), None)
        self._partitions[name] = SeenPartition(target, in_sync, leader)

    def elect(self, names: Sequence[Partition]) -> Answers:
        for name in names:
            there = self._partitions[name]
            self._partitions[name] = replace(there, leader=there.replicas[0])
        self.steps.append(Elected(tuple(self.tasks[name] for name in names)))
        return dict.fromkeys(names)

    def configs(self, resources: Collection[Resource], keys: Collection[str]) -> dict[Resource, dict[str, str]]:
        unknown = [r for r in resources if r not in self._configs]
        if unknown:
            self._before |= {r: dict(of) for r, of in self.port.configs(unknown, keys).items()}
            self._configs |= {r: dict(self._before[r]) for r in unknown if r in self._before}
        return {r: {k: v for k, v in self._configs[r].items() if k in keys} for r in resources if r in self._configs}

    def setting(self, broker: int, key: str) -> str | None:
        return self.port.setting(broker, key)

    def set_configs(self, changes: Mapping[Resource, Mapping[str, str | None]]) -> dict[Resource, Refusal | None]:
        off = all(v == self._before.get(r, {}).get(k) for r, of in changes.items() for k, v in of.items())
        for resource, values in changes.items():
            of = self._configs.setdefault(resource, {})
            of.update({k: v for k, v in values.items() if v is not None})
            for key in [k for k, v in values.items() if v is None]:
                of.pop(key, None)
        self.steps.append(Throttled({r: dict(of) for r, of in changes.items()}, off))
        return dict.fromkeys(changes)

    def close(self) -> None:
        """The port is whose it was."""
