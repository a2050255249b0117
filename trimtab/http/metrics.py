"""The service's figures for Prometheus.

Everything is made from one `StateView` at the time of the scrape, so nothing here has to be kept up to date. Labels are bounded by
goals, brokers, resources and workers; never a topic or a partition. docs/http.md lists the names.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector

from trimtab.execution.state import Stage
from trimtab.service.views import (
    BrokerLife,
    BrokerView,
    ClusterView,
    DecisionView,
    ExecutionView,
    GoalView,
    Mode,
    ModelView,
    PlanView,
    StateView,
    WaitKind,
    WorkerView,
)

STAGES: tuple[str, ...] = tuple(Stage)
PLAN_STATES: tuple[str, ...] = get_args(PlanView.model_fields["state"].annotation)
VERDICTS: tuple[str, ...] = get_args(DecisionView.model_fields["verdict"].annotation)
MODES: tuple[str, ...] = get_args(Mode)
LIVES: tuple[str, ...] = get_args(BrokerLife)
REASONS: tuple[str, ...] = get_args(WaitKind)
VOICES = ("fresh", "late", "silent", "never")
BUCKETS = (0.01, 0.05, 0.25, 1.0, 5.0)  # seconds


class Requests:
    """What became of requests, by route."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._count = Counter(
            "trimtab_http_requests",
            "Requests answered.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "trimtab_http_request_seconds",
            "Time to the answer's head.",
            ["route"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        ProcessCollector(namespace="trimtab", registry=self.registry)

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        self._count.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)


class Scrape:
    """All metrics of one moment, as the encoder wants them."""

    def __init__(self, parts: Iterable[Iterable[Metric]]) -> None:
        self._parts = parts

    def collect(self) -> Iterator[Metric]:
        for part in self._parts:
            yield from part


def scrape(state: StateView | None, last: DecisionView | None, requests: Requests) -> Scrape:
    """Everything for one scrape. `state` is None where the service did not report its state.

    Notes
    -----
    Linear in brokers times resources.
    """
    words = "Whether the service reported its state; at 0, the figures from that state are missing."
    available = _gauge("trimtab_state_available", words, state is not None)
    told = families(state, last) if state is not None else ()
    return Scrape(([available], told, requests.registry.collect()))


def families(state: StateView, last: DecisionView | None) -> Iterator[Metric]:
    """Every family that a state gives, also those without a sample now."""
    yield from _service(state)
    yield from _cluster(state.cluster)
    yield from _workers(state.workers)
    yield from _model(state.model, state.now_ms)
    yield from _goals(state.goals)
    yield from _brokers(state.brokers)
    yield from _plan(state.plan)
    yield from _execution(state.execution)
    yield from _decision(last)


def _gauge(name: str, words: str, value: float | None) -> GaugeMetricFamily:
    """A gauge without labels; without a sample where there is no value."""
    family = GaugeMetricFamily(name, words)
    if value is not None:
        family.add_metric([], float(value))
    return family


def _gauges(
    name: str, words: str, labels: Iterable[str], rows: Iterable[tuple[tuple[str, ...], float | None]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, words, labels=list(labels))
    for values, value in rows:
        if value is not None:
            family.add_metric(values, float(value))
    return family


def _counter(name: str, words: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, words, value=float(value))


def _service(state: StateView) -> Iterator[Metric]:
    yield InfoMetricFamily(
        "trimtab",
        "Which Trimtab this is.",
        {"version": state.version, "instance_name": state.instance, "cluster_id": state.cluster_id or ""},
    )
    yield _gauges(
        "trimtab_mode", "1 for the mode it is in.", ["mode"], (((m,), m == state.mode) for m in MODES)
    )
    yield _gauge("trimtab_healthy", "Whether all its workers do their work.", state.healthy)
    yield _gauge("trimtab_ready", "Whether it knows enough to decide.", state.ready)
    yield _gauge("trimtab_starting", "Whether it still starts: compiles or loads its planner.", state.starting is not None)
    yield _gauge("trimtab_paused", "Whether a person paused it.", state.paused)
    yield _gauge("trimtab_start_time_seconds", "When it started, Unix time.", state.started_ms / 1000)
    yield _gauge(
        "trimtab_next_plan_time_seconds",
        "When it decides next, Unix time.",
        None if state.next_plan_ms is None else state.next_plan_ms / 1000,
    )
    yield _gauge("trimtab_history_free_bytes", "Free where the history is kept.", state.history_free)
    yield _gauge(
        "trimtab_considered_time_seconds",
        "When it last decided, recorded or not, Unix time.",
        None if state.considered_ms is None else state.considered_ms / 1000,
    )
    yield _gauge(
        "trimtab_goals_file_refused",
        "Whether the newest edit of the goals file was not taken.",
        state.goals_error is not None,
    )
    it = state.leadership
    yield _gauge("trimtab_leads", "Whether this instance decides.", it.leads)
    yield _gauge("trimtab_controller_id", "The active controller's node, as last asked.", it.controller)
    yield _gauge("trimtab_controller_epoch", "Its epoch.", it.epoch)
    yield _gauge(
        "trimtab_leadership_unknown", "Whether asking for the active controller failed.", it.error is not None
    )


def _cluster(cluster: ClusterView) -> Iterator[Metric]:
    """How well the cluster itself is. Conditions have a sample each, also where they are 0, once the metadata is known."""
    if not cluster.known:
        return
    conditions = {
        "offline": cluster.offline, "under_min_isr": cluster.under_min_isr, "under_replicated": cluster.under_replicated,
        "last_copy": cluster.last_copy, "reassigning": cluster.reassigning, "not_preferred": cluster.not_preferred,
    }  # fmt: skip
    yield _gauges(
        "trimtab_cluster_partitions",
        "Partitions that are offline, under min ISR, under-replicated, down to one in-sync replica, reassigned, or not led by the "
        "preferred leader.",
        ["condition"],
        (((name,), value) for name, value in conditions.items()),
    )
    yield _gauge(
        "trimtab_cluster_min_isr_unread_topics",
        "Topics with a replica out of sync of which min.insync.replicas is not known.",
        cluster.min_isr_unread,
    )
    yield _gauges(
        "trimtab_cluster_brokers",
        "Brokers by what they do: serving, stopping, fenced, dead, unregistered with replicas, or drained and down.",
        ["life"],
        (((life,), cluster.lives.get(life, 0)) for life in LIVES),
    )
    yield _gauges(
        "trimtab_cluster_broker_lacking_replicas",
        "Replicas out of sync on a broker that does not serve, or came back a short while ago.",
        ["broker"],
        (((str(b.id),), b.lacking) for b in cluster.down),
    )
    yield _gauges(
        "trimtab_cluster_broker_fullest_log_directory_ratio",
        "Share in use of the fullest log directory of a broker that has several volumes.",
        ["broker"],
        (((str(at.broker),), at.fullest_used) for at in cluster.directories if at.fullest_used is not None),
    )
    yield _gauges(
        "trimtab_cluster_broker_offline_log_directories",
        "Log directories of a broker that are offline.",
        ["broker"],
        (((str(at.broker),), len(at.offline)) for at in cluster.directories),
    )
    yield _gauges(
        "trimtab_balance_waits",
        "Whether balance waits for this.",
        ["reason"],
        (((reason,), reason in cluster.waits) for reason in REASONS),
    )


def _workers(workers: Iterable[WorkerView]) -> Iterator[Metric]:
    workers = tuple(workers)
    yield _gauges(
        "trimtab_worker_alive",
        "Whether the thread runs.",
        ["worker"],
        (((w.name,), w.alive) for w in workers),
    )
    yield _gauges(
        "trimtab_worker_beat_age_seconds",
        "Since it last came round.",
        ["worker"],
        (((w.name,), w.beat_age_ms / 1000) for w in workers),
    )
    yield _gauges(
        "trimtab_worker_stopped",
        "Whether something stops it now.",
        ["worker"],
        (((w.name,), w.error is not None) for w in workers),
    )


def _model(model: ModelView, now_ms: int) -> Iterator[Metric]:
    yield _gauge("trimtab_model_brokers", "Brokers in the model.", model.brokers)
    yield _gauge("trimtab_model_topics", "Topics in the model.", model.topics)
    yield _gauge("trimtab_model_partitions", "Partitions in the model.", model.partitions)
    yield _gauge("trimtab_model_stale_partitions", "Partitions whose loads are old.", model.stale_partitions)
    yield _gauge("trimtab_model_waiting", "Values that wait for metadata.", model.waiting)
    yield _gauge("trimtab_model_bytes", "Memory of the model.", model.bytes)
    newest = model.newest_sample_ms
    yield _gauge(
        "trimtab_model_sample_age_seconds",
        "Age of the newest sample.",
        None if newest < 0 else max(0, now_ms - newest) / 1000,
    )
    yield _gauge("trimtab_model_lag_records", "Records of the metric topic not read yet.", model.lag)
    yield _gauge(
        "trimtab_model_metadata_held",
        "Whether metadata may be older than the cluster.",
        model.metadata_held is not None,
    )
    yield _counter("trimtab_model_samples", "Samples taken in.", model.samples)
    yield _counter("trimtab_model_records", "Records of the metric topic read.", model.records)
    yield _counter("trimtab_model_decode_errors", "Records that could not be decoded.", model.decode_errors)
    yield _counter("trimtab_model_lost", "Records that were gone before they were read.", model.lost)
    yield _gauges(
        "trimtab_model_window_reached_ratio",
        "Share of the horizon that samples cover.",
        ["horizon"],
        (((h,), v) for h, v in model.windows_reached.items()),
    )
    handled = CounterMetricFamily(
        "trimtab_model_handled", "What became of batches and values.", labels=["what"]
    )
    for what, number in model.counts.items():
        handled.add_metric([what], float(number))
    yield handled


def _goals(goals: Iterable[GoalView]) -> Iterator[Metric]:
    goals = tuple(goals)
    labels = ["goal", "hard"]
    keys = [(g.name, "true" if g.hard else "false") for g in goals]
    pairs = list(zip(keys, goals, strict=True))
    yield _gauges(
        "trimtab_goal_violations", "Brokers outside their target range.", labels, ((k, g.violations) for k, g in pairs)
    )
    yield _gauges(
        "trimtab_goal_in_band_ratio",
        "Share of eligible brokers within their target range.",
        labels,
        ((k, g.in_band) for k, g in pairs),
    )
    yield _gauges(
        "trimtab_goal_max_deviation_ratio",
        "Largest deviation, share of the mean.",
        labels,
        ((k, g.max_deviation) for k, g in pairs),
    )
    yield _gauges(
        "trimtab_goal_weight", "Weight in the combined score.", labels, ((k, g.weight) for k, g in pairs)
    )
    yield _gauges(
        "trimtab_goal_skipped",
        "Whether it cannot be judged.",
        labels,
        ((k, g.skipped is not None) for k, g in pairs),
    )


def _brokers(brokers: Iterable[BrokerView]) -> Iterator[Metric]:
    brokers = tuple(brokers)
    states = Tally(b.state for b in brokers)
    voices = Tally(dict.fromkeys(VOICES, 0))
    voices.update(b.voice for b in brokers)
    yield _gauges(
        "trimtab_brokers", "Brokers by state.", ["state"], (((s,), n) for s, n in sorted(states.items()))
    )
    yield _gauges(
        "trimtab_reporters",
        "Brokers by what is heard of their reporter.",
        ["voice"],
        (((v,), n) for v, n in sorted(voices.items())),
    )
    yield _gauges(
        "trimtab_broker_slow", "1 for a broker that counts as slow, by id.", ["broker"], (((str(b.id),), 1) for b in brokers if b.slow)
    )
    yield _gauge(
        "trimtab_brokers_out_of_band", "Brokers that violate a goal.", sum(1 for b in brokers if b.violates)
    )
    yield _gauges(
        "trimtab_broker_load",
        "Load of a broker, in the resource's unit (docs/snapshot-file.md).",
        ["broker", "resource"],
        (((str(b.id), r), v) for b in brokers for r, v in b.loads.items()),
    )
    yield _gauges(
        "trimtab_broker_share_of_mean_ratio",
        "Load over the mean; 1 is level.",
        ["broker", "resource"],
        (((str(b.id), r), v) for b in brokers for r, v in b.share_of_mean.items()),
    )
    yield _gauges(
        "trimtab_broker_violations",
        "Goals that a broker violates.",
        ["broker"],
        (((str(b.id),), len(b.violates)) for b in brokers),
    )


def _plan(plan: PlanView | None) -> Iterator[Metric]:
    """All states have a sample, so that a plan that went on does not leave its old state behind."""

    def by_state(name: str, words: str, value: float) -> GaugeMetricFamily:
        rows = (((s,), value if plan is not None and s == plan.state else 0) for s in PLAN_STATES)
        return _gauges(name, words, ["state"], rows)

    yield by_state("trimtab_plan", "1 for the state of the newest plan.", 1)
    yield by_state(
        "trimtab_plan_actions", "Actions of the newest plan, by its state.", plan.actions if plan else 0
    )
    yield by_state("trimtab_plan_replica_moves", "Its replica moves.", plan.replica_moves if plan else 0)
    yield by_state(
        "trimtab_plan_leadership_changes", "Its leadership changes.", plan.leadership_changes if plan else 0
    )
    yield by_state("trimtab_plan_bytes", "Bytes it copies.", plan.bytes_to_move if plan else 0)
    yield _gauge(
        "trimtab_plan_made_time_seconds",
        "When it was made, Unix time.",
        plan.made_ms / 1000 if plan else None,
    )
    yield _gauge(
        "trimtab_plan_progress_ratio", "Share of it that is carried out.", plan.progress if plan else None
    )


def _execution(it: ExecutionView | None) -> Iterator[Metric]:
    """The newest execution on the cluster, whichever process carries it out."""
    yield _gauge("trimtab_execution_running", "Whether a plan is being carried out.", it.state == "running" if it else 0)
    rows = (((stage,), it.counts.get(stage, 0) if it else 0) for stage in STAGES)
    yield _gauges("trimtab_execution_partitions", "Partitions of the newest execution, by how far they are.", ["stage"], rows)
    yield _gauge("trimtab_execution_bytes", "Bytes that it copies.", it.bytes_total if it else None)
    yield _gauge("trimtab_execution_copied_bytes", "Of them copied.", it.bytes_copied if it else None)
    yield _gauge("trimtab_execution_rate_bytes", "Bytes a second that it copies now.", it.rate if it else None)
    yield _gauge("trimtab_execution_throttle_bytes", "Its throttle, bytes a second.", it.throttle if it else None)
    left = it.throttles_left if it else 0
    yield _gauge("trimtab_execution_throttle_settings", "Settings of throttles that it set and has not taken off yet.", left)


def _decision(last: DecisionView | None) -> Iterator[Metric]:
    rows = (((v,), last is not None and v == last.verdict) for v in VERDICTS)
    yield _gauges("trimtab_last_decision", "1 for the verdict of the newest decision.", ["verdict"], rows)
    yield _gauge(
        "trimtab_last_decision_time_seconds",
        "When it ended, Unix time.",
        last.ended_ms / 1000 if last else None,
    )
    yield _gauge(
        "trimtab_last_decision_seconds",
        "How long it took.",
        (last.ended_ms - last.began_ms) / 1000 if last else None,
    )
