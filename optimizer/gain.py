"""What a plan, or an independent part of one, gains for what it copies.

Changes that touch a broker in common belong together; what is left is parts that share no broker and no partition, so that each can be made
or left out by itself. Called by `optimizer.worth` on what a search found.

*Distance* is how far brokers are outside their target ranges: in shares of the mean for loads and counts (of the limit for limits, of a
typical broker's replicas for replicas that stand in the wrong place), each goal by its weight over the largest weight. What a part gains
is how much less distance it leaves, in all or of its worst broker, whichever is more; what it costs is in shares of what a typical
broker stores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import BoolArray, BrokerState, FloatArray
from goals.model import UsageDistribution
from kernels.compiled import inner, kernel
from optimizer.course import Net, Placement
from optimizer.found import Round
from optimizer.options import NOISE, NOISE_OF_BOUND, PlanOptions
from optimizer.placement.state import RACKS, Rows, State
from optimizer.plan import Skipped
from optimizer.problem import BOUND, CEILING, COLUMN, DISTRIBUTION, KIND, LIMIT, MEAN, RF, STATE, TOPIC, WEIGHT, Compiled, Problem
from optimizer.why_words import amount, counted

COUNTS = ("replicas", "leaders")  # known exactly
ROUNDING = 1e-9


@dataclass(frozen=True)
class Parts:
    """Independent parts of a plan.

    Attributes
    ----------
    of_partition
        int64 [n], the part of each partition that any action changes, in ascending order of these.
    gain, share
        float64 [parts]: distance that goes, in means, and what the part costs, over what moving all of a typical broker costs.
    notable
        bool [parts]: it gains more than measuring again could, in a goal on some load, or anything in a count.
    repairs
        bool [parts]: some action repairs.
    trivial
        bool [parts]: it changes no broker by more than the `trivial_change` of goals.
    """

    of_partition: Rows
    gain: FloatArray
    share: FloatArray
    notable: BoolArray
    repairs: BoolArray
    trivial: BoolArray

    def too_small(self, min_gain: float) -> BoolArray:
        """bool [n]: partitions of parts that gain less than `min_gain` for what they cost, or change little; all, where no part gains more
        than noise. Repairs are never small."""
        dropped = ~self.repairs & (self.trivial | (self.gain <= ROUNDING) | (self.gain < min_gain * self.share))
        if not (self.notable | self.repairs)[~dropped].any():
            dropped[:] = True
        return dropped[self.of_partition]


@dataclass(frozen=True)
class LeftOut:
    """Parts of a plan that were left out, and what they would do.

    `brokers` bool [B] are those that they would change; `worth` is the largest gain over cost among those that gain too little for it,
    None where what is gained is noise alone; `trivial` where all change too little.
    """

    partition: Rows
    moves: int
    leaders: int
    bytes_to_move: float
    worth: float | None
    brokers: BoolArray
    trivial: bool = False

    def skipped(self, options: PlanOptions) -> Skipped:
        """What was left out and why, for the plan."""
        moves, leaders = counted(self.moves, "replica move"), counted(self.leaders, "leadership change")
        if not self.moves:
            return Skipped(leaders, self.reason(options))
        data = f" of {amount(self.bytes_to_move, 'disk')}" if self.bytes_to_move > 0.0 else ""
        return Skipped(f"{moves}{data}" + (f" and {leaders}" if self.leaders else ""), self.reason(options))

    def reason(self, options: PlanOptions) -> str:
        """Why, in a sentence without an end."""
        if self.trivial:
            return "the possible changes change no broker by more than trivial_change; a smaller trivial_change would allow them"
        if self.worth is None:
            return (
                "the possible changes would bring no broker nearer to its target range by more than loads differ from one measurement "
                "to the next; a smaller policy.noise would allow them"
            )
        return (
            f"the possible changes gain too little for the bytes that they copy: {self.worth:.2g} of a mean for as much data as a "
            f"typical broker stores, and policy.min_gain asks for {options.least_gain:.3g}"
        )

    @classmethod
    def of(cls, compiled: Compiled, parts: Parts, net: Net, min_gain: float) -> LeftOut | None:
        """What `Parts.too_small` leaves out of `net`; None where that is nothing."""
        small = np.flatnonzero(parts.too_small(min_gain))
        if not len(small):
            return None
        before, after, rows = net.before.taken(small), net.after.taken(small), net.rows[small]
        moved = before.moved(after)
        which = np.unique(parts.of_partition[small])
        dear = which[(parts.gain[which] < min_gain * parts.share[which]) & (parts.share[which] > 0.0)]
        brokers = np.zeros(len(compiled.problem.broker), np.bool_)
        for lists in (before.replicas, after.replicas):
            brokers[lists[lists >= 0]] = True
        return cls(
            partition=rows, moves=int(moved.sum()), leaders=int(before.relieved(after).sum()),
            bytes_to_move=float((moved * compiled.problem.size[rows]).sum()),
            worth=float((parts.gain[dear] / parts.share[dear]).max()) if len(dear) else None, brokers=brokers,
            trivial=bool(parts.trivial[which].all()),
        )  # fmt: skip


def distances(problem: Problem, state: State) -> FloatArray:
    """float64 [B, G]: how far each active broker is outside each goal, by weight; 0 for others.  O(brokers x goals)."""
    out = np.zeros((len(problem.broker), len(problem.goal)))
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    each = max(float(problem.partition[:, RF].sum()) / max(int(active.sum()), 1), 1.0)
    heaviest = float(problem.force[:, WEIGHT].max(initial=0.0))
    for g in range(len(problem.goal)):
        kind, column, table = int(problem.goal[g, KIND]), int(problem.goal[g, COLUMN]), problem.table[:, g]
        if kind == DISTRIBUTION:
            beyond, scale = np.abs(state.load[:, column] - table[:, MEAN]) - table[:, BOUND], table[:, MEAN]
        elif kind == LIMIT:
            beyond, scale = state.load[:, column] - table[:, CEILING], table[:, CEILING]
        else:
            beyond, scale = state.units[column if kind == TOPIC else RACKS], np.full(len(out), each)
        low = np.flatnonzero(active & (state.score[:, g] < 1.0))
        scale = np.where(scale > 0.0, scale, each if kind == LIMIT else 1.0)  # a limit of 0 holds nothing
        out[low, g] = problem.force[g, WEIGHT] / max(heaviest, ROUNDING) * np.maximum(beyond[low], 0.0) / scale[low]
    return out


def noise_of(compiled: Compiled, noise: float | None) -> FloatArray:
    """float64 [G]: by how much a broker has to come nearer to each goal for that to be more than `noise` in what is measured, in means.

    Counts are exact. Where `noise` is not given, a narrow range has less.
    """
    problem = compiled.problem
    least = np.full(len(problem.goal), ROUNDING)
    for g, goal in enumerate(compiled.goals):
        if problem.goal[g, KIND] <= LIMIT and compiled.columns[problem.goal[g, COLUMN]] not in COUNTS:
            bound = goal.bound if isinstance(goal, UsageDistribution) else np.inf
            least[g] = min(NOISE, NOISE_OF_BOUND * bound) if noise is None else noise
    return least


def leaves_trivial(compiled: Compiled) -> bool:
    """Whether some goal has changes left out that are too small."""
    return any(isinstance(g, UsageDistribution) and g.trivial_change > 0 for g in compiled.goals)


def noticed(compiled: Compiled, start: Placement, end: State) -> BoolArray:
    """bool [B]: active brokers that a plan from `start` to `end` changes by more than the `trivial_change` of some goal, or, where that has
    none, at all; all where no goal has one."""
    problem, moved = compiled.problem, np.zeros(len(compiled.problem.broker), np.bool_)
    if not leaves_trivial(compiled):
        return ~moved
    begin = start.state(compiled)
    for g, goal in enumerate(compiled.goals):
        if isinstance(goal, UsageDistribution):
            mean, c = problem.table[:, g, MEAN], problem.goal[g, COLUMN]
            moved |= (mean > 0) & (np.abs(end.load[:, c] - begin.load[:, c]) > (goal.trivial_change + ROUNDING) * mean)
        else:
            moved |= begin.score[:, g] != end.score[:, g]
    return np.asarray(moved & (problem.broker[:, STATE] == BrokerState.ACTIVE))


def parts_of(
    compiled: Compiled, rounds: list[Round], net: Net, before: FloatArray, after: FloatArray, noise: FloatArray, changed: BoolArray
) -> Parts:
    """The parts of what `rounds` do, which lead from distances `before` to `after`, float64 [B, G] both.

    `net` is their net effect, `noise` float64 [G] that of `noise_of`, `changed` bool [B] the brokers of `noticed`.

    O(changes R²).
    """
    problem = compiled.problem
    part_of, first = np.arange(len(problem.broker)), np.full(len(compiled.lead), -1)
    for each in rounds:
        rows, lists = each.log.partition[: int(each.log.used[1])], each.changes
        join(rows, lists.before, lists.lead_before, lists.after, lists.lead_after, part_of, first)
    rows, mended = _changed(rounds)
    of_broker = lowest(part_of)
    labels, of_partition = np.unique(of_broker[first[net.rows]], return_inverse=True)
    brokers = np.flatnonzero(np.isin(of_broker, labels))
    part, count = np.searchsorted(labels, of_broker[brokers]), len(labels)
    gone = (before - after)[brokers]
    total, was, still, cost = np.zeros((4, count))
    np.add.at(total, part, gone.sum(axis=1))
    np.maximum.at(was, part, before[brokers].max(axis=1, initial=0.0))
    np.maximum.at(still, part, after[brokers].max(axis=1, initial=0.0))
    notable, repairs = np.zeros((2, count), np.bool_)
    np.logical_or.at(notable, part, (gone > np.maximum(noise, ROUNDING)).any(axis=1))
    repairs[np.searchsorted(labels, of_broker[first[rows[mended]]])] = True
    np.add.at(cost, of_partition, net.moved * problem.cost[net.rows])
    trivial = np.ones(count, np.bool_)
    trivial[part[changed[brokers]]] = False
    return Parts(of_partition, np.maximum(total, was - still), cost / max(_broker_worth(problem), 1e-300), notable, repairs, trivial)


def _changed(rounds: list[Round]) -> tuple[Rows, BoolArray]:
    """int64 [n] partition of every change, and whether the action that it belongs to repairs."""
    rows = [part.log.partition[: int(part.log.used[1])] for part in rounds]
    repairs = [np.repeat(part.record.repairs != 0, np.diff(part.log.first[: int(part.log.used[0]) + 1])) for part in rounds]
    return np.concatenate(rows), np.concatenate(repairs)


# wide: lists and leaders before and after each change
@kernel
def join(
    rows: np.ndarray, before: np.ndarray, lead_before: np.ndarray, after: np.ndarray, lead_after: np.ndarray, part: np.ndarray,
    first: np.ndarray,
) -> None:  # fmt: skip
    """Make brokers one part if their replicas or leaderships change with the same partition; change `i` is of partition `rows[i]`.

    `part` int64 [B] names a broker of its part for each, itself or a lower one; `first` int64 [P] the first broker that changed with each
    partition, -1 for none.
    """
    slots = before.shape[1]
    for i in range(len(rows)):
        for turn in range(2):
            one, lead = (before, lead_before) if turn == 0 else (after, lead_after)
            other, other_lead = (after, lead_after) if turn == 0 else (before, lead_before)
            for s in range(slots):
                same = one[i, s] < 0
                for o in range(slots):
                    if other[i, o] == one[i, s] and (o == other_lead[i]) == (s == lead[i]):
                        same = True
                if same:
                    continue
                if first[rows[i]] < 0:
                    first[rows[i]] = one[i, s]
                a, b = top(part, first[rows[i]]), top(part, one[i, s])
                part[max(a, b)] = min(a, b)


@inner
def top(part: np.ndarray, b: int) -> int:
    """The lowest broker of the part of `b`."""
    while part[b] != b:
        part[b] = part[part[b]]
        b = part[b]
    return b


@kernel
def lowest(part: np.ndarray) -> np.ndarray:
    """`top` of all brokers."""
    for b in range(len(part)):
        part[b] = top(part, b)
    return part


def _broker_worth(problem: Problem) -> float:
    """What moving everything that a typical active broker holds would cost."""
    active = int((problem.broker[:, STATE] == BrokerState.ACTIVE).sum())
    return float((problem.cost * problem.partition[:, RF]).sum()) / max(active, 1)
