"""The service, put together: its parts and threads, how they start and end, and what the parts tell each other.

`Balancer(config).start()` from any Python process, or `trimtab serve`. It installs no signal handlers, and is the `ServiceFace` that
the HTTP interface shows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from cluster_model.errors import ExternalError
from cluster_model.model import ClusterModel
from metrics_reporter.reporter import SYSTEM_CLOCK, Clock
from optimizer.detectors import policy_of
from optimizer.planner import plan
from optimizer.search_state import SearchState
from trimtab.capture.capacity import read_capacities
from trimtab.executor import Executor
from trimtab.history.lock import locked, require_writable
from trimtab.service.aftermath import Aftermath
from trimtab.service.agenda import Agenda
from trimtab.service.config import ServiceConfig
from trimtab.service.coverage import Both, Coverage
from trimtab.service.decider import Decider
from trimtab.service.desk import Held, PlanDesk
from trimtab.service.execution import TURN as STEP
from trimtab.service.execution import Execution
from trimtab.service.goals import GoalsKeeper
from trimtab.service.kafka_executor import kafka_executor
from trimtab.service.keeping import KEPT, DecisionKeeper, SampleKeeper, Told
from trimtab.service.leadership import LeaderCheck
from trimtab.service.log_dirs import LogDirs
from trimtab.service.look import Lookout
from trimtab.service.metadata import MetadataWatch
from trimtab.service.min_isr import MinIsr
from trimtab.service.notify import Notifier
from trimtab.service.operator_actions import Operator
from trimtab.service.parts import Parts
from trimtab.service.planning import Planner
from trimtab.service.reach import KafkaReach, Reach
from trimtab.service.read_model import Form, ReadModel, Server
from trimtab.service.readiness import Readiness
from trimtab.service.record_format import record_format
from trimtab.service.samples import SampleFeed
from trimtab.service.scribe import Scribe
from trimtab.service.stand_in import StandIn
from trimtab.service.start_up import StartUp
from trimtab.service.surroundings import Surroundings
from trimtab.service.views import DecisionView, PlanView, StateView
from trimtab.service.watchers import Watchers
from trimtab.service.worker import Worker

log = logging.getLogger(__name__)

INTERVAL = 300.0  # seconds from decision to decision, where neither the configuration nor a policy says
STOP_SECONDS = 8.0  # for all threads together
STOOD_IN = 5  # readings in the place of a silent reporter while a load is not stale yet


class Balancer:
    """The service of one instance.

    Parameters
    ----------
    config
        As `trimtab.service.config.load_config` reads it, or made in a program.
    executor
        What carries plans out; by default the engine on the cluster of the configuration. With a `reach` of another kind and none,
        plans are shown only.
    reach
        How the cluster is reached; by default as the configuration says.
    clock
        Where time comes from.
    step
        Seconds between two steps of an execution.
    planner
        What makes plans; by default `plan` with a `SearchState` of the service's own.

    Raises
    ------
    ConfigurationError
        Goals, capacities, or a file that the configuration names are wrong.
    """

    def __init__(
        self,
        config: ServiceConfig,
        executor: Executor | None = None,
        *,
        reach: Reach | None = None,
        clock: Clock = SYSTEM_CLOCK,
        step: float = STEP,
        planner: Planner | None = None,
    ) -> None:
        if executor is None and reach is None:
            executor = kafka_executor(config, clock)
        self.config, self._clock, self._executor = config, clock, executor
        self._instance = config.instance_name
        self._hold: IO[bytes] | None = None  # the history's folder
        self._watchers = Watchers()
        self._changed = self._watchers.tell
        self._start_up = StartUp(clock)
        self._server: Server | None = None
        capacities = read_capacities(None if config.capacity is None else Path(config.capacity))
        self._agenda = Agenda(lambda: round(1000 * self._interval), round(1000 * config.debounce), self._start_up.began_ms)
        self._goals = GoalsKeeper(None if config.goals is None else Path(config.goals), config.preset_name, self._cause, clock.wall_ms)
        self._told = Told(Path(config.history.folder))
        self._reach = reach if reach is not None else KafkaReach(config)
        self._model = ClusterModel(
            "unknown",
            storage=config.storage,
            short=config.model.horizon("short"),
            long=config.model.horizon("long"),
            stale_after_ms=round(1000 * config.model.stale_after),
            dead_after_ms=round(1000 * config.model.dead_after),
        )
        self._coverage = {
            "short": Coverage(round(1000 * config.model.short)), "long": Coverage(round(1000 * config.model.long)),
        }  # fmt: skip
        self._decisions = DecisionKeeper(config.history, self._instance, clock)
        self._samples = SampleKeeper(config.history, clock) if config.history.samples else None
        self._leader = LeaderCheck(config.node_id, self._reach.quorum, clock, always=config.leader == "always", shared=self._reach.shared)
        waits = config.mode == "approve" and executor is not None
        self._notifier = None if config.notify is None else Notifier(config.notify, self.state, clock, waits=waits)
        self._desk = PlanDesk(self._decisions, clock, self._changed, became=None if self._notifier is None else self._notifier.plan)
        self._min_isr = MinIsr(
            self._reach.min_isr, lambda: self._metadata.health.condition.health.short_topics, clock,
            learned=lambda: self._workers["metadata"].wake(),
        )  # fmt: skip
        self._log_dirs = LogDirs(self._reach.log_dirs, lambda: self._metadata.serving, self._changed)
        self._stand_in = StandIn(
            self._reach.counters, self._model, clock, serving=lambda: self._metadata.serving,
            may_ask=lambda: self._start_up.over and not self._readiness.holds(clock.wall_ms()), every=config.model.stale_after / STOOD_IN,
        )  # fmt: skip
        self._metadata = MetadataWatch(
            self._reach, self._model, clock, look=config.look_seconds,
            dead_after_ms=round(1000 * config.model.dead_after), opened=self._opened, cause=self._cause,
            controller_changed=lambda: self._decider.ask_again(), capacities=capacities.of, looked=self._changed,
            min_isr=lambda: self._min_isr.known, constraints=lambda: self._goals.current.constraints,
            draining=lambda: self._told.draining,
        )  # fmt: skip
        self._feed = SampleFeed(
            self._reach.topic, self._model, record_format(config, self._model, self._start_up.began_ms), clock,
            coverage=Both(self._coverage["short"], self._coverage["long"]), warm_ms=round(1000 * config.model.long),
            keep=None if self._samples is None else self._samples.take,
            kept_from=lambda: None if self._samples is None else self._samples.positions(),
            may_begin=lambda: self._metadata.loaded,
        )  # fmt: skip
        self._lookout = Lookout(
            self._model, self._goals, self._told, clock, horizon=config.horizon, every=config.check,
            may_look=lambda: self._metadata.loaded and self._start_up.over,
            fired=self._fired, looked=self._changed,
        )  # fmt: skip
        self._readiness = Readiness(
            self._metadata, self._feed, self._model, self._coverage[config.horizon],
            covered=config.readiness.covered, heard=config.readiness.heard,
            unrecordable=self._unrecordable, hindrance=lambda: self._workers["metadata"].error,
            unread=lambda: self._workers["samples"].error, shared=lambda: self._leader.known.shared,
            starting=lambda: self._start_up.sentence,
        )  # fmt: skip
        self._aftermath = Aftermath(
            self._decisions, clock, span_ms=config.horizon_ms, cooldown_ms=round(1000 * config.limits.cooldown)
        )  # fmt: skip
        around = Surroundings(
            has_executor=executor is not None, prepare=self._start_up.compile, changed=self._changed, busy=lambda: self._execution.busy,
            plan=planner if planner is not None else partial(plan, state=SearchState()),
            beat=lambda: self._workers["planner"].beat(), interrupted=lambda: self._workers["planner"].stopping,
            condition=lambda: self._metadata.health.condition, learned=self._aftermath.reasons,
        )  # fmt: skip
        self._decider = Decider(
            config, self._goals, self._leader, self._agenda, self._lookout, self._readiness, self._desk,
            Scribe(config, self._goals, self._decisions, clock, self._instance, self._changed), self._told, around,
        )  # fmt: skip
        self._execution = Execution(
            executor, self._desk, self._leader, self._model, self._told, clock, finished=self._finished,
            changed=self._changed, moved=self._decisions.moved, ended=self._carried_out, stale=self._stale,
            acts=config.mode != "dry-run", step=step,
        )  # fmt: skip
        turns: dict[str, tuple[Callable[[], float], Callable[[], None]]] = {
            "metadata": (self._metadata.turn, _nothing),
            "min-isr": (self._min_isr.turn, _nothing),
            "log-dirs": (self._log_dirs.turn, _nothing),
            "stand-in": (self._stand_in.turn, _nothing),
            "samples": (self._feed.turn, self._feed.close),
            "planner": (self._decider.turn, _nothing),
            "look": (self._lookout.turn, _nothing),
            "goals": (self._goals.turn, _nothing),
            "executor": (self._execution.turn, self._execution.stop),
        }
        if self._notifier is not None:
            turns["notify"] = (self._notifier.turn, _nothing)
        if self._samples is not None:
            turns["history"] = (self._samples.turn, _nothing)
        self._workers = {
            name: Worker(name, turn, clock, ended=ended, stalled_after=self._start_up.patience(name))
            for name, (turn, ended) in turns.items()
        }
        parts = Parts(
            config=config, clock=clock, instance=self._instance, started_ms=self._start_up.began_ms, has_executor=executor is not None,
            model=self._model, coverage=self._coverage, goals=self._goals, told=self._told, agenda=self._agenda, leader=self._leader,
            desk=self._desk, metadata=self._metadata, log_dirs=self._log_dirs, feed=self._feed,
            lookout=self._lookout, readiness=self._readiness,
            decider=self._decider, execution=self._execution, decisions=self._decisions, workers=self._workers,
        )  # fmt: skip
        self._read = ReadModel(parts, starting=lambda: self._start_up.sentence, interface=lambda: self._server)
        self._operator = Operator(parts, snapshot=self._read.snapshot, cause=self._cause, changed=self._changed)

    # -- life ----------------------------------------------------------------------------------------------

    @property
    def workers(self) -> dict[str, Worker]:
        """The threads by name; tests take their turns instead."""
        return self._workers

    def start(self) -> Self:
        """Start; returns at once. The HTTP interface is there when it returns.

        Raises
        ------
        ConfigurationError, ExternalError
            The HTTP interface cannot be opened as configured, the history cannot be written, or another instance writes it.
        """
        config = self.config
        folder = Path(config.history.folder)
        require_writable(folder, KEPT)
        self._hold = locked(folder)
        if config.mode != "dry-run" and self._executor is None:
            log.warning(
                "mode is %s, but this service was made without an executor: plans are made and shown, and not carried out",
                config.mode,
            )
        if config.http.enabled:
            from trimtab.http import serve

            try:
                self._server = serve(self, config.http)
            except BaseException:
                self._hold.close()
                raise
        for worker in self._workers.values():
            worker.start()
        log.info("%s: mode %s, a decision every %g s, goals of %s", self._instance, config.mode, self._interval, self._goals.source)
        return self

    def stop(self, seconds: float = STOP_SECONDS) -> bool:
        """End within about so long: an execution is cancelled (what is in progress is taken back), history is written, positions
        are kept. Whether all threads ended that do not wait for the compiler. Calling it again does nothing."""
        deadline = self._clock.monotonic() + seconds
        server, self._server = self._server, None
        if server is not None:
            with suppress(Exception):
                server.stop()
        alive, late = self._start_up.end(self._workers.values(), deadline)
        if late:
            log.warning("stopped without waiting for %s any longer", ", ".join(late))
        if self._samples is not None and "samples" not in alive and "history" not in alive:
            self._samples.close()
        self._decisions.close()
        with suppress(Exception):
            self._reach.close()
        if self._executor is not None and "executor" not in alive:
            with suppress(Exception):
                self._executor.close()
        if self._hold is not None:
            self._hold.close()
        return not late

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def _interval(self) -> float:
        """Seconds from decision to decision: as configured, else as the policy of the goals says."""
        given = self.config.interval
        return given if given is not None else policy_of(self._goals.current).interval or INTERVAL

    def reload_goals(self) -> None:
        """Read the goals again soon; wrong ones are not taken."""
        self._goals.ask()
        self._workers["goals"].wake()

    # -- what the parts tell each other --------------------------------------------------------------------

    def _cause(self, why: str, *, at_once: bool = False) -> None:
        self._agenda.add(why, self._clock.wall_ms(), at_once=at_once)
        self._changed()

    def _fired(self, why: str) -> None:
        # Where too little is known there is a decision anyway once it is enough; a plan that waits for a person is left in peace.
        if not self._readiness.holds(self._clock.wall_ms()) and (self.config.mode != "approve" or self._desk.open is None):
            self._cause(f"detector: {why}")

    def _opened(self, cluster_id: str) -> None:
        """The cluster is known for the first time."""
        self._decisions.open(cluster_id)
        if self._samples is not None:
            try:
                self._samples.open(cluster_id)
            except ExternalError as error:
                log.error("no history of samples for now: %s", error)

    def _stale(self) -> str:
        """Why no step of a plan starts while the model may be older than the cluster; one that is warming up does not keep a plan
        from being carried on."""
        holds = [h.text for h in self._readiness.holds(self._clock.wall_ms()) if h.kind in ("metadata", "silent")]
        return f"waits: {holds[0]}" if holds else ""

    def _carried_out(self, held: Held) -> None:
        if held.is_balance and not held.restores:
            self._aftermath.ended(held.plan, held.decision_id)

    def _finished(self, why: str) -> None:
        self._decider.cool_down()
        self._changed()

    @property
    def starting(self) -> str | None:
        """How far the start is, in a sentence; None where it is over."""
        return self._start_up.sentence

    def _unrecordable(self) -> str | None:
        try:
            self._decisions.get()
        except ExternalError as error:
            return str(error)
        return self._decisions.broken

    # -- the face that the HTTP interface shows (`ServiceFace`) ---------------------------------------------

    def trouble(self) -> tuple[str, ...]:
        """Why the service is unhealthy, in sentences; empty where it is not."""
        return self._read.trouble()

    def state(self) -> StateView:
        return self._read.state()

    def decisions(self, limit: int, before: int | None = None) -> tuple[DecisionView, ...]:
        return self._read.decisions(limit, before)

    def plan_text(self, plan_id: str | None, form: Form) -> str:
        return self._read.plan_text(plan_id, form)

    def snapshot_text(self) -> str:
        return self._read.snapshot_text()

    def explain(self, *, broker: int | None = None, partition: str | None = None) -> str:
        return self._read.explain(broker=broker, partition=partition)

    def goals_text(self) -> str:
        return self._read.goals_text()

    def approve(self, plan_id: str, who: str) -> PlanView:
        return self._operator.approve(plan_id, who)

    def reject(self, plan_id: str, who: str, why: str) -> PlanView:
        return self._operator.reject(plan_id, who, why)

    def rollback(self, plan_id: str, who: str) -> PlanView:
        return self._operator.rollback(plan_id, who)

    def execution_text(self) -> str:
        return self._read.execution_text()

    def cancel_execution(self, plan_id: str, who: str, why: str, finish: bool) -> None:
        self._operator.cancel_execution(plan_id, who, why, finish)

    def rollback_execution(self, plan_id: str, who: str) -> None:
        self._operator.rollback_execution(plan_id, who)

    def pause(self, who: str, why: str) -> None:
        self._operator.pause(who, why)

    def resume(self, who: str) -> bool:
        return self._operator.resume(who)

    def plan_now(self, who: str) -> None:
        self._operator.plan_now(who)

    def drain(self, broker: int, on: bool, who: str) -> None:
        self._operator.drain(broker, on, who)

    def watch(self, told: Callable[[], None]) -> Callable[[], None]:
        return self._watchers.add(told)


def _nothing() -> None:
    pass
