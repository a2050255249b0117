"""When preferred leaders are restored, which copies nothing and comes before any move, and what is said of it.

Asked by `trimtab.service.decider`, in its thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from optimizer.report.units import count
from trimtab.service.health import Condition
from trimtab.service.unwell import Waiting, astray

if TYPE_CHECKING:
    from goals.waiting import Wait
    from optimizer.plan import Plan

CAUSE = "leaders are not the preferred ones"
LASTED_MS = 30_000  # leaders are away for so long before they are elected: what comes and goes within a restart is left alone


class Restoring:
    """Whether preferred leaders are to be restored now.

    Parameters
    ----------
    condition
        How well the cluster is.
    alone
        Whether plans are carried out without being approved.
    """

    def __init__(self, condition: Callable[[], Condition], *, alone: bool) -> None:
        self._condition, self._alone = condition, alone
        self._tried_ms: int | None = None

    def at_once(self, policy: Wait, found: Sequence[Waiting], now_ms: int) -> bool:
        """Whether they are elected without being asked: nothing but that, and loads that settle, is waited for."""
        since = self._condition().since.get("astray", now_ms)
        calm = all(w.kind in ("leaders", "settling") for w in found)
        return self._alone and policy.elect and calm and now_ms - since >= LASTED_MS and self.first(policy, now_ms)

    def first(self, policy: Wait, now_ms: int) -> bool:
        """Whether they come before moves; not again for as long as Kafka is given, where trying brought nothing."""
        tried = self._tried_ms is not None and now_ms - self._tried_ms < 1000 * policy.leaders
        return not tried and astray(self._condition(), policy)

    def tried(self, now_ms: int) -> None:
        """They are being elected now, or cannot be."""
        self._tried_ms = now_ms


def restored(plan: Plan) -> str:
    """What a plan of preferred leaders does, in a sentence."""
    changes = plan.summary.leadership_changes
    if not changes:
        return "No preferred leader can be restored: topics are excluded or frozen, or a hard goal would get worse."
    are, their = ("is", "its") if changes == 1 else ("are", "their")
    which = f"{count(changes, 'partition')} {are} given back to {their} preferred leader{'' if changes == 1 else 's'}"
    return f"{which}, which copies nothing and comes before any move."
