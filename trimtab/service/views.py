"""What the service says of itself: the shapes that its HTTP interface serves and its page draws.

Frozen values, made by `trimtab.service.read_model`, read by `trimtab.http`, which knows the service through `ServiceFace` only.
Times are Unix ms; loads are in the units of the snapshot file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

Mode = Literal["dry-run", "approve", "auto"]
BrokerLife = Literal["serving", "stopping", "fenced", "dead", "unregistered", "drained"]
WaitKind = Literal["down", "settling", "under_replicated", "foreign", "leaders", "quiet"]
"""What balance may wait for."""


class View(BaseModel):
    """Base of all shapes."""

    model_config = ConfigDict(frozen=True)


class WorkerView(View):
    """One thread of the service."""

    name: str = Field(description="metadata, samples, planner, history, …")
    alive: bool
    beat_age_ms: int = Field(description="since it last came round")
    error: str | None = Field(default=None, description="what stops it at the moment, in words")


class Leadership(View):
    """Whether this instance decides."""

    node: int | None = Field(description="the node that this instance stands beside")
    controller: int | None = Field(description="the active controller, as last asked")
    epoch: int | None
    leads: bool
    checked_ms: int | None
    error: str | None = None
    shared: str | None = Field(
        default=None, description="who else stands beside the same node, in words; then this instance does not decide"
    )


class GoalView(View):
    """How a goal stands, live."""

    name: str
    kind: str
    resource: str | None
    hard: bool
    weight: float
    violations: int | None = Field(description="brokers outside their target range; null where the goal is skipped")
    in_band: float | None = Field(description="share of eligible brokers")
    max_deviation: float | None = Field(description="share of the mean")
    bound: float | None = Field(default=None, description="of a band: how far from the mean is in it, share of the mean")
    skipped: str | None = Field(default=None, description="why it cannot be judged")


class BrokerView(View):
    """How a broker stands, live."""

    id: int
    rack: str | None
    state: str
    drained: bool = Field(default=False, description="it was to be emptied, and nothing is left on it")
    voice: str = Field(description="its reporter: fresh, late, silent or never")
    slow: str | None = Field(default=None, description="why it counts as slow and gets no replicas; null where it does not")
    loads: Mapping[str, float]
    share_of_mean: Mapping[str, float] = Field(description="load over the mean of goals on that resource, 1.0 is level")
    violates: tuple[str, ...]


class DownView(View):
    """A broker that does not serve, or came back a short while ago."""

    id: int
    life: str = Field(description="stopping, fenced (probably restarts), dead, unregistered, drained, catching up, settling")
    since_ms: int | None
    replicas: int
    lacking: int = Field(description="of them, out of sync")


class DirectoriesView(View):
    """Log directories of a broker that has several volumes (JBOD), or offline directories; shares 0..1."""

    broker: int
    volumes: int = Field(description="that are online and tell their size")
    offline: tuple[str, ...] = ()
    fullest: str | None = Field(description="a log directory on the fullest volume; null where no volume tells its size")
    fullest_used: float | None
    used: float | None = Field(description="of all volumes together")


class ClusterView(View):
    """How well the cluster itself is, whatever goals say; counts are partitions."""

    known: bool = Field(default=False, description="whether the metadata was ever read")
    partitions: int = 0
    offline: int = Field(default=0, description="without a leader")
    under_replicated: int = Field(default=0, description="lacking an in-sync replica, reassignments apart")
    under_min_isr: int = Field(
        default=0, description="with fewer replicas in sync than min.insync.replicas asks for, so that acks=all is refused"
    )
    min_isr_unread: int = Field(default=0, description="topics with a replica out of sync of which min.insync.replicas is not known")
    last_copy: int = Field(default=0, description="of the under-replicated ones, with a single in-sync replica")
    reassigning: int = Field(default=0, description="with a reassignment in progress")
    not_preferred: int = Field(default=0, description="not led by the preferred leader, though it serves and is in sync")
    examples: tuple[str, ...] = Field(default=(), description="the first offline, then under min ISR, then under-replicated")
    since_ms: Mapping[str, int] = Field(default_factory=dict, description="since when there are any, by the names above")
    down: tuple[DownView, ...] = ()
    lives: Mapping[str, int] = Field(default_factory=dict, description="brokers: serving, stopping, fenced, dead, unregistered, drained")
    waits: tuple[WaitKind, ...] = Field(default=(), description="what balance waits for, in kinds")
    directories: tuple[DirectoriesView, ...] = ()


class PlanView(View):
    """The newest plan, without its actions; `ServiceFace.plan_text` has them."""

    plan_id: str
    decision_id: int
    made_ms: int
    state: Literal["proposed", "approved", "rejected", "running", "done", "failed", "superseded", "cancelled"]
    actions: int
    replica_moves: int
    leadership_changes: int
    bytes_to_move: float
    progress: float | None = Field(default=None, description="share carried out, where it runs")
    note: str = ""
    left_out: int | None = Field(default=None, description="brokers that would be outside a target range or limit after it")
    is_balance: bool = Field(default=True, description="false: it only repairs")
    restores: bool = Field(default=False, description="it only gives partitions back to their preferred leaders, which copies nothing")
    demotes: bool = Field(default=False, description="it only takes leaderships off slow brokers, which copies nothing")


ExecutionVerb = Literal["pause", "resume", "cancel", "rollback"]


class MovingView(View):
    """A partition in progress; bytes are over all replicas that it gets."""

    topic: str
    partition: int
    replicas: tuple[int, ...] = Field(description="as they will be, preferred leader first")
    bytes_copied: float
    bytes_total: float
    rate: float | None = Field(description="bytes/s; null where not known yet")
    seconds_left: float | None


class ExecutionView(View):
    """The newest execution on the cluster, whichever process carries it out; `/api/v1/execution` has every partition."""

    plan_id: str
    state: str = Field(description="running, done, failed, cancelled, rolled back")
    direction: str = Field(description="forward, cancel, rollback")
    why: str = Field(description="it goes back; empty where it does not")
    instance: str
    here: bool = Field(description="this instance carries it out")
    paused: str = Field(description="by whom; empty where it is not")
    waits: str = Field(description="why no step is taken now")
    counts: Mapping[str, int] = Field(description="partitions by stage")
    total: int
    final: int = Field(description="partitions that nothing is left to do for")
    bytes_copied: float
    bytes_total: float
    rate: float | None = Field(description="bytes/s; null where not known")
    seconds_left: float | None
    throttle: int | None = Field(description="bytes/s")
    throttle_why: str = Field(description="where it paces itself")
    throttles_left: int = Field(description="settings of throttles that stand")
    unchanged: int = Field(description="partitions that were not brought where they were to go, once it is over")
    moving_count: int
    moving: tuple[MovingView, ...] = Field(description="the first of those in progress")
    batch: int = Field(description="that is at work, or waits for its time; 0 where the plan has none")
    batches: int
    can: tuple[ExecutionVerb, ...] = Field(description="what may be said to it here and now")
    why_not: str = Field(description="why this instance may say nothing to it")


class DecisionView(View):
    """One verdict of an instance."""

    id: int
    began_ms: int
    ended_ms: int
    instance: str
    cause: str
    mode: str
    verdict: Literal["planned", "nothing", "refused", "failed"]
    reason: str
    plan_id: str | None
    actions: int
    replica_moves: int
    bytes_to_move: int
    outcomes: tuple[tuple[int, str, str, str], ...] = Field(description="time, kind, who, detail")


class ModelView(View):
    """The model behind it all."""

    brokers: int
    topics: int
    partitions: int
    newest_sample_ms: int = Field(description="-1: none yet")
    metadata_held: str | None = Field(description="why the metadata may be older than the cluster")
    stale_partitions: int
    waiting: int
    bytes: int
    samples: int
    records: int
    decode_errors: int
    last_decode_error: str | None
    lag: int | None = Field(description="records of the metric topic not read yet; null where unknown")
    lost: int
    windows_reached: Mapping[str, float] = Field(description="share of each horizon that samples cover")
    counts: Mapping[str, int] = Field(description="what became of batches and values; docs/model.md")


class StateView(View):
    """Everything at a glance; made on demand, does not grow with partitions."""

    version: str
    cluster_id: str | None
    instance: str
    mode: Mode
    has_executor: bool = Field(description="whether plans can be carried out; where not they are only shown, whatever the mode")
    paused: bool
    now_ms: int
    started_ms: int
    healthy: bool
    ready: bool
    starting: str | None = Field(default=None, description="how far the start is; null where it is over")
    why_unhealthy: tuple[str, ...]
    why_not_ready: tuple[str, ...]
    why_nothing: tuple[str, ...] = Field(description="sentences; empty while a plan is made or carried out")
    next_plan_ms: int | None
    leadership: Leadership
    workers: tuple[WorkerView, ...]
    model: ModelView
    cluster: ClusterView = ClusterView()
    considered_ms: int | None = Field(default=None, description="when a decision was come to last, also where it was no news")
    history_free: int | None = Field(default=None, description="bytes that are free where the history is kept")
    goals_file: str
    goals_digest: str
    goals_error: str | None = Field(description="why the newest edit of the goals file was not taken")
    goals_stale: str | None = Field(default=None, description="that the calibration of the goals is old, in a sentence")
    goals: tuple[GoalView, ...]
    brokers: tuple[BrokerView, ...]
    plan: PlanView | None
    execution: ExecutionView | None = Field(default=None, description="null where none is known here")


class Refused(Exception):
    """The service does not do that now: why, and what to do. `missing`: there is no such thing."""

    def __init__(self, message: str, what_to_do: str, *, missing: bool = False) -> None:
        super().__init__(f"{message} {what_to_do}")
        self.message, self.what_to_do, self.missing = message, what_to_do, missing


class ServiceFace(Protocol):
    """What the HTTP interface may ask of the service. Every call is safe from any thread and returns within a second
    on a cluster of a million replicas, but for `snapshot_text`."""

    def state(self) -> StateView: ...

    def decisions(self, limit: int, before: int | None = None) -> tuple[DecisionView, ...]:
        """Newest first."""
        ...

    def plan_text(self, plan_id: str | None, form: Literal["json", "text", "markdown", "html", "reassignment", "election"]) -> str:
        """A plan in one of the report's forms; the newest for None. Raises `Refused`."""
        ...

    def snapshot_text(self) -> str:
        """The snapshot file (JSON) of this moment. Raises `Refused` while there is no metadata."""
        ...

    def explain(self, *, broker: int | None = None, partition: str | None = None) -> str:
        """Text of `trimtab explain` for the cluster as it stands. Raises `Refused`."""
        ...

    def goals_text(self) -> str:
        """The goals in force, as YAML with every default written out."""
        ...

    def approve(self, plan_id: str, who: str) -> PlanView:
        """Raises `Refused`."""
        ...

    def reject(self, plan_id: str, who: str, why: str) -> PlanView:
        """Raises `Refused`."""
        ...

    def rollback(self, plan_id: str, who: str) -> PlanView:
        """Bring back what a plan changed. Raises `Refused`."""
        ...

    def execution_text(self) -> str:
        """The newest execution with every partition, as `trimtab status --format json` has it. Raises `Refused`."""
        ...

    def cancel_execution(self, plan_id: str, who: str, why: str, finish: bool) -> None:
        """Start no further step of the newest execution, whichever process carries it out. Raises `Refused`."""
        ...

    def rollback_execution(self, plan_id: str, who: str) -> None:
        """Bring back what the newest execution changed, whichever process carried it out. Raises `Refused`."""
        ...

    def pause(self, who: str, why: str) -> None: ...

    def resume(self, who: str) -> bool:
        """Whether it was paused."""
        ...

    def plan_now(self, who: str) -> None:
        """Ask for a decision at once, whatever the interval says."""
        ...

    def drain(self, broker: int, on: bool, who: str) -> None:
        """Treat a broker as draining from now on, or no longer. Raises `Refused`."""
        ...

    def watch(self, told: Callable[[], None]) -> Callable[[], None]:
        """Call `told`, from any thread, when the state changed worth a look; returns what ends it."""
        ...
