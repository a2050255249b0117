"""A service for tests of what shows it: `FakeFace` stands in for the balancer, with states as a real one would have them.

`small()` is the shipped example of twelve skewed brokers with a real plan; `large()` has as many brokers as wanted.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal

from rich.console import Console

from goals.document import load_goals
from optimizer.plan import BrokerOutcome, Plan
from optimizer.planner import plan
from optimizer.report import render_text, to_election, to_html, to_json, to_markdown, to_reassignment
from trimtab import read_snapshot
from trimtab.service.views import (
    BrokerView,
    ClusterView,
    DecisionView,
    ExecutionVerb,
    ExecutionView,
    GoalView,
    Leadership,
    ModelView,
    MovingView,
    PlanView,
    Refused,
    StateView,
    WorkerView,
)

EXAMPLES = Path(__file__).parents[1] / "examples"
NOW = 1_790_000_000_000
SHOWN = ("network_in", "network_out", "cpu", "disk", "replicas", "leaders")


class FakeFace:
    """Keeps what it was asked to do in `done`; `change` alters the state as if something had happened.

    Attributes
    ----------
    gate
        Every question waits for it: clear it, and the service hangs.
    fails
        Raised instead of the next states.
    """

    def __init__(self, state: StateView, made: Plan | None, decisions: tuple[DecisionView, ...] = ()) -> None:
        self.now = state
        self.made = made
        self.past = decisions
        self.done: list[tuple[Any, ...]] = []
        self.asked = 0
        self.gate = threading.Event()
        self.gate.set()
        self.fails: Exception | None = None
        self.rewrite: Callable[[str], str] = str
        self.watching: list[Callable[[], None]] = []

    def change(self, **fields: object) -> None:
        self.now = self.now.model_copy(update=fields)
        self.tell()

    def tell(self) -> None:
        for told in tuple(self.watching):
            told()

    def _plan(self, **fields: object) -> PlanView:
        assert self.now.plan is not None
        after = self.now.plan.model_copy(update=fields)
        self.change(plan=after, why_nothing=())
        return after

    # --- what the interface asks --------------------------------------------------------------------------------------

    def state(self) -> StateView:
        self.gate.wait()
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        return self.now

    def decisions(self, limit: int, before: int | None = None) -> tuple[DecisionView, ...]:
        self.gate.wait()
        return tuple(d for d in self.past if before is None or d.id < before)[:limit]

    def plan_text(self, plan_id: str | None, form: Literal["json", "text", "markdown", "html", "reassignment", "election"]) -> str:
        self.gate.wait()
        if self.made is None:
            raise Refused("There is no plan yet.", "See why_nothing.", missing=True)
        if plan_id not in (None, self.made.plan_id):
            raise Refused(f"There is no plan {plan_id}; the newest is {self.made.plan_id}.", "Look at that one.", missing=True)
        match form:
            case "json":
                return self.rewrite(to_json(self.made))
            case "markdown":
                return to_markdown(self.made)
            case "html":
                return to_html(self.made)
            case "reassignment":
                return to_reassignment(self.made)
            case "election":
                return to_election(self.made)
        console = Console(width=100)
        with console.capture() as text:
            render_text(self.made, console)
        return text.get()

    def snapshot_text(self) -> str:
        self.gate.wait()
        return (EXAMPLES / "three-brokers.json").read_text()

    def explain(self, *, broker: int | None = None, partition: str | None = None) -> str:
        self.gate.wait()
        if broker is not None and all(b.id != broker for b in self.now.brokers):
            raise Refused(f"There is no broker {broker} in the cluster.", "Name another one.", missing=True)
        return f"Broker {broker} holds too many leaders.\n" if partition is None else f"{partition} is where it should be.\n"

    def goals_text(self) -> str:
        self.gate.wait()
        return (EXAMPLES / "goals.yaml").read_text()

    def approve(self, plan_id: str, who: str) -> PlanView:
        self.gate.wait()
        self._check(plan_id)
        self.done.append(("approve", plan_id, who))
        return self._plan(state="approved")

    def reject(self, plan_id: str, who: str, why: str) -> PlanView:
        self._check(plan_id)
        self.done.append(("reject", plan_id, who, why))
        return self._plan(state="rejected", note=why)

    def _check(self, plan_id: str) -> None:
        if self.now.plan is None or self.now.plan.plan_id != plan_id:
            raise Refused(f"Plan {plan_id} is not the newest one.", "Look at it again.", missing=True)
        if self.now.plan.state != "proposed":
            raise Refused(f"Plan {plan_id} is {self.now.plan.state} already.", "Ask for a newer one.")

    def rollback(self, plan_id: str, who: str) -> PlanView:
        if self.now.plan is None or self.now.plan.plan_id != plan_id:
            raise Refused(f"Plan {plan_id} is not the newest one.", "Look at it again.", missing=True)
        self.done.append(("rollback", plan_id, who))
        return self._plan(state="running", note="being taken back")

    def execution_text(self) -> str:
        if self.now.execution is None:
            raise Refused("No execution is known here.", "Ask another instance.", missing=True)
        return json.dumps({"version": 1, "plan_id": self.now.execution.plan_id})

    def _carried_out(self, plan_id: str, verb: ExecutionVerb, **fields: object) -> None:
        found = self.now.execution
        if found is None or found.plan_id != plan_id:
            raise Refused(f"Plan {plan_id} is not being carried out.", "Look again.", missing=True)
        if verb not in found.can:
            raise Refused(f"Plan {plan_id} is {found.state}.", f"There is nothing to {verb}.")
        self.change(execution=found.model_copy(update=fields))

    def cancel_execution(self, plan_id: str, who: str, why: str, finish: bool) -> None:
        self._carried_out(plan_id, "cancel", direction="cancel", why=f"cancelled by {who}", can=("pause", "rollback"))
        self.done.append(("cancel", plan_id, who, why, finish))

    def rollback_execution(self, plan_id: str, who: str) -> None:
        self._carried_out(plan_id, "rollback", direction="rollback", why=f"rolled back by {who}", can=("pause",))
        self.done.append(("rollback", plan_id, who))

    def pause(self, who: str, why: str) -> None:
        self.done.append(("pause", who, why))
        self.change(paused=True, why_nothing=(f"{who} paused the service.",))

    def resume(self, who: str) -> bool:
        was = self.now.paused
        self.done.append(("resume", who))
        self.change(paused=False, why_nothing=())
        return was

    def plan_now(self, who: str) -> None:
        self.done.append(("plan", who))

    def drain(self, broker: int, on: bool, who: str) -> None:
        if all(b.id != broker for b in self.now.brokers):
            raise Refused(f"There is no broker {broker} in the cluster.", "Name another one.", missing=True)
        self.done.append(("drain", broker, on, who))
        update = {"state": "draining" if on else "active", "drained": False}
        self.change(brokers=tuple(b.model_copy(update=update) if b.id == broker else b for b in self.now.brokers))

    def watch(self, told: Callable[[], None]) -> Callable[[], None]:
        self.watching.append(told)
        return lambda: self.watching.remove(told)


@cache
def example_plan() -> Plan:
    """A real plan of the shipped example."""
    return plan(read_snapshot(EXAMPLES / "skewed-12-brokers.json.gz"), load_goals(EXAMPLES / "goals.yaml"))


def small() -> FakeFace:
    """Twelve skewed brokers; a plan waits for approval."""
    made = example_plan()
    means = {g.resource: g.before.mean for g in made.goals if g.before and g.before.mean and g.resource}
    brokers = tuple(_broker(b, means, made) for b in made.brokers)
    goals = tuple(
        GoalView(
            name=g.name,
            kind=g.kind,
            resource=g.resource,
            hard=g.hard,
            weight=g.weight,
            violations=g.before.violations if g.before else None,
            in_band=g.before.in_band if g.before else None,
            max_deviation=g.before.max_deviation if g.before else None,
            bound=0.1 if g.kind == "usage_distribution" else None,
            skipped=None if g.before else g.explanation,
        )
        for g in made.goals
    )
    goals += (
        GoalView(
            name="produce_rate", kind="usage_distribution", resource="produce_rate", hard=False, weight=1.0, violations=None, in_band=None,
            max_deviation=None, bound=0.1, skipped="no broker reports produce_rate",
        ),
    )  # fmt: skip
    return FakeFace(_state(brokers, goals, made, partitions=1522), made, _decisions(made))


def executing(made: Plan, **other: Any) -> ExecutionView:
    """The plan of a face, on its way."""
    moving = tuple(
        MovingView(
            topic=p.topic, partition=p.partition, replicas=p.replicas_after, bytes_copied=3e8, bytes_total=1e9, rate=5e6, seconds_left=140.0
        )
        for p in made.proposals[:6]
    )
    of: dict[str, Any] = {
        "plan_id": made.plan_id, "state": "running", "direction": "forward", "why": "", "instance": "controller-3 node 3", "here": True,
        "paused": "", "waits": "", "counts": {"waiting": 180, "moving": 6, "done": 14}, "total": 200, "final": 14,
        "bytes_copied": 1.2e9, "bytes_total": 9.6e9, "rate": 3.1e7, "seconds_left": 271.0, "throttle": 50_000_000, "throttle_why": "",
        "throttles_left": 24, "unchanged": 0, "moving_count": 6,
        "moving": moving, "batch": 0, "batches": 0, "can": ("pause", "cancel", "rollback"), "why_not": "",
    }  # fmt: skip
    return ExecutionView(**{**of, **other})


def large(brokers: int = 1000) -> FakeFace:
    """So many brokers in six racks, some outside their range, with six resources each; the small one's plan."""
    made = example_plan()
    chance = Random(7)
    spread = [chance.random() for _ in range(brokers)]
    views = []
    for i, s in enumerate(spread):
        share = {r: round(1 + (((s * (k + 3)) % 1) - 0.5) * (0.9 if s > 0.9 else 0.18), 4) for k, r in enumerate(SHOWN)}
        loads = {r: v * 123_456_789.125 for r, v in share.items()}
        out = tuple(r.replace("_", "-") for r, v in share.items() if abs(v - 1) > 0.1)
        voice = "silent" if i == 17 else "late" if i % 97 == 5 else "fresh"
        views.append(
            BrokerView(id=i + 1, rack=f"rack-{i % 6}", state="active", voice=voice, loads=loads, share_of_mean=share, violates=out)
        )
    goals = tuple(
        GoalView(
            name=r.replace("_", "-"), kind="usage_distribution", resource=r, hard=False, weight=1.0,
            violations=sum(1 for b in views if r.replace("_", "-") in b.violates),
            in_band=sum(1 for b in views if r.replace("_", "-") not in b.violates) / brokers,
            max_deviation=max(abs(b.share_of_mean[r] - 1) for b in views), bound=0.1,
        )
        for r in SHOWN
    )  # fmt: skip
    return FakeFace(_state(tuple(views), goals, made, partitions=1_000_000 // 3), made, _decisions(made))


def _broker(b: BrokerOutcome, means: dict[str, float], made: Plan) -> BrokerView:
    return BrokerView(
        id=b.id,
        rack=b.rack,
        state=b.state,
        voice="late" if b.id == 5 else "fresh",
        loads=b.before,
        share_of_mean={r: b.before[r] / mean for r, mean in means.items() if r in b.before},
        violates=tuple(g.name for g in made.goals if b.scores_before.get(g.name, 1.0) < 1.0),
    )


def _state(brokers: tuple[BrokerView, ...], goals: tuple[GoalView, ...], made: Plan, partitions: int) -> StateView:
    workers = [("metadata", 140), ("samples", 90), ("planner", 2300), ("executor", 800), ("history", 4100), ("http", 12)]
    return StateView(
        version="0.1.0",
        cluster_id=made.cluster_id,
        instance="controller-3",
        mode="approve",
        has_executor=True,
        paused=False,
        now_ms=NOW,
        started_ms=NOW - 86_400_000,
        healthy=True,
        ready=True,
        why_unhealthy=(),
        why_not_ready=(),
        why_nothing=(),
        next_plan_ms=NOW + 42_000,
        leadership=Leadership(node=3, controller=3, epoch=17, leads=True, checked_ms=NOW - 900),
        workers=tuple(WorkerView(name=name, alive=True, beat_age_ms=age) for name, age in workers),
        model=ModelView(
            brokers=len(brokers),
            topics=143,
            partitions=partitions,
            newest_sample_ms=NOW - 3200,
            metadata_held=None,
            stale_partitions=7,
            waiting=0,
            bytes=412_000_000,
            samples=91_234_567,
            records=1_234_567,
            decode_errors=3,
            last_decode_error="record 1234 of partition 0: expected magic TTMB, found 7b22",
            lag=128,
            lost=0,
            windows_reached={"short": 1.0, "long": 0.42},
            counts={"batches": 1_234_564, "values": 91_234_567, "repeated": 12, "from the future": 0},
        ),
        cluster=ClusterView(known=True, partitions=partitions, lives={"serving": len(brokers)}),
        considered_ms=NOW - 65_000,
        history_free=52_000_000_000,
        goals_file="/etc/trimtab/goals.yaml",
        goals_digest="sha256:5c1d0e",
        goals_error=None,
        goals=goals,
        brokers=brokers,
        plan=PlanView(
            plan_id=made.plan_id,
            decision_id=41,
            made_ms=NOW - 65_000,
            state="proposed",
            actions=made.summary.actions,
            replica_moves=made.summary.replica_moves,
            leadership_changes=made.summary.leadership_changes,
            bytes_to_move=made.summary.bytes_to_move,
            progress=None,
        ),
    )


def _decisions(made: Plan) -> tuple[DecisionView, ...]:
    """Forty-one of them, newest first."""
    newest = _decision(41, "broker added", "planned", "12 brokers are outside their target range.", made.plan_id, made)
    other = "sha256:" + "ab" * 32
    outcomes = (
        (NOW - 3_500_000, "approved", "Ana", ""),
        (NOW - 3_490_000, "started", "executor", ""),
        (NOW - 2_000_000, "done", "executor", "677 replica moves in 25 min"),
    )
    return (
        newest,
        _decision(40, "interval", "refused", "Samples of broker 5 are older than 60 s.", None),
        _decision(39, "interval", "failed", "The controller did not answer: timed out after 10 s.", None),
        _decision(38, "interval", "planned", "3 brokers are outside their target range.", other, made, outcomes),
        *(_decision(i, "interval", "nothing", "All brokers are within their target range.", None) for i in range(37, 0, -1)),
    )


def _decision(
    number: int,
    cause: str,
    verdict: Literal["planned", "nothing", "refused", "failed"],
    reason: str,
    plan_id: str | None,
    made: Plan | None = None,
    outcomes: tuple[tuple[int, str, str, str], ...] = (),
) -> DecisionView:
    ended = NOW - 65_000 - (41 - number) * 300_000
    return DecisionView(
        id=number,
        began_ms=ended - 1800,
        ended_ms=ended,
        instance="controller-3",
        cause=cause,
        mode="approve",
        verdict=verdict,
        reason=reason,
        plan_id=plan_id,
        actions=made.summary.actions if made else 0,
        replica_moves=made.summary.replica_moves if made else 0,
        bytes_to_move=made.summary.bytes_to_move if made else 0,
        outcomes=outcomes,
    )
