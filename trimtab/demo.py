"""The whole loop on a simulated cluster: reporters, internal topic, model, plan, execution, and what came of
it.

Called by the command `demo`, which shows it. Virtual time; the only I/O is the topic's file. The parts are
the ones that work on a real cluster, but for the cluster itself.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_model.errors import ExternalError
from cluster_model.model import ClusterModel
from cluster_model.windows import Horizon
from metrics_reporter.consumer import SampleConsumer
from metrics_reporter.topic import EmbeddedTopic, TopicError
from optimizer.options import PlanOptions
from trimtab.compiling import is_large
from trimtab.execution.order import order_of
from trimtab.executor import Executor, Progress
from trimtab.simulator.collector import SimulatedReporter
from trimtab.simulator.executor import SimulatedExecutor
from trimtab.simulator.scenario import growing_cluster
from trimtab.simulator.spec import MB
from trimtab.warmup import announce

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from goals.model import GoalSet
    from optimizer.plan import Plan
    from trimtab.simulator.cluster import SimulatedCluster

TOPIC_FILE = "trimtab_metrics.db"
REPORT_INTERVAL_S = 30.0
HORIZON_S = 240.0  # the model's, and how long is measured before planning and after the execution
THROTTLE = 60 * MB
STEP_S = 5.0
GIVE_UP_AFTER_S = 86_400.0
RETENTION_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class DemoOptions:
    seed: int = 0
    brokers: int = 12
    partitions: int = 900


@dataclass(frozen=True, slots=True)
class Measured:
    """What went through the internal topic so far."""

    records: int
    samples: int
    decode_errors: int


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far brokers ended from where the plan said, as a share of the average broker's load."""

    resource: str
    mean: float
    largest: float
    broker: int


@dataclass(eq=False)
class Demo:
    """One run, stage by stage; each stage may be looked at before the next.

    Parameters
    ----------
    directory
        Where the internal topic's file goes.
    """

    options: DemoOptions
    directory: Path
    cluster: SimulatedCluster = field(init=False)
    model: ClusterModel = field(init=False)
    _offset: int = 0  # of the metadata log

    def __post_init__(self) -> None:
        options = self.options
        self.cluster = growing_cluster(options.seed, brokers=options.brokers, partitions=options.partitions)
        window_ms = round(REPORT_INTERVAL_S * 1000)
        self.model = ClusterModel(self.cluster.cluster_id, long=Horizon(window_ms, round(HORIZON_S / REPORT_INTERVAL_S)))
        try:
            self._topic = EmbeddedTopic(self.directory / TOPIC_FILE, retention_ms=RETENTION_MS)
            # A kept file may hold the records of an earlier run; they are of another cluster.
            self._consumer = SampleConsumer(self._topic, self._topic.end_offsets())
        except TopicError as e:
            raise ExternalError(str(e)) from e
        self._reporters = [SimulatedReporter(self.cluster, b, self._topic) for b in self.cluster.broker_ids]
        self._report()

    def close(self) -> None:
        """Let go of the topic's file."""
        self._topic.close()

    @property
    def measured(self) -> Measured:
        return Measured(self._consumer.records, self.model.counts.values, self._consumer.decode_errors)

    def measure(self, seconds: float = HORIZON_S) -> Snapshot:
        """Let reporters work for a while; the cluster as the model then sees it."""
        passed = 0.0
        while passed < seconds:
            self.cluster.step(REPORT_INTERVAL_S)
            passed += REPORT_INTERVAL_S
            self._report()
        return self.model.snapshot(self.cluster.now_ms)

    def plan(self, snapshot: Snapshot, goals: GoalSet) -> Plan:
        from optimizer.planner import plan

        if is_large(snapshot):
            announce()
        return plan(snapshot, goals, PlanOptions(seed=self.options.seed))

    def execute(self, plan: Plan, executor: Executor | None = None) -> Generator[Progress, None, None]:
        """Carry out the proposals in batches, with reporters at work; progress after every step of virtual
        time."""
        executor = executor if executor is not None else SimulatedExecutor(self.cluster, throttle=THROTTLE)
        executor.submit(order_of(plan))
        started, reported = self.cluster.now_ms, self.cluster.now_ms
        try:
            while True:
                progress = executor.poll()
                yield progress
                if progress.finished:
                    break
                if self.cluster.now_ms - started > GIVE_UP_AFTER_S * 1000:
                    raise ExternalError(f"the execution is not done after {GIVE_UP_AFTER_S / 3600:.0f} h of virtual time")
                self.cluster.step(STEP_S)
                if self.cluster.now_ms - reported >= REPORT_INTERVAL_S * 1000:
                    reported = self.cluster.now_ms
                    self._report()
        finally:
            executor.cancel()

    def _report(self) -> None:
        """One round of reporters, and everything new into the model."""
        try:
            for reporter in self._reporters:
                reporter.report()
            self._topic.retain(self.cluster.now_ms)
            events = self.cluster.metadata_since(self._offset)
            self._offset += len(events)
            for at_ms, event in events:
                self.model.apply(event, at_ms)
            while batches := self._consumer.poll():
                for batch in batches:
                    self.model.ingest(batch, self.cluster.now_ms)
        except TopicError as e:
            raise ExternalError(str(e)) from e


def deviations(plan: Plan, reached: Snapshot) -> list[Deviation]:
    """Per resource that the plan balances, the broker that ended furthest from where the plan put it."""
    resources = dict.fromkeys(g.resource for g in plan.goals if g.resource is not None and g.status != "skipped")
    found = []
    for resource in resources:
        if not reached.is_reported(resource):
            continue
        loads = reached.broker_load(resource)
        row = reached.row_of_broker
        pairs = [(b.id, b.after.get(resource, 0.0), float(loads[row[b.id]])) for b in plan.brokers if b.id in row]
        mean = sum(after for _, after, _ in pairs) / max(len(pairs), 1)
        if mean > 0.0:
            broker, apart = max(((id, abs(now - after)) for id, after, now in pairs), key=lambda pair: pair[1])
            found.append(Deviation(resource, mean, apart / mean, broker))
    return found
