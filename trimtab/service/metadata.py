"""Keeps the model's metadata up to date, and tells when brokers come and go.

The turn of one worker. The image is written by this thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from cluster_model.errors import ConfigurationError, InputError, Problem
from cluster_model.metadata.follower import Follower
from cluster_model.metadata.image import MetadataImage
from cluster_model.model import ClusterModel
from goals.model import Constraints
from metrics_reporter.reporter import Clock
from trimtab.service.health import HealthWatch
from trimtab.service.reach import Reach

log = logging.getLogger(__name__)

HELD_FOR_MS = 10_000  # the image may lag behind for so long before nothing is decided on it

Told = Callable[[str], None]
"""Hears why there should be a plan."""


class MetadataWatch:
    """Polls a follower and hands what happened to the model.

    Parameters
    ----------
    opened
        Called with the cluster's id when it is first known, before anything else is told.
    cause
        Hears of brokers that are lost or added.
    capacities
        Stated capacities of a broker, resource -> amount.
    min_isr, constraints
        As `HealthWatch` takes them.
    looked
        Called when the cluster's health was looked at again.
    """

    def __init__(
        self,
        reach: Reach,
        model: ClusterModel,
        clock: Clock,
        *,
        look: float,
        dead_after_ms: int,
        opened: Callable[[str], None],
        cause: Told,
        controller_changed: Callable[[], None],
        capacities: Callable[[int], dict[str, float]],
        min_isr: Callable[[], Mapping[str, int]],
        constraints: Callable[[], Constraints],
        draining: Callable[[], frozenset[int]],
        looked: Callable[[], None] = lambda: None,
    ) -> None:
        self._reach, self._model, self._clock, self._look = reach, model, clock, look
        self._dead_after_ms = dead_after_ms
        self._opened, self._cause, self._controller_changed = opened, cause, controller_changed
        self._capacities, self._looked = capacities, looked
        self._follower: Follower | None = None
        self._dead: dict[int, bool] | None = None  # broker -> whether it is gone for good, as last told
        self._controller: tuple[int, int] | None = None
        self._held: str | None = None
        self._held_since_ms: int | None = None
        self.health = HealthWatch(dead_after_ms, min_isr=min_isr, constraints=constraints, draining=draining)
        self.cluster_id: str | None = None
        self.loaded = False
        self.known: frozenset[int] = frozenset()  # registered brokers, and those of them that serve
        self.serving: frozenset[int] = frozenset()
        self.down: tuple[tuple[int, int], ...] = ()  # brokers that are down but not dead yet, and since when, ms

    def turn(self) -> float:
        """One look at the metadata."""
        if self._follower is None:
            self._begin()
        follower = self._follower
        assert follower is not None
        now = self._clock.wall_ms()
        try:
            update = follower.poll(now)
        except InputError:
            self._follower = None  # a new one must start
            self._hold("the metadata log cannot be read", now)
            raise
        except Exception:
            self._hold("the metadata cannot be read", now)
            raise
        changed = update.replaced
        if update.replaced:
            self._model.replace(follower.image, now)
        else:
            for event in update.events:
                changed = True
                self._model.apply(event, now)
        if update.held is None:
            self._held, self._held_since_ms = None, None
        else:
            self._hold(update.held, now)
        if not self.loaded and (update.replaced or update.held is None) and follower.image.brokers:
            self.loaded = True
            log.info("following cluster %s: %d brokers", self.cluster_id, len(follower.image.brokers))
        self._watch_brokers(follower.image, now)
        if self.loaded and self.health.look(follower.image, changed, now):
            self._looked()
        return self._look

    def held(self, now_ms: int) -> str | None:
        """Why the metadata may be older than the cluster, at once; `held_back` says when it matters."""
        return self._held

    def held_back(self, now_ms: int) -> str | None:
        """The same, where it has been so for too long to decide on it."""
        since = self._held_since_ms
        return self._held if since is not None and now_ms - since >= HELD_FOR_MS else None

    def _hold(self, why: str, now_ms: int) -> None:
        self._held = why
        if self._held_since_ms is None:
            self._held_since_ms = now_ms

    def _begin(self) -> None:
        cluster_id, follower = self._reach.follow()
        if self.cluster_id is not None and cluster_id != self.cluster_id:
            message = f"expected cluster {self.cluster_id}, found {cluster_id}; restart the service if that is meant"
            raise ConfigurationError("kafka.bootstrap_servers", [Problem("", message)])
        if self.cluster_id is None:
            self._model.cluster_id = cluster_id
            self._opened(cluster_id)
            self.cluster_id = cluster_id
        self._follower = follower

    def _watch_brokers(self, image: MetadataImage, now_ms: int) -> None:
        fenced = {b: e.fenced_since_ms for b, e in image.brokers.items()}
        dead = {b: since is not None and now_ms - since > self._dead_after_ms for b, since in fenced.items()}
        self.known = frozenset(fenced)
        self.serving = frozenset(b for b, since in fenced.items() if since is None)
        self.down = tuple(sorted((b, since) for b, since in fenced.items() if since is not None and not dead[b]))
        before = self._dead
        if before is None:
            if not self.loaded:
                return
            before = dead
            for broker in dead:
                self._state_capacity(broker)
        for broker in sorted(dead.keys() | before.keys()):
            if broker not in dead:
                self._cause(f"broker {broker} unregistered")
            elif broker not in before:
                self._state_capacity(broker)
                self._cause(f"broker {broker} added")
            elif dead[broker] and not before[broker]:
                self._cause(f"broker {broker} lost")
            elif before[broker] and not dead[broker]:
                self._cause(f"broker {broker} is back")
        self._dead = dead
        controller = image.controller
        found = None if controller is None else (controller.id, controller.epoch)
        if found != self._controller:
            self._controller = found
            self._controller_changed()

    def _state_capacity(self, broker: int) -> None:
        for resource, value in self._capacities(broker).items():
            self._model.set_capacity(broker, resource, value)
