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
    from trimtab.service.look import Looked

CAUSE = "leaders are not the preferred ones"
MOST_TRIES = 3  # in a row that bring no leader back
LASTED_MS = 30_000  # leaders are away for so long before they are elected: what comes and goes within a restart is left alone


class Restoring:
    """Whether preferred leaders are to be restored now.

    Parameters
    ----------
    condition
        How well the cluster is.
    looked
        The newest look.
    alone
        Whether plans are carried out without being approved.
    """

    def __init__(self, condition: Callable[[], Condition], looked: Callable[[], Looked | None] = lambda: None, *, alone: bool) -> None:
        self._condition, self._looked, self._alone = condition, looked, alone
        self._tried_ms: int | None = None
        self._among: frozenset[tuple[str, int]] = frozenset()  # partitions that were away at the last attempt
        self._tries = 0  # of just these, in a row
        self._seen: Looked | None = None
        self._rules: tuple[object, ...] = ()  # what decides, beside leaders, which may go back

    def at_once(self, policy: Wait, found: Sequence[Waiting], now_ms: int) -> bool:
        """Whether they are elected without being asked: nothing but that, and loads that settle, is waited for."""
        since = self._condition().since.get("astray", now_ms)
        calm, lasted_ms = all(w.kind in ("leaders", "settling") for w in found), min(LASTED_MS, round(1000 * policy.leaders))
        return self._alone and policy.elect and calm and now_ms - since >= lasted_ms and self.first(policy, now_ms)

    def first(self, policy: Wait, now_ms: int) -> bool:
        """Whether they come before moves; not again for as long as Kafka is given, where trying brought nothing, and no more than
        `MOST_TRIES` times in a row: until other leaders are away, or `again`, other goals or states of brokers give hope."""
        tried = self._tried_ms is not None and now_ms - self._tried_ms < 1000 * policy.leaders
        if tried or not astray(self._condition(), policy):
            return False
        self._notice_rules()
        return self._tries < MOST_TRIES or self._among != frozenset(self._condition().health.astray)

    def tried(self, now_ms: int) -> None:
        """They are being elected now, or cannot be."""
        away = frozenset(self._condition().health.astray)
        self._tries = self._tries + 1 if self._among == away else 1
        self._tried_ms, self._among = now_ms, away

    def again(self) -> None:
        """What could not be elected may be by now."""
        self._tries = 0

    def _notice_rules(self) -> None:
        looked = self._looked()
        if looked is None or looked is self._seen:
            return
        snapshot = looked.snapshot
        rules = (looked.goal_set.digest, snapshot.broker_ids.tobytes(), snapshot.broker_states.tobytes())
        if rules != self._rules:
            self.again()
        self._seen, self._rules = looked, rules


def restored(plan: Plan) -> str:
    """What a plan of preferred leaders does, in a sentence."""
    changes = plan.summary.leadership_changes
    if not changes:
        return "No preferred leader can be restored: their brokers are draining, excluded or slow, or a hard goal would get worse."
    are, their = ("is", "its") if changes == 1 else ("are", "their")
    which = f"{count(changes, 'partition')} {are} given back to {their} preferred leader{'' if changes == 1 else 's'}"
    return f"{which}, which copies nothing and comes before any move."
