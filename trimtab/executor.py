"""The seam behind which an approved plan is carried out: hand over proposals, ask how far they are.

Known to the service and the demo. The simulated cluster's stands in `trimtab.simulator.executor`; there is none for real
Kafka in this release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from optimizer.plan import Change


@dataclass(frozen=True, slots=True)
class Failure:
    """A proposal that was not carried out, and why."""

    topic: str
    partition: int
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an execution is: proposals by state, and bytes copied of bytes to copy in all."""

    waiting: int
    moving: int
    done: int
    failed: tuple[Failure, ...]
    bytes_copied: float
    bytes_total: float

    @property
    def finished(self) -> bool:
        return self.waiting == 0 and self.moving == 0


class Executor(Protocol):
    """Carries out one plan at a time; called from one thread."""

    def submit(self, plan_id: str, proposals: Sequence[Change]) -> None:
        """Take an approved plan; nothing happens before the first `poll`."""
        ...

    def poll(self) -> Progress:
        """Look at the cluster, take the next safe steps, and say how far it is."""
        ...

    def cancel(self) -> Progress:
        """Take back what is in progress, drop what waits, leave no throttle; what is done stays."""
        ...

    def release(self) -> Progress:
        """Forget the plan without touching the cluster, because another instance decides now: what is in progress goes on
        by itself, what waits is dropped. The other one finds it as a reassignment in progress."""
        ...
