"""How the service stands, and what it can tell: its state, decisions, plans, the snapshot and explanations.

Asked by `trimtab.service.balancer` for the HTTP interface, from any thread. Changes nothing.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Protocol

from cluster_model.errors import ConfigurationError, ExternalError
from cluster_model.trust import LiveSnapshot
from trimtab import __version__
from trimtab.execution.people import as_draining
from trimtab.execution.progress import document
from trimtab.service.decider import UNWRITTEN
from trimtab.service.executing import execution_view
from trimtab.service.goals import goals_text
from trimtab.service.parts import Parts
from trimtab.service.unwell import cluster_view
from trimtab.service.views import DecisionView, ModelView, Refused, StateView
from trimtab.service.words import Facts, clock, why_nothing

if TYPE_CHECKING:
    from optimizer.plan import Plan
    from trimtab.history.records import Recorded

FREE_EVERY_MS = 10_000
TEXT_WIDTH = 120
MOST_DECISIONS = 1000
MOST_PLANNED_AT_ONCE = 50_000  # replicas that are planned for while a caller waits
Form = Literal["json", "text", "markdown", "html", "reassignment", "election"]


class Server(Protocol):
    @property
    def alive(self) -> bool: ...
    @property
    def error(self) -> str | None: ...
    def stop(self) -> None: ...


class ReadModel:
    """What is read of a service.

    Parameters
    ----------
    starting
        How far the start is, in a sentence; None where it is over.
    interface
        The HTTP interface; None where there is none.
    """

    def __init__(self, parts: Parts, *, starting: Callable[[], str | None], interface: Callable[[], Server | None]) -> None:
        self._parts, self._starting, self._interface = parts, starting, interface
        self._free: tuple[int, int | None] | None = None

    def trouble(self) -> tuple[str, ...]:
        """Why the service is unhealthy, in sentences; empty where it is not."""
        parts = self._parts
        found = [w.trouble for w in parts.workers.values()]
        last = parts.decider.last
        if last is not None and last.verdict == "failed":
            found.append(last.reason.rstrip("."))
        if parts.decisions.broken is not None:
            found.append(f"{UNWRITTEN}: {parts.decisions.broken.rstrip('.')}")
        server = self._interface()
        if server is not None and not server.alive:
            found.append(f"the HTTP interface has ended: {server.error or 'it does not say why'}; restart the service")
        return tuple(text for text in found if text is not None)

    def state(self) -> StateView:
        parts = self._parts
        now = parts.clock.wall_ms()
        trouble, holds = self.trouble(), parts.readiness.holds(now)
        held, known, pause, newest = parts.desk.current, parts.leader.known, parts.told.pause, parts.lookout.newest
        waiting = parts.decider.waits(now) if parts.metadata.loaded else ()
        facts = Facts(
            now_ms=now, mode=parts.config.mode, has_executor=parts.has_executor, leadership=known, trouble=trouble,
            pause=pause, holds=holds, held=held, last=parts.decider.last, planning=parts.decider.planning,
            cooldown_until_ms=parts.decider.cooldown_until_ms, next_plan_ms=parts.agenda.due_ms(),
            down=parts.metadata.down, dead_after_ms=round(1000 * parts.config.model.dead_after), busy=parts.execution.busy,
            waits=waiting,
        )  # fmt: skip
        decides = known.leads and pause is None and not holds
        standing, here = parts.execution.standing, parts.execution.here
        return StateView(
            version=__version__,
            cluster_id=parts.metadata.cluster_id,
            instance=parts.instance,
            mode=parts.config.mode,
            has_executor=parts.has_executor,
            paused=pause is not None,
            now_ms=now,
            started_ms=parts.started_ms,
            healthy=not trouble,
            ready=not holds,
            starting=self._starting(),
            why_unhealthy=trouble,
            why_not_ready=tuple(h.text for h in holds),
            why_nothing=why_nothing(facts),
            next_plan_ms=parts.agenda.due_ms() if decides else None,
            leadership=known,
            workers=tuple(w.view() for w in parts.workers.values()),
            model=self._model_view(now),
            cluster=cluster_view(parts.metadata.health.condition, parts.metadata.loaded, waiting, parts.log_dirs.known),
            considered_ms=parts.decider.considered_ms,
            history_free=self._history_free(now),
            goals_file=parts.goals.source,
            goals_digest=parts.goals.current.digest,
            goals_error=parts.goals.error,
            goals_stale=parts.goals.stale,
            goals=newest.goals if newest is not None else (),
            brokers=newest.brokers if newest is not None else (),
            plan=held.view() if held is not None else None,
            execution=None
            if standing is None
            else execution_view(standing, here=here, paused=pause is not None, leadership=known),
        )

    def execution_text(self) -> str:
        found = self._parts.execution.standing
        if found is None:
            raise Refused("No execution is known here.", "Ask the instance that leads, or `trimtab status`.", missing=True)
        return json.dumps(document(found, working=self._parts.execution.here))

    def _history_free(self, now: int) -> int | None:
        """Bytes that are free where the history is kept; looked up now and then."""
        if self._free is None or not 0 <= now - self._free[0] < FREE_EVERY_MS:
            free = None
            with suppress(OSError):
                free = shutil.disk_usage(self._parts.config.history.folder).free
            self._free = (now, free)
        return self._free[1]

    def _model_view(self, now: int) -> ModelView:
        parts = self._parts
        state, feed = parts.model.state(), parts.feed
        counts = state.counts
        return ModelView(
            brokers=state.brokers,
            topics=state.topics,
            partitions=state.partitions,
            newest_sample_ms=state.newest_sample_ms,
            metadata_held=parts.metadata.held(now),
            stale_partitions=parts.model.staleness(now).partitions if parts.metadata.loaded else 0,
            waiting=state.waiting,
            bytes=state.nbytes,
            samples=counts.values,
            records=feed.records,
            decode_errors=feed.decode_errors,
            last_decode_error=feed.last_error,
            lag=feed.lag,
            lost=feed.lost,
            windows_reached={name: c.share(now) for name, c in parts.coverage.items()},
            counts={name: int(getattr(counts, name)) for name in counts.__slots__},
        )

    def decisions(self, limit: int, before: int | None = None) -> tuple[DecisionView, ...]:
        try:
            found = self._parts.decisions.get().newest(min(max(limit, 0), MOST_DECISIONS), before=before)
        except ExternalError:
            return ()
        return tuple(_decision_view(r) for r in found)

    def plan_text(self, plan_id: str | None, form: Form) -> str:
        held = self._parts.desk.find(plan_id)
        if held is not None:
            return _rendered(held.plan, form)
        if plan_id is None:
            raise Refused("There is no plan yet.", "See why_nothing in /api/v1/state.", missing=True)
        try:
            history = self._parts.decisions.get()
            found = history.find(plan_id)
            text = None if found is None else history.plan(found.id)
        except ExternalError as error:
            unknown = self._parts.metadata.cluster_id is None  # of whose decisions it is
            remedy = "Try again when it answers" if unknown else "Repair the history; the newest plan is available without it"
            raise Refused(str(error), f"{remedy}.") from error
        if text is None:
            raise Refused(f"There is no plan {plan_id}, or it is not kept any more.", "/api/v1/plans lists them.", missing=True)
        if form != "json":
            raise Refused(f"Plan {plan_id} is an old one, of which only the JSON is kept.", "Ask for that form.")
        return text

    def snapshot_text(self) -> str:
        from cluster_model.files import snapshot_json

        return snapshot_json(self.snapshot())

    def explain(self, *, broker: int | None = None, partition: str | None = None) -> str:
        from optimizer.explain import explain_partition
        from optimizer.explain_broker import explain_broker
        from optimizer.options import PlanOptions

        parts = self._parts
        if (broker is None) == (partition is None):
            raise Refused("A question is about one broker or one partition.", "Name one of them.")
        known = parts.decider.made
        if known is not None:
            snapshot, goals, options, made = known.looked.snapshot, known.goal_set, known.options, known.plan
            since = f"As of {clock(known.looked.at_ms)}, when the newest plan was made.\n"
        else:
            snapshot, goals, since, made = self.snapshot(), parts.goals.current, "", None
            options = PlanOptions(seed=parts.config.seed, acceptance=parts.config.acceptance)
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
        return goals_text(self._parts.goals.current)

    def snapshot(self) -> LiveSnapshot:
        """The cluster of this moment, drains applied. Raises `Refused` while there is no metadata."""
        parts = self._parts
        if not parts.metadata.loaded:
            raise Refused("The cluster's metadata is not loaded yet.", "See why_not_ready in /api/v1/state.")
        return as_draining(parts.model.snapshot(parts.clock.wall_ms(), horizon=parts.config.horizon), parts.told.draining)


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
