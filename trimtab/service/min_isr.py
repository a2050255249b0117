"""How many replicas of a topic have to be in sync before `acks=all` is served: `min.insync.replicas`, asked of the cluster.

The turn of the worker ``min-isr``. Only topics with a replica out of sync are asked for, so a cluster that is well is asked for nothing.
The cluster's answer is the value in force: the topic's own, else that of the brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from cluster_model.errors import ExternalError
from metrics_reporter.reporter import Clock

TURN = 1.0  # seconds
KEPT_MS = 60_000  # a value is asked for again after so long
MOST_AT_ONCE = 1_000  # topics in one request

Ask = Callable[[Collection[str]], Mapping[str, int]]
"""`min.insync.replicas` in force, by topic; topics that are gone or may not be described are left out. Raises `ExternalError`."""


class MinIsr:
    """Keeps the values of topics that lack replicas in sync; `known` is for any thread.

    Parameters
    ----------
    ask
        What asks the cluster.
    wanted
        Topics that have a partition with a replica out of sync, now.
    learned
        Called when there are other values than before.
    """

    def __init__(self, ask: Ask, wanted: Callable[[], Collection[str]], clock: Clock, learned: Callable[[], None]) -> None:
        self._ask, self._wanted, self._clock, self._learned = ask, wanted, clock, learned
        self._asked_ms: dict[str, int] = {}
        self.known: Mapping[str, int] = {}

    def turn(self) -> float:
        """Ask for what is not known, or is old.

        Raises
        ------
        ExternalError
            The cluster does not answer, or some topics may not be described; the others are known all the same.
        """
        now, wanted = self._clock.wall_ms(), set(self._wanted())
        self._asked_ms = {topic: at for topic, at in self._asked_ms.items() if topic in wanted}
        due = sorted(topic for topic in wanted if now - self._asked_ms.get(topic, now - KEPT_MS) >= KEPT_MS)
        found = {topic: value for topic, value in self.known.items() if topic in wanted}
        unanswered = []
        for first in range(0, len(due), MOST_AT_ONCE):
            asked = due[first : first + MOST_AT_ONCE]
            answer = self._ask(asked)
            found.update(answer)
            self._asked_ms.update(dict.fromkeys(answer, now))
            unanswered += [topic for topic in asked if topic not in answer]
        if found != self.known:
            self.known = found
            self._learned()
        still = sorted(set(unanswered) & set(self._wanted()))  # not deleted meanwhile
        if still:
            more = f" and {len(still) - 1:,} more topics" if len(still) > 1 else ""
            message = (
                f"min.insync.replicas of {still[0]}{more} cannot be read, so it is not known whether they are under it. "
                "The principal needs DescribeConfigs on all topics"
            )
            raise ExternalError(message, retriable=True)
        return TURN
