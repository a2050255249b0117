"""The seam behind which an approved plan is carried out: hand over proposals, ask how far they are.

Known to the service and the demo. `trimtab.execution.executor` stands behind it, on a real cluster as on the simulated one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from trimtab.execution.ledger import Document, Documents
from trimtab.execution.order import Order
from trimtab.execution.progress import Standing
from trimtab.execution.recorded import Wish


@dataclass(frozen=True, slots=True)
class Failure:
    """A proposal that was not carried out, and why."""

    topic: str
    partition: int
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an execution is: proposals by state, bytes copied of bytes to copy in all, and why no step is taken where none is."""

    waiting: int
    moving: int
    done: int
    failed: tuple[Failure, ...]
    bytes_copied: float
    bytes_total: float
    waits: str = ""

    @property
    def finished(self) -> bool:
        return self.waiting == 0 and self.moving == 0


@dataclass(frozen=True, slots=True)
class Left:
    """What `Executor.recover` found: the plan that is carried on from now on, or a sentence on who else is at work; both empty where
    nothing is unfinished."""

    plan_id: str = ""
    busy: str = ""


@dataclass(frozen=True, slots=True)
class Moved:
    """Partitions, topic and number, whose replicas an execution has moved, wholly or not, there or back; `time_ms` is when it ended, or
    now."""

    plan_id: str
    time_ms: int
    partitions: tuple[tuple[str, int], ...]


class Executor(Protocol):
    """Carries out one plan at a time; called from one thread."""

    def submit(self, order: Order) -> None:
        """Take an approved plan; nothing happens before the first `poll`."""
        ...

    def recover(self) -> Left:
        """Look for an execution that another process, or this one before it was killed, left unfinished, and take it over where
        nothing was heard of that process for long. Takes off throttles that an execution before could not."""
        ...

    def poll(self, held: str = "") -> Progress:
        """Look at the cluster, take the next safe steps, and say how far it is. `held` is why no step of the plan may start now."""
        ...

    def pause(self, who: str) -> None:
        """Take no further step until `resume`; what is in progress goes on, and `poll` goes on looking."""
        ...

    def resume(self) -> None: ...

    def rollback(self, plan_id: str, who: str) -> int:
        """From the next `poll` on, bring back what this plan changed, also after its end; how many partitions that are.

        Raises
        ------
        ExternalError
            Another plan was carried out on the cluster since, or another instance is carrying one out.
        """
        ...

    def wish(self, wish: Wish) -> None:
        """Pause, resume, cancel or roll back the execution that is in progress, whichever process carries it out; where it is another one,
        that one hears of it and this does not wait.

        Raises
        ------
        ExternalError
            Nothing is in progress, or it cannot be told.
        """
        ...

    def standing(self) -> Standing | None:
        """How the newest execution that is known stands, as `poll` or `recover` found it last. Asks nothing of the cluster."""
        ...

    def cancel(self) -> Progress:
        """Take back what is in progress, drop what waits, leave no throttle; what is done stays."""
        ...

    def moved(self) -> Moved | None:
        """What the newest execution that is known has moved, whichever process carried it out; None where none is known. Asks nothing of
        the cluster."""
        ...

    def release(self) -> Progress:
        """Forget the plan without touching the cluster, because another instance decides now: what is in progress goes on by
        itself, and the other one takes the rest over with `recover`."""
        ...

    def told(self) -> Documents:
        """What people told the cluster, through whatever instance or command: a pause, and brokers to drain."""
        ...

    def tell(self, key: str, document: Document) -> None:
        """Write one of these down for every instance."""
        ...

    def close(self) -> None:
        """Let go of connections; what is in progress goes on."""
        ...
