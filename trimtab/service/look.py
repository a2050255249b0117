"""Looks at the cluster now and then: how goals and brokers stand, and whether the policy's detector says to act.

The turn of one worker, and asked by the planner before it decides; one look at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import numpy as np

from cluster_model.model import ClusterModel
from cluster_model.trust import LiveSnapshot
from cluster_model.windows import HorizonName
from goals.model import GoalSet
from goals.policy import NewTopics, PolicyDocument, Split
from metrics_reporter.reporter import Clock
from optimizer.detectors import Detection, Memory, detect, policy_of
from optimizer.detectors.slow import Slow, SlowMemory, set_apart, slow_brokers
from optimizer.judgement import judge
from optimizer.policies.groups import SplitHits, count_hits
from trimtab.execution.people import as_draining
from trimtab.service.goals import GoalsKeeper
from trimtab.service.keeping import Told
from trimtab.service.standing import Repair, stand, to_repair
from trimtab.service.views import BrokerView, GoalView

MOST_NAMED = 5  # new topics
SHARE_OF_TIME = 0.1  # that looking may take


@dataclass(frozen=True)
class Looked:
    """One look: the snapshot with drains applied, what stands how, and what the detector made of it.

    Attributes
    ----------
    repair
        What has to be mended whatever the detector says.
    memory
        The detector's memory that `detection` was made from.
    slow
        Brokers that take long for requests; in `snapshot` they are excluded.
    new_topics
        That were created a short while ago and that the policy has placed, by name.
    young_topics
        That balance leaves alone because they are younger than the policy's least age.
    split_hits
        Looks in a row in which bundles were over a limit of the policy's `split`, by name; None where a split waits for none.
    """

    at_ms: int
    snapshot: LiveSnapshot
    goal_set: GoalSet
    goals: tuple[GoalView, ...]
    brokers: tuple[BrokerView, ...]
    policy: PolicyDocument
    detection: Detection
    memory: Memory | None
    repair: Repair
    slow: Slow
    new_topics: tuple[str, ...] = ()
    young_topics: tuple[str, ...] = ()
    split_hits: tuple[tuple[str, int], ...] | None = None


class Lookout:
    """Takes looks, and keeps the newest.

    Parameters
    ----------
    every
        Seconds between two looks; more where a look takes long.
    fired
        Called when the detector fires, or a broker is slow, that did not or was not at the look before.
    """

    def __init__(
        self,
        model: ClusterModel,
        goals: GoalsKeeper,
        told: Told,
        clock: Clock,
        *,
        horizon: HorizonName,
        every: float,
        may_look: Callable[[], bool],
        fired: Callable[[str], None],
        looked: Callable[[], None],
    ) -> None:
        self._model, self._goals, self._told, self._clock = model, goals, told, clock
        self._horizon, self._every = horizon, every
        self._may_look, self._fired, self._looked = may_look, fired, looked
        self._memory: Memory | None = None
        self._slow: SlowMemory | None = None
        self._splits: SplitHits | None = None
        self._topics: dict[str, int] | None = None  # -> first seen, Unix ms; 0 for those that were there at the first look
        self._newest: Looked | None = None
        self._lock = Lock()

    @property
    def newest(self) -> Looked | None:
        return self._newest

    def turn(self) -> float:
        if not self._may_look():
            return min(self._every, 1.0)
        begun = self._clock.monotonic()
        before = self._newest
        now = self.look()
        if now.detection.fired and (before is None or not before.detection.fired):
            self._fired(now.detection.sentence())
        for broker in now.slow.brokers:
            if before is None or broker.id not in before.slow.ids:
                self._fired(f"Broker {broker.id} is slow: {broker.why}.")
        came = sorted(set(now.new_topics).difference(before.new_topics if before is not None else ()))
        if came:
            self._fired(f"New topics are to be placed: {', '.join(came[:MOST_NAMED])}{' …' if len(came) > MOST_NAMED else ''}.")
        self._looked()
        return max(self._every, (self._clock.monotonic() - begun) / SHARE_OF_TIME)

    def look(self) -> Looked:
        """Look now. O(replicas)."""
        with self._lock:
            now = self._clock.wall_ms()
            goals = self._goals.current
            snapshot = as_draining(self._model.snapshot(now, horizon=self._horizon), self._told.draining)
            policy = policy_of(goals)
            slow = slow_brokers(policy.slow_brokers, snapshot, now, self._slow, goals.constraints.exclude_brokers)
            self._slow, snapshot = slow.memory, set_apart(snapshot, slow)
            found = judge(snapshot, goals)
            standing, brokers = stand(found, {b.id: b.why for b in slow.brokers}, self._told.draining)
            before = self._memory
            detection = detect(policy, snapshot, goals, before, found)
            self._memory = detection.memory
            self._newest = Looked(
                now, snapshot, goals, standing, brokers, policy, detection, before, to_repair(snapshot, standing), slow,
                self._new_topics(policy.new_topics, snapshot, now), self._younger(now, policy.min_topic_age),
                self._counted(policy.split, snapshot),
            )
            return self._newest

    def _counted(self, rule: Split | None, snapshot: LiveSnapshot) -> tuple[tuple[str, int], ...] | None:
        """One look more for bundles over a limit. O(partitions) where a split waits for more than one."""
        self._splits = count_hits(snapshot, rule, self._splits) if rule is not None and rule.hits > 1 else None
        return None if self._splits is None else tuple(sorted(self._splits.counts.items()))

    def _new_topics(self, rule: NewTopics | None, snapshot: LiveSnapshot, now: int) -> tuple[str, ...]:
        """Topics that were first seen within the rule's time and hold no more than it says. O(partitions)."""
        seen = self._topics
        self._topics = {t: seen.get(t, now) if seen is not None else 0 for t in snapshot.topics}
        if rule is None:
            return ()
        young = self._younger(now, rule.within)
        disk = snapshot.leader_load.get("disk")
        if not young or disk is None:
            return young
        held = np.bincount(snapshot.partition_topic, weights=np.nan_to_num(disk), minlength=len(snapshot.topics))
        return tuple(t for t in young if held[snapshot.row_of_topic[t]] <= rule.max_size)

    def _younger(self, now: int, seconds: float) -> tuple[str, ...]:
        """Topics that were first seen less than so long ago."""
        return tuple(t for t, at in (self._topics or {}).items() if at and now - at < round(1000 * seconds))

    def acted(self) -> None:
        """Something was done about it: the detector's counts start again."""
        with self._lock:
            if self._memory is not None:
                self._memory = self._memory.acted()
