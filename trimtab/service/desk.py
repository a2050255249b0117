"""The plan in hand: proposed, approved or not, carried out or not. One at a time.

What becomes of it is written to the history before anything is done about it. Any thread may ask; state changes are made under one
lock, and nothing here talks to a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Literal

from metrics_reporter.reporter import Clock
from trimtab.executor import Progress
from trimtab.history.records import Outcome, OutcomeKind
from trimtab.service.keeping import DecisionKeeper
from trimtab.service.views import Mode, PlanView, Refused

if TYPE_CHECKING:
    from optimizer.plan import Plan

State = Literal["proposed", "approved", "rejected", "running", "done", "failed", "superseded", "cancelled"]
OPEN: tuple[State, ...] = ("proposed", "approved", "running")
REMEMBERED = 2  # plans in full: at a million replicas one takes some hundred MB


@dataclass(eq=False)
class Held:
    """A plan, and what became of it so far. `told` is what outcomes told of so far: moves, leaderships, bytes."""

    plan: Plan
    decision_id: int
    made_ms: int
    state: State = "proposed"
    note: str = ""
    who: str = ""
    progress: Progress | None = None
    told: tuple[int, int, int] = (0, 0, 0)
    cancel_asked: str | None = None
    rollback_asked: str | None = None  # by whom
    changed_ms: int = field(default=0)
    is_balance: bool = True  # not only repairs
    restores: bool = False  # preferred leaders, and nothing else
    demotes: bool = False  # slow brokers, and nothing else

    @cached_property
    def left_out(self) -> int:
        """Brokers that would be outside a target range or limit after it."""
        return sum(1 for b in self.plan.brokers if b.violates)

    @property
    def share(self) -> float | None:
        """0..1 of the proposals carried out; None before it runs."""
        p = self.progress
        if p is None:
            return None
        total = p.waiting + p.moving + p.done + len(p.failed)
        return (p.done + len(p.failed)) / total if total else 1.0

    def view(self) -> PlanView:
        summary = self.plan.summary
        return PlanView(
            plan_id=self.plan.plan_id, decision_id=self.decision_id, made_ms=self.made_ms, state=self.state,
            actions=summary.actions, replica_moves=summary.replica_moves, leadership_changes=summary.leadership_changes,
            bytes_to_move=summary.bytes_to_move, progress=self.share, note=self.note, left_out=self.left_out, is_balance=self.is_balance,
            restores=self.restores, demotes=self.demotes,
        )  # fmt: skip


def note_of(mode: Mode, has_executor: bool) -> str:
    """What is said beside a plan that was just made."""
    match mode, has_executor:
        case "dry-run", _:
            return "mode is dry-run: it is shown, and cannot be carried out"
        case _, False:
            return "there is no executor for this cluster in this release: it is shown, and cannot be carried out"
        case "approve", _:
            return "waits for approval"
    return ""


class PlanDesk:
    """Holds the newest plan, and the few before it in full.

    Parameters
    ----------
    became
        Called when there is another plan, or another state of one, with what was written of it. It must not wait.
    """

    def __init__(
        self, decisions: DecisionKeeper, clock: Clock, changed: Callable[[], None],
        became: Callable[[Held, OutcomeKind | None], None] | None = None,
    ) -> None:  # fmt: skip
        self._decisions, self._clock, self._changed, self._became = decisions, clock, changed, became
        self._lock = RLock()
        self._held: list[Held] = []  # newest last

    @property
    def current(self) -> Held | None:
        with self._lock:
            return self._held[-1] if self._held else None

    @property
    def open(self) -> Held | None:
        """The current plan where something may still become of it."""
        held = self.current
        return held if held is not None and held.state in OPEN else None

    def find(self, plan_id: str | None) -> Held | None:
        """A plan that is still there in full; the newest for None."""
        with self._lock:
            if plan_id is None:
                return self.current
            return next((h for h in reversed(self._held) if h.plan.plan_id == plan_id), None)

    def put(self, held: Held) -> None:
        """Hold a new plan; call `supersede` for the one before first."""
        with self._lock:
            self._held = [*self._held, held][-REMEMBERED:]
        self._tell(held, None)

    def become(
        self, held: Held, state: State, kind: OutcomeKind | None, who: str, detail: str = "",
        amounts: tuple[int, int, int] = (0, 0, 0), *, note: str | None = None,
    ) -> None:  # fmt: skip
        """Write what comes of a plan (no `kind`: nothing is written), then change its state.

        Raises
        ------
        ExternalError
            It could not be written; the state is as before.
        """
        with self._lock:
            now = self._clock.wall_ms()
            if kind is not None:
                self._decisions.get().add_outcome(held.decision_id, Outcome(now, kind, who, detail, *amounts))
            held.state, held.note, held.changed_ms = state, detail if note is None else note, now
            held.told = (held.told[0] + amounts[0], held.told[1] + amounts[1], held.told[2] + amounts[2])
        self._tell(held, kind)

    def end_unwritten(self, held: Held, state: State, kind: OutcomeKind, note: str) -> None:
        """What came of a plan, where it cannot be written down."""
        with self._lock:
            held.state, held.note = state, note
        self._tell(held, kind)

    def _tell(self, held: Held, kind: OutcomeKind | None) -> None:
        if self._became is not None:
            self._became(held, kind)
        self._changed()

    def supersede(self, why: str, *, record: bool) -> None:
        """Give up the plan that waits, if one does."""
        with self._lock:
            held = self.open
            if held is not None and held.state in ("proposed", "approved"):
                self.become(held, "superseded", "superseded" if record else None, "service", why)

    def decide_on(self, plan_id: str, verb: str) -> Held:
        """The plan in hand where `plan_id` is its name.

        Raises
        ------
        Refused
            It is another one, or nothing can be decided about it any more.
        """
        held = self.find(plan_id)
        if held is None:
            current = self.current
            now = f"; the newest is {current.plan.plan_id}" if current is not None else ""
            raise Refused(f"There is no plan {plan_id} in hand{now}.", "Look at the newest plan first.", missing=True)
        if held is not self.current:
            raise Refused(f"Plan {plan_id} was superseded by {self._held[-1].plan.plan_id}.", f"Look at that one, and {verb} it instead.")
        return held
