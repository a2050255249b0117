"""Goals as records: kind, parameters, and the constraints that go with them.

Produced by `goals.document` from YAML (every default is applied there, in one place), consumed by the
optimizer. Frozen; knows nothing of files, clusters or clocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, ClassVar, Literal

from cluster_model.quantities import format_size
from cluster_model.resources import RESOURCES

if TYPE_CHECKING:
    from cluster_model.snapshot import FloatArray

Tail = Literal["bound", "absolute"]
KINDS = ("rack_aware", "capacity", "count_limit", "usage_distribution", "topic_distribution", "topic_minimum")


@dataclass(frozen=True, slots=True)
class RackAware:
    """At most ceil(RF / racks with eligible brokers) replicas of a partition in one rack."""

    name: str
    hard: bool
    weight: float
    group: str | None
    kind: Literal["rack_aware"] = "rack_aware"


class Limit:
    """A goal that a broker holds no more of `resource` than a ceiling. A kind of limit is one of these and says where its ceilings are; the
    planner, proofs, detectors and `assign` ask nothing else of it."""

    __slots__ = ()
    name: str
    hard: bool
    weight: float
    group: str | None
    resource: str
    least: ClassVar[float]  # a ceiling below it counts as that in the potential, which divides by it

    def ceilings(self, capacity: Mapping[str, FloatArray], brokers: int) -> FloatArray:
        """float64 [B]: the most of `resource` on each of `brokers` brokers, in its unit; NaN where that is not known.

        `capacity` float64 [B] by resource are those of the snapshot.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Capacity(Limit):
    """Load of `resource` at most `limit` (share of the broker's capacity)."""

    name: str
    hard: bool
    weight: float
    group: str | None
    resource: str
    limit: float
    kind: Literal["capacity"] = "capacity"
    least: ClassVar[float] = 1e-9

    def ceilings(self, capacity: Mapping[str, FloatArray], brokers: int) -> FloatArray:
        import numpy as np

        known = capacity.get(self.resource)
        return np.full(brokers, np.nan) if known is None else np.asarray(self.limit * known)


@dataclass(frozen=True, slots=True)
class CountLimit(Limit):
    """At most `max` of `resource` (`replicas`, `leaders`, or any other in its unit) on a broker."""

    name: str
    hard: bool
    weight: float
    group: str | None
    resource: str
    max: float
    kind: Literal["count_limit"] = "count_limit"
    least: ClassVar[float] = 1.0

    def ceilings(self, capacity: Mapping[str, FloatArray], brokers: int) -> FloatArray:
        import numpy as np

        return np.full(brokers, float(self.max))


@dataclass(frozen=True, slots=True)
class UsageDistribution:
    """Load of `resource` within `bound` (share) of the mean; scored beyond it, past `var` by a logarithm.

    `var` is a share of the mean when `var_is_share`, else an amount above the bound, in the resource's unit.
    """

    name: str
    hard: bool
    weight: float
    group: str | None
    resource: str
    bound: float
    var: float
    var_is_share: bool
    tail: Tail
    min_load: float
    trivial_change: float
    kind: Literal["usage_distribution"] = "usage_distribution"


class TopicGoal:
    """A goal on how many replicas or leaders of each topic a broker has. A kind of it says what brokers have to have of a topic; planner,
    proofs and detectors ask nothing else of it."""

    __slots__ = ()
    name: str
    hard: bool
    weight: float
    group: str | None
    resource: str  # "replicas" or "leaders"
    levels: ClassVar[bool]  # too many count as too few do, and the capacity of a broker decides its share

    @property
    def width(self) -> tuple[float, int]:
        """Half of a target range: share of the mean, and replicas or leaders at least."""
        raise NotImplementedError

    def shared(self, topics: Sequence[str], count: FloatArray, among: FloatArray) -> FloatArray:
        """float64 [T]: what brokers share of each of `topics`, of which there are `count` float64 [T], over `among` float64 [T] brokers (by
        capacity: what they have of it)."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class TopicDistribution(TopicGoal):
    """Replicas or leaders of each topic spread evenly over the brokers, within `bound`, or `min_gap` of them where that is more."""

    name: str
    hard: bool
    weight: float
    group: str | None
    resource: str  # "replicas" or "leaders"
    bound: float
    min_gap: int = 0
    kind: Literal["topic_distribution"] = "topic_distribution"
    levels: ClassVar[bool] = True

    @property
    def width(self) -> tuple[float, int]:
        return self.bound, self.min_gap

    def shared(self, topics: Sequence[str], count: FloatArray, among: FloatArray) -> FloatArray:
        return count


@dataclass(frozen=True, slots=True)
class TopicMinimum(TopicGoal):
    """At least `min` replicas or leaders of each topic that `topics` (globs) match on every broker; None: as many as there are for each."""

    name: str
    hard: bool
    weight: float
    group: str | None
    resource: str  # "replicas" or "leaders"
    topics: tuple[str, ...]
    min: int | None = None
    kind: Literal["topic_minimum"] = "topic_minimum"
    levels: ClassVar[bool] = False

    @property
    def width(self) -> tuple[float, int]:
        return 0.0, 0

    def shared(self, topics: Sequence[str], count: FloatArray, among: FloatArray) -> FloatArray:
        import numpy as np

        asked = np.array([any(fnmatchcase(topic, glob) for glob in self.topics) for topic in topics], np.bool_)
        each = np.floor(count / among) if self.min is None else np.full(len(count), float(self.min))
        return np.asarray(np.where(asked & (count > 0), each, 0.0) * among)


Goal = RackAware | Capacity | CountLimit | UsageDistribution | TopicDistribution | TopicMinimum


@dataclass(frozen=True, slots=True)
class BrokerSet:
    """Brokers that the replicas of some topics stay on; without `topics` it takes those of no other set."""

    name: str
    brokers: tuple[int, ...]
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Constraints:
    """What must not be touched, and what stays where. Topics are glob patterns, brokers wire ids.

    Repairs (replicas off dead and draining brokers, leaders for leaderless partitions) change excluded topics, too, but never frozen ones.
    """

    exclude_topics: tuple[str, ...] = ()
    exclude_brokers: tuple[int, ...] = ()
    include_topics: tuple[str, ...] = ()
    freeze_topics: tuple[str, ...] = ()
    broker_sets: tuple[BrokerSet, ...] = ()  # a topic is of the first that it matches


@dataclass(frozen=True, slots=True)
class Filled:
    """A value that the goals leave out and a calibration gave; `place` is where it stands there."""

    goal: str
    key: str
    value: float
    place: str

    @property
    def words(self) -> str:
        """Key and value for people."""
        sized = self.key == "min_load" and RESOURCES.get(self.place.split(".")[1], "").startswith("bytes")
        return f"{self.key} {format_size(self.value) if sized else f'{self.value:.3g}'}"


@dataclass(frozen=True)
class Calibrated:
    """What a calibration gave to the goals, and what it has for plans.

    Attributes
    ----------
    source
        The file as the goals file or the command line names it.
    span
        Days of the history behind it, such as ``2026-10-01 to 2026-11-01``.
    cluster_id
        Cluster of that history; its capacities and loads are of no other.
    capacity
        resource -> broker -> what it can carry, of high and medium confidence, for brokers that a snapshot gives none.
    lower_bounds
        resource -> brokers with an estimate of low confidence, which is not taken.
    loads
        Place of the loads of partitions, a path or URI; None where there are none.
    """

    source: str
    span: str
    cluster_id: str = ""
    filled: tuple[Filled, ...] = ()
    capacity: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    lower_bounds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    loads: str | None = None

    def of(self, goal: str) -> dict[str, str]:
        """key -> where its value comes from, for what a goal got."""
        return {f.key: f"{self.source}: {f.place} {f.value:.6g}, from {self.span}" for f in self.filled if f.goal == goal}

    @property
    def sentence(self) -> str:
        """What the goals got, in a line; empty where they got nothing."""
        goals = dict.fromkeys(f.goal for f in self.filled)
        told = [f"{goal} {', '.join(f.words for f in self.filled if f.goal == goal)}" for goal in goals]
        return f"from {self.source} ({self.span}): {'; '.join(told)}" if told else ""


@dataclass(frozen=True)
class GoalSet:
    """Everything a goals file says, defaults applied, in the order of the file.

    `digest` is ``sha256:…`` over the canonical form of all that decides a plan. `calibration` is the path as
    the file gives it, `calibrated` what came of it. `notes` are remarks for the reader: legal, but without effect or probably not meant.
    """

    goals: tuple[Goal, ...]
    constraints: Constraints = field(default_factory=Constraints)
    policy: dict[str, object] = field(default_factory=dict)
    source: str = ""
    digest: str = ""
    calibration: str | None = None
    notes: tuple[str, ...] = ()
    calibrated: Calibrated | None = None
