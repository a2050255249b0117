"""The service, put together: threads, what they share, and everything that people and programs may ask of it.

`Balancer(config).start()` from any Python process, or `trimtab serve`. It installs no signal handlers, and is the `ServiceFace` that
the HTTP interface shows.
"""

from __future__ import annotations

import io
import logging
import os
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, TYPE_CHECKING, Literal, Protocol, Self

from cluster_model.errors import ConfigurationError, ExternalError, TrimtabError
from cluster_model.model import ClusterModel
from cluster_model.trust import LiveSnapshot, spoken
from cluster_model.windows import Horizon
from metrics_reporter.formats import OwnFormat, RecordFormat
from metrics_reporter.reporter import SYSTEM_CLOCK, Clock
from optimizer.planner import plan
from optimizer.search_state import SearchState
from trimtab import __version__
from trimtab.capture.capacity import read_capacities
from trimtab.execution.people import Pause
from trimtab.executor import Executor
from trimtab.history.lock import locked, require_writable
from trimtab.service.agenda import Agenda
from trimtab.service.config import WINDOWS, ServiceConfig
from trimtab.service.coverage import Coverage
from trimtab.service.decider import ASKED, UNWELL, UNWRITTEN, Decider
from trimtab.service.desk import PlanDesk
from trimtab.service.execution import TURN as STEP
from trimtab.service.execution import Execution, kafka_executor
from trimtab.service.goals import GoalsKeeper, goals_text
from trimtab.service.keeping import KEPT, DecisionKeeper, SampleKeeper, Told
from trimtab.service.leadership import LeaderCheck, who_leads, whom_to_ask
from trimtab.service.look import Lookout
from trimtab.service.metadata import MetadataWatch
from trimtab.service.min_isr import MinIsr
from trimtab.service.notify import Notifier
from trimtab.service.planning import Planner
from trimtab.service.reach import KafkaReach, Reach
from trimtab.service.readiness import Readiness
from trimtab.service.samples import SampleFeed
from trimtab.service.standing import draining, moved_away
from trimtab.service.unwell import cluster_view, sentence
from trimtab.service.views import DecisionView, ModelView, PlanView, Refused, StateView
from trimtab.service.words import Facts, clock, why_nothing
from trimtab.service.worker import STALLED_AFTER, Worker

if TYPE_CHECKING:
    from optimizer.plan import Plan
    from trimtab.history.records import Recorded

log = logging.getLogger(__name__)

STOP_SECONDS = 8.0  # for all threads together
OTHERS_HANG_SECONDS = 180.0
COMPILING_SECONDS = 3600.0  # without a sign of life while kernels are compiled
FREE_EVERY_MS = 10_000
TOLD_SECONDS = 5.0  # a start that took longer is told
COMPILER_SECONDS = 1.0  # for all threads together that wait for the compiler when the service ends
CALL_KERNELS = ("metadata", "samples", "planner", "look")  # threads; one compiler serves them all, one after the other
TEXT_WIDTH = 120
MOST_DECISIONS = 1000
MOST_PLANNED_AT_ONCE = 50_000  # replicas that are planned for while somebody waits
BY_HAND = "apply the plan with Kafka's own tools: first its form reassignment, then its form election"
OVER = "Nothing is left to be decided about it; a newer plan can be asked for."
Form = Literal["json", "text", "markdown", "html", "reassignment", "election"]


class Server(Protocol):
    @property
    def alive(self) -> bool: ...
    @property
    def error(self) -> str | None: ...
    def stop(self) -> None: ...


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
        self._started_ms = clock.wall_ms()
        self._instance = config.instance or _instance_name(config)
        self._watchers: dict[int, Callable[[], None]] = {}
        self._hold: IO[bytes] | None = None  # the history's folder
        self._watchers_lock, self._watcher = Lock(), 0
        self._compiled = False
        self._free: tuple[int, int | None] | None = None
        self._server: Server | None = None
        capacities = read_capacities(None if config.capacity is None else Path(config.capacity))
        self._agenda = Agenda(round(1000 * config.interval), round(1000 * config.debounce), self._started_ms)
        self._goals = GoalsKeeper(None if config.goals is None else Path(config.goals), config.preset_name, self._cause)
        self._told = Told(Path(config.history.folder))
        self._reach = reach if reach is not None else KafkaReach(config)
        self._model = ClusterModel(
            "unknown",
            storage=config.storage,
            short=_horizon(config.model.short, WINDOWS["short"]),
            long=_horizon(config.model.long, WINDOWS["long"]),
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
        self._metadata = MetadataWatch(
            self._reach, self._model, clock, look=config.look_seconds,
            dead_after_ms=round(1000 * config.model.dead_after), opened=self._opened, cause=self._cause,
            controller_changed=lambda: self._decider.ask_again(), capacities=capacities.of, looked=self._changed,
            min_isr=lambda: self._min_isr.known,
        )  # fmt: skip
        self._feed = SampleFeed(
            self._reach.topic, self._model, _format(config, self._model, self._started_ms), clock,
            coverage=_Both(self._coverage["short"], self._coverage["long"]), warm_ms=round(1000 * config.model.long),
            keep=None if self._samples is None else self._samples.take,
            kept_from=lambda: None if self._samples is None else self._samples.positions(),
            may_begin=lambda: self._metadata.loaded,
        )  # fmt: skip
        self._lookout = Lookout(
            self._model, self._goals, self._told, clock, horizon=config.horizon, every=config.check,
            may_look=lambda: self._metadata.loaded and self._compiled,
            fired=self._fired, looked=self._changed,
        )  # fmt: skip
        self._readiness = Readiness(
            self._metadata, self._feed, self._model, self._coverage[config.horizon],
            covered=config.readiness.covered, heard=config.readiness.heard,
            unrecordable=self._unrecordable, hindrance=lambda: self._workers["metadata"].error,
            unread=lambda: self._workers["samples"].error, shared=lambda: self._leader.known.shared,
            starting=lambda: self.starting,
        )  # fmt: skip
        self._decider = Decider(
            config, self._goals, self._leader, self._agenda, self._lookout, self._readiness, self._desk, self._decisions,
            self._told, clock, instance=self._instance, has_executor=executor is not None, prepare=self._compile,
            plan=planner if planner is not None else partial(plan, state=SearchState()),
            beat=lambda: self._workers["planner"].beat(), interrupted=lambda: self._workers["planner"].stopping,
            changed=self._changed, busy=lambda: self._execution.busy,
            condition=lambda: self._metadata.health.condition,
        )  # fmt: skip
        self._execution = Execution(
            executor, self._desk, self._leader, self._model, self._told, clock, finished=self._finished,
            changed=self._changed, moved=self._decisions.moved, stale=self._stale, acts=config.mode != "dry-run", step=step,
        )  # fmt: skip
        turns: dict[str, tuple[Callable[[], float], Callable[[], None]]] = {
            "metadata": (self._metadata.turn, _nothing),
            "min-isr": (self._min_isr.turn, _nothing),
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
            name: Worker(name, turn, clock, ended=ended, stalled_after=self._stalled_after(name))
            for name, (turn, ended) in turns.items()
        }

    # -- life ----------------------------------------------------------------------------------------------

    @property
    def workers(self) -> dict[str, Worker]:
        """The threads by name; tests take their turns instead."""
        return self._workers

    def start(self) -> Self:
        """Begin; returns at once. The HTTP interface is there when it returns.

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
        log.info("%s: mode %s, a decision every %g s, goals of %s", self._instance, config.mode, config.interval, self._goals.source)
        return self

    def stop(self, seconds: float = STOP_SECONDS) -> bool:
        """End within about so long: an execution is cancelled (what is in progress is taken back), history is written, positions
        are kept. Whether all threads ended that do not wait for the compiler. Calling it again does nothing."""
        deadline = self._clock.monotonic() + seconds
        server, self._server = self._server, None
        if server is not None:
            with suppress(Exception):
                server.stop()
        for worker in self._workers.values():
            worker.ask_to_stop()
        # Who waits for the compiler hears no signal, and leaves nothing half done: is given a moment to end all the same.
        waiting = () if self._compiled else CALL_KERNELS
        patience = min(deadline, self._clock.monotonic() + COMPILER_SECONDS)
        alive = [
            w.name
            for w in self._workers.values()
            if not w.join((patience if w.name in waiting else deadline) - self._clock.monotonic())
        ]
        late = [name for name in alive if name not in waiting]
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
        """Why no step of a plan begins while the model may be older than the cluster; one that is warming up does not keep a plan
        from being carried on."""
        holds = [h.text for h in self._readiness.holds(self._clock.wall_ms()) if h.kind in ("metadata", "silent")]
        return f"waits: {holds[0]}" if holds else ""

    def _finished(self, why: str) -> None:
        self._decider.cool_down()
        self._changed()

    def _compile(self) -> None:
        from trimtab.warmup import announce, warm_up

        begun = self._clock.monotonic()
        announce()
        warm_up()
        self._compiled = True
        seconds = self._clock.monotonic() - begun
        if seconds > TOLD_SECONDS:
            log.info("the planner is compiled, after %.0f s", seconds)

    @property
    def starting(self) -> str | None:
        """How far the start is, in a sentence; None where it is over."""
        if self._compiled:
            return None
        so_far = spoken(max(self._clock.wall_ms() - self._started_ms, 0))
        return (
            f"Starting, for {so_far} so far: the planner is compiled or loaded. Compiling takes two minutes of a whole core, once for a "
            "machine; with a share of a core it takes that much longer."
        )

    def _stalled_after(self, name: str) -> Callable[[], float]:
        """Seconds without a sign of life that are too many; brokers and webhooks that hang may keep those who ask them for long."""
        patience = OTHERS_HANG_SECONDS if name in ("metadata", "min-isr", "planner", "executor", "notify") else STALLED_AFTER
        return lambda: patience if self._compiled else COMPILING_SECONDS

    def _unrecordable(self) -> str | None:
        try:
            self._decisions.get()
        except ExternalError as error:
            return str(error)
        return self._decisions.broken

    def _changed(self) -> None:
        with self._watchers_lock:
            told = list(self._watchers.values())
        for tell in told:
            try:
                tell()
            except Exception:
                log.debug("a watcher failed", exc_info=True)

    # -- how it stands -------------------------------------------------------------------------------------

    def trouble(self) -> tuple[str, ...]:
        """Why the service is unhealthy, in sentences; empty where it is not."""
        found = [w.trouble for w in self._workers.values()]
        last = self._decider.last
        if last is not None and last.verdict == "failed":
            found.append(last.reason.rstrip("."))
        if self._decisions.broken is not None:
            found.append(f"{UNWRITTEN}: {self._decisions.broken.rstrip('.')}")
        server = self._server
        if server is not None and not server.alive:
            found.append(f"the HTTP interface has ended: {server.error or 'it does not say why'}; restart the service")
        return tuple(text for text in found if text is not None)

    def state(self) -> StateView:
        now = self._clock.wall_ms()
        trouble, holds = self.trouble(), self._readiness.holds(now)
        held, known, pause, newest = self._desk.current, self._leader.known, self._told.pause, self._lookout.newest
        waiting = self._decider.waits(now) if self._metadata.loaded else ()
        facts = Facts(
            now_ms=now, mode=self.config.mode, has_executor=self._executor is not None, leadership=known, trouble=trouble,
            pause=pause, holds=holds, held=held, last=self._decider.last, planning=self._decider.planning,
            cooldown_until_ms=self._decider.cooldown_until_ms, next_plan_ms=self._agenda.due_ms(),
            down=self._metadata.down, dead_after_ms=round(1000 * self.config.model.dead_after), busy=self._execution.busy,
            waits=waiting,
        )  # fmt: skip
        decides = known.leads and pause is None and not holds
        return StateView(
            version=__version__,
            cluster_id=self._metadata.cluster_id,
            instance=self._instance,
            mode=self.config.mode,
            has_executor=self._executor is not None,
            paused=pause is not None,
            now_ms=now,
            started_ms=self._started_ms,
            healthy=not trouble,
            ready=not holds,
            starting=self.starting,
            why_unhealthy=trouble,
            why_not_ready=tuple(h.text for h in holds),
            why_nothing=why_nothing(facts),
            next_plan_ms=self._agenda.due_ms() if decides else None,
            leadership=known,
            workers=tuple(w.view() for w in self._workers.values()),
            model=self._model_view(now),
            cluster=cluster_view(self._metadata.health.condition, self._metadata.loaded, waiting),
            considered_ms=self._decider.considered_ms,
            history_free=self._history_free(now),
            goals_file=self._goals.source,
            goals_digest=self._goals.current.digest,
            goals_error=self._goals.error,
            goals=newest.goals if newest is not None else (),
            brokers=newest.brokers if newest is not None else (),
            plan=held.view() if held is not None else None,
        )

    def _history_free(self, now: int) -> int | None:
        """Bytes that are free where the history is kept; looked up now and then."""
        if self._free is None or not 0 <= now - self._free[0] < FREE_EVERY_MS:
            free = None
            with suppress(OSError):
                free = shutil.disk_usage(self.config.history.folder).free
            self._free = (now, free)
        return self._free[1]

    def _model_view(self, now: int) -> ModelView:
        state, feed = self._model.state(), self._feed
        counts = state.counts
        return ModelView(
            brokers=state.brokers,
            topics=state.topics,
            partitions=state.partitions,
            newest_sample_ms=state.newest_sample_ms,
            metadata_held=self._metadata.held(now),
            stale_partitions=self._model.staleness(now).partitions if self._metadata.loaded else 0,
            waiting=state.waiting,
            bytes=state.nbytes,
            samples=counts.values,
            records=feed.records,
            decode_errors=feed.decode_errors,
            last_decode_error=feed.last_error,
            lag=feed.lag,
            lost=feed.lost,
            windows_reached={name: c.share(now) for name, c in self._coverage.items()},
            counts={name: int(getattr(counts, name)) for name in counts.__slots__},
        )

    def decisions(self, limit: int, before: int | None = None) -> tuple[DecisionView, ...]:
        try:
            found = self._decisions.get().newest(min(max(limit, 0), MOST_DECISIONS), before=before)
        except ExternalError:
            return ()
        return tuple(_decision_view(r) for r in found)

    def plan_text(self, plan_id: str | None, form: Form) -> str:
        held = self._desk.find(plan_id)
        if held is not None:
            return _rendered(held.plan, form)
        if plan_id is None:
            raise Refused("There is no plan yet.", "See why_nothing in /api/v1/state.", missing=True)
        try:
            history = self._decisions.get()
            found = history.find(plan_id)
            text = None if found is None else history.plan(found.id)
        except ExternalError as error:
            raise Refused(str(error), "Mend the history; the newest plan is to be had without it.") from error
        if text is None:
            raise Refused(f"There is no plan {plan_id}, or it is not kept any more.", "/api/v1/plans lists them.", missing=True)
        if form != "json":
            raise Refused(f"Plan {plan_id} is an old one, of which only the JSON is kept.", "Ask for that form.")
        return text

    def snapshot_text(self) -> str:
        from cluster_model.files import snapshot_json

        return snapshot_json(self._snapshot())

    def explain(self, *, broker: int | None = None, partition: str | None = None) -> str:
        from optimizer.explain import explain_partition
        from optimizer.explain_broker import explain_broker
        from optimizer.options import PlanOptions

        if (broker is None) == (partition is None):
            raise Refused("A question is about one broker or one partition.", "Name one of them.")
        known = self._decider.made
        if known is not None:
            snapshot, goals, options, made = known.looked.snapshot, known.goal_set, known.options, known.plan
            since = f"As of {clock(known.looked.at_ms)}, when the newest plan was made.\n"
        else:
            snapshot, goals, since, made = self._snapshot(), self._goals.current, "", None
            options = PlanOptions(seed=self.config.seed, acceptance=self.config.acceptance)
            if snapshot.replica_count > MOST_PLANNED_AT_ONCE:
                raise Refused("No plan has been made yet from which it could be told.", "Ask for one first; making it takes too long here.")
        try:
            if broker is not None:
                return since + explain_broker(snapshot, goals, options, broker, made)
            topic, _, number = (partition or "").rpartition("-")
            if not topic or not number.isdecimal():
                raise Refused(f"Expected TOPIC-PARTITION, found {partition!r}.", "Name it like orders-3.")
            return since + explain_partition(snapshot, goals, options, topic, int(number), made)
        except ConfigurationError as error:
            raise Refused("; ".join(p.message for p in error.problems), "/api/v1/snapshot has all there are.", missing=True) from error

    def goals_text(self) -> str:
        return goals_text(self._goals.current)

    def _snapshot(self) -> LiveSnapshot:
        if not self._metadata.loaded:
            raise Refused("The cluster's metadata is not loaded yet.", "See why_not_ready in /api/v1/state.")
        return draining(self._model.snapshot(self._clock.wall_ms(), horizon=self.config.horizon), self._told.draining)

    # -- what people say -----------------------------------------------------------------------------------

    def approve(self, plan_id: str, who: str) -> PlanView:
        held = self._desk.decide_on(plan_id, "approve")
        if held.state != "proposed":
            raise Refused(f"Plan {plan_id} is {held.state} already{f': {held.note}' if held.note else ''}.", OVER)
        if self.config.mode == "dry-run":
            first = "Instead" if self._executor is None else "Set mode: approve in the configuration, or"
            raise Refused("The mode is dry-run: plans are only shown.", f"{first} {BY_HAND}.")
        if self._executor is None:
            raise Refused("There is no executor for this cluster in this release, so nothing would happen.", f"Instead {BY_HAND}.")
        if not self._leader.known.leads:
            raise Refused(who_leads(self._leader.known), whom_to_ask(self._leader.known))
        pause = self._told.pause
        if pause is not None:
            raise Refused(f"Paused by {pause.who} since {clock(pause.since_ms)}.", "Resume first.")
        unwell = [w for w in self._decider.waits(self._clock.wall_ms()) if w.kind in UNWELL]
        if unwell and held.is_balance:
            raise Refused(f"{sentence(unwell)}", "Approve it, or the plan that is made then, when the cluster is well.")
        gone = moved_away(self._snapshot(), held.plan)
        if gone is not None:
            self._recorded(lambda: self._desk.become(held, "superseded", "superseded", "service", f"asked for by {who}, but {gone}"))
            self._cause("the cluster changed under the plan", at_once=True)
            raise Refused(f"The cluster is not as it was when plan {plan_id} was made: {gone}.", "Look at the plan that is being made now.")
        held.who = who
        self._recorded(lambda: self._desk.become(held, "approved", "approved", who))
        log.info("plan %s approved by %s", plan_id, who)
        self._workers["executor"].wake()
        return held.view()

    def reject(self, plan_id: str, who: str, why: str) -> PlanView:
        """Also stops a plan that runs: what is in progress is taken back, what is done stays."""
        held = self._desk.decide_on(plan_id, "reject")
        if held.state == "running":
            held.cancel_asked = f"stopped by {who}{f': {why}' if why else ''}"
            self._workers["executor"].wake()
            return held.view()
        if held.state not in ("proposed", "approved"):
            raise Refused(f"Plan {plan_id} is {held.state} already{f': {held.note}' if held.note else ''}.", OVER)
        self._recorded(lambda: self._desk.become(held, "rejected", "rejected", who, why))
        log.info("plan %s rejected by %s%s", plan_id, who, f": {why}" if why else "")
        return held.view()

    def rollback(self, plan_id: str, who: str) -> PlanView:
        """Bring back what a plan changed, while it runs or after it ended."""
        held = self._desk.decide_on(plan_id, "roll back")
        if held.state not in ("running", "done", "failed", "cancelled") or held.progress is None:
            raise Refused(f"Plan {plan_id} is {held.state}, and nothing of it was carried out here.", "There is nothing to roll back.")
        if not self._leader.known.leads:
            raise Refused(who_leads(self._leader.known), whom_to_ask(self._leader.known))
        held.rollback_asked = who
        log.warning("plan %s is to be rolled back, by %s", plan_id, who)
        self._workers["executor"].wake()
        return held.view()

    def pause(self, who: str, why: str) -> None:
        now = self._clock.wall_ms()
        self._recorded(lambda: self._told.set_pause(Pause(who, why, now)))
        log.warning("paused by %s%s", who, f": {why}" if why else "")
        self._changed()

    def resume(self, who: str) -> bool:
        if self._told.pause is None:
            return False
        self._recorded(lambda: self._told.set_pause(None, who, self._clock.wall_ms()))
        log.warning("resumed by %s", who)
        self._cause(f"resumed by {who}")
        return True

    def plan_now(self, who: str) -> None:
        """Raises `Refused` where nothing would come of it."""
        if not self._leader.known.leads:
            raise Refused(who_leads(self._leader.known), whom_to_ask(self._leader.known))
        pause = self._told.pause
        if pause is not None:
            raise Refused(f"Paused by {pause.who} since {clock(pause.since_ms)}.", "Resume first.")
        self._cause(f"{ASKED}{who}", at_once=True)
        self._workers["planner"].wake()

    def drain(self, broker: int, on: bool, who: str) -> None:
        known = self._metadata.known
        if on and broker not in known:
            ids = ", ".join(str(b) for b in sorted(known)[:20]) or "none yet"
            raise Refused(f"There is no broker {broker}; registered are {ids}.", "Name one of them.", missing=True)
        before = self._told.draining
        after = before | {broker} if on else before - {broker}
        if after == before:
            return
        self._recorded(lambda: self._told.set_draining(after, who, self._clock.wall_ms()))
        log.warning("broker %d %s by %s", broker, "is to be drained" if on else "is no longer to be drained", who)
        self._cause(f"{'drain' if on else 'no drain'} of broker {broker} {ASKED}{who}")

    def watch(self, told: Callable[[], None]) -> Callable[[], None]:
        with self._watchers_lock:
            self._watcher += 1
            number = self._watcher
            self._watchers[number] = told

        def end() -> None:
            with self._watchers_lock:
                self._watchers.pop(number, None)

        return end

    def _recorded(self, change: Callable[[], None]) -> None:
        try:
            change()
        except TrimtabError as error:
            message = f"It could not be written down, so it is not done: {error}."
            raise Refused(message, "Mend the history's folder, and try again.") from error


class _Both(Coverage):
    """Tells two coverages of every interval."""

    def __init__(self, *parts: Coverage) -> None:
        super().__init__(max(p.span_ms for p in parts))
        self._each = parts

    def add(self, time_ms: int, window_ms: int) -> None:
        for part in self._each:
            part.add(time_ms, window_ms)


def _nothing() -> None:
    pass


def _horizon(seconds: float, windows: int) -> Horizon:
    return Horizon(max(round(1000 * seconds / windows), 1), windows)


def _instance_name(config: ServiceConfig) -> str:
    place = f"node {config.node_id}" if config.node_id is not None else f"process {os.getpid()}"
    return f"{socket.gethostname()} {place}"


def _format(config: ServiceConfig, model: ClusterModel, incarnation: int) -> RecordFormat:
    match config.topic.format:
        case "trimtab":
            return OwnFormat()
        case "automq":
            from metrics_reporter.automq import AutoMQFormat

            return AutoMQFormat(round(1000 * config.topic.interval), incarnation=incarnation)
        case "cruise_control":
            from metrics_reporter.cruise_control import CruiseControlFormat

            return CruiseControlFormat(model.leads, lambda broker: model.capacity(broker, "cpu"), incarnation=incarnation)


def _rendered(plan: Plan, form: Form) -> str:
    from optimizer import report

    match form:
        case "json":
            return report.to_json(plan)
        case "markdown":
            return report.to_markdown(plan)
        case "html":
            return report.to_html(plan)
        case "reassignment":
            return report.to_reassignment(plan)
        case "election":
            return report.to_election(plan)
        case "text":
            from rich.console import Console

            out = io.StringIO()
            report.render_text(plan, Console(file=out, width=TEXT_WIDTH))
            return out.getvalue()


def _decision_view(recorded: Recorded) -> DecisionView:
    d = recorded.decision
    return DecisionView(
        id=recorded.id, began_ms=d.began_ms, ended_ms=d.ended_ms, instance=d.instance, cause=d.cause, mode=d.mode, verdict=d.verdict,
        reason=d.reason, plan_id=d.plan_id, actions=d.actions, replica_moves=d.replica_moves, bytes_to_move=d.bytes_to_move,
        outcomes=tuple((o.time_ms, o.kind, o.who, o.detail) for o in recorded.outcomes),
    )  # fmt: skip
