"""The result of planning: actions with reasons, their net proposals, goals and brokers before and after.

A `Plan` is a value. It is produced by `optimizer.planner.plan`, shown by `optimizer.report`, explained by
`optimizer.explain`, and carried out elsewhere. `actions` may be long (100,000 and more): it is a sequence that builds each
`Action` when it is asked for, so reports take what they show and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

ActionType = Literal["move", "leadership", "swap", "exchange", "replication"]
Status = Literal["satisfied", "improved", "unchanged", "violated", "infeasible", "skipped"]


def as_written(number: float) -> float:
    """The number as the plan file has it, with 9 significant digits."""
    return float(f"{number:.9g}")


@dataclass(frozen=True, slots=True)
class Change:
    """One partition before and after; broker ids on the wire, preferred leader first."""

    topic: str
    partition: int
    replicas_before: tuple[int, ...]
    replicas_after: tuple[int, ...]
    leader_before: int | None
    leader_after: int | None

    @property
    def added(self) -> tuple[int, ...]:
        return tuple(b for b in self.replicas_after if b not in self.replicas_before)


@dataclass(frozen=True, slots=True)
class GoalScore:
    """How an action does in one goal: action score 0..1 (0.5 neutral), and each touched broker's score."""

    score: float
    before: Mapping[int, float]
    after: Mapping[int, float]


@dataclass(frozen=True)
class ScoreFrame:
    """What the scores of all actions of a plan share: goals in order, and the brokers that each one judges."""

    names: tuple[str, ...]
    judged: tuple[frozenset[int], ...]

    @cached_property
    def index(self) -> dict[str, int]:
        return {name: g for g, name in enumerate(self.names)}

    @cached_property
    def everywhere(self) -> frozenset[int]:
        """Brokers that every goal judges."""
        return frozenset.intersection(*self.judged) if self.judged else frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRows(Mapping[str, GoalScore]):
    """Goal name -> `GoalScore` of one action, on rows: `score` [G], and `before`, `after` [touched brokers][G]."""

    frame: ScoreFrame
    score: Sequence[float]
    brokers: Sequence[int]
    before: Sequence[Sequence[float]]
    after: Sequence[Sequence[float]]

    def __getitem__(self, name: str) -> GoalScore:
        g = self.frame.index[name]
        rows = [(n, b) for n, b in enumerate(self.brokers) if b in self.frame.judged[g]]
        return GoalScore(
            self.score[g], {b: self.before[n][g] for n, b in rows}, {b: self.after[n][g] for n, b in rows}
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.frame.names)

    def __len__(self) -> int:
        return len(self.frame.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Action:
    """One step of the plan. `score` is the combined score; `repairs` names the hard violations it mends."""

    seq: int
    type: ActionType
    score: float
    repairs: tuple[str, ...]
    reason: str
    bytes_to_move: int
    changes: tuple[Change, ...]
    goal_scores: Mapping[str, GoalScore]


@dataclass(frozen=True, slots=True)
class GoalState:
    """One goal at one moment. `mean` in the resource's unit (None where it has none); deviations are shares of it."""

    violations: int
    mean: float | None
    max_deviation: float | None
    cv: float | None
    in_band: float
    misplaced: int | None = None  # of a rack goal: partitions with too many replicas in a rack


@dataclass(frozen=True, slots=True)
class GoalOutcome:
    name: str
    kind: str
    hard: bool
    weight: float
    resource: str | None
    status: Status
    before: GoalState | None  # None when skipped
    after: GoalState | None
    explanation: str
    from_calibration: Mapping[str, str] = field(default_factory=dict)  # key -> where its value comes from, of those the file leaves out
    unknown: int = 0  # partitions whose load it should judge and the snapshot does not give

    @property
    def unchecked(self) -> bool:
        """Whether the goal was judged by some of the partitions only, or not at all."""
        return self.status == "skipped" or self.unknown > 0


@dataclass(frozen=True, slots=True)
class BrokerOutcome:
    """One broker: its load per resource before and after, the goals it still violates, and why."""

    id: int
    rack: str | None
    state: str
    before: Mapping[str, float]
    after: Mapping[str, float]
    scores_before: Mapping[str, float]  # goal name -> broker score, eligible brokers only
    scores_after: Mapping[str, float]
    violates: tuple[str, ...]
    why: str | None


@dataclass(frozen=True, slots=True)
class Band:
    """Where a distribution goal wants a broker: all in the resource's unit. `low`..`high` scores 1, `var_*` ends the linear part."""

    mean: float
    low: float
    high: float
    var_low: float
    var_high: float


@dataclass(frozen=True, slots=True)
class Summary:
    """The net result (not the length of the way there, except `actions`)."""

    actions: int
    replica_moves: int
    leadership_changes: int
    partitions: int
    bytes_to_move: int  # of the moves whose bytes are known
    unsized_moves: int = 0  # replica moves whose bytes are unknown


@dataclass(frozen=True, slots=True)
class LowerBounds:
    """What no plan can avoid to bring every reducible broker into its target range."""

    replica_moves: int
    bytes_to_move: int


@dataclass(frozen=True, slots=True)
class Step:
    """Where the first `actions` of a plan lead, net. `balance` is the weighted mean of all soft broker scores, `worst` the lowest."""

    actions: int
    replica_moves: int
    leadership_changes: int
    bytes_to_move: int
    brokers_in_band: int
    violations: int
    balance: float
    worst: float


@dataclass(frozen=True, slots=True)
class Skipped:
    """`doubt`: why its numbers cannot be trusted, where it is left alone for that."""

    what: str
    reason: str
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class Batches:
    """In which parts a plan is carried out, one after the other, as a policy's `batch` says (`optimizer.policies.batches`).

    `of` is the batch, from 1, of each proposal; `pause` the seconds from the end of one batch to the start of the next. `left` are
    actions that were found and that the policy leaves for the next plan.
    """

    of: tuple[int, ...]
    pause: float
    left: int = 0

    @property
    def count(self) -> int:
        return max(self.of, default=0)


@dataclass(frozen=True)
class Plan:
    """See the module; field for field what docs/contract.md, section 4 writes, and what reports need beside it."""

    plan_id: str
    cluster_id: str
    taken_at: str
    snapshot_digest: str
    storage: str
    goals_digest: str
    options: Mapping[str, object]
    actions: Sequence[Action]
    proposals: Sequence[Change]
    goals: tuple[GoalOutcome, ...]
    summary: Summary
    lower_bounds: LowerBounds
    brokers: Sequence[BrokerOutcome]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...] = ()
    bands: Mapping[str, Mapping[int, Band]] = field(default_factory=dict)  # goal name -> broker id -> band
    frontier: Sequence[Step] = ()  # from nothing to the whole plan
    stopped: bool = False  # on request, before the search was done: what is left was not looked at to the end
    cannot_be_emptied: tuple[int, ...] = ()  # dead and draining brokers that no plan can empty, by id
    batches: Batches | None = None  # None: it is carried out in one, and nothing is left

    @property
    def by_policy(self) -> bool:
        """Whether the parts of a policy made it, not the search."""
        policy = self.options.get("policy")
        return isinstance(policy, Mapping) and "amount" in policy

    @property
    def left(self) -> int:
        """Actions that were found and that a policy leaves for the next plan."""
        return 0 if self.batches is None else self.batches.left

    @property
    def hard_violations_left(self) -> int:
        return sum(g.after.violations for g in self.goals if g.hard and g.after is not None)

    @property
    def infeasible(self) -> bool:
        """Whether it is proven that a hard goal cannot be met (exit code 4 with ``--exit-code``)."""
        return any(g.hard and g.status == "infeasible" for g in self.goals)
