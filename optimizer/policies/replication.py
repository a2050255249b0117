"""A plan that gives partitions another replication factor, and does no more: replicas are added on the best brokers, or the worst removed.

Called by `optimizer.planner.plan` where its options name a factor. It is made as other plans are, on a cluster with imagined brokers that
are dead: a replica that is missing stands on one of them and is moved off, one that goes is moved there. So the search's own evaluator
gives scores, and keeps hard goals; in the plan the imagined brokers do not appear.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate

import numpy as np

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.snapshot import BoolArray, BrokerState, FloatArray, Snapshot
from goals.model import GoalSet
from goals.policy_filters import Filters
from optimizer.columns import leader_slots, offline_partitions
from optimizer.compile import compile_problem
from optimizer.detectors import policy_of
from optimizer.identity import identified
from optimizer.options import PlanOptions
from optimizer.plan import Action, Change, LowerBounds, Plan, Skipped, Summary
from optimizer.policies.board import Board, Rows, Step
from optimizer.policies.confines import confines_of
from optimizer.policies.imagined import real, with_imagined, with_set_of
from optimizer.policies.recording import Evaluator, assembled
from optimizer.problem import ANYWHERE, COLUMN, DISTRIBUTION, KIND, MEAN, MOVABLE, RACK_OF, SET_OF, WEIGHT
from optimizer.unknown import unsized
from optimizer.whatif import apply_whatifs, matching_topics, no_topic
from optimizer.why_emptied import STOPPED
from optimizer.why_words import counted

REPAIR = "replication_factor"
LOOKED_AT = 12  # brokers that a replica is tried on: the least loaded of those in the best racks
MOST_NAMED = 20  # partitions left as they are, each with its reason
ALONE = "this plan changes replication factors and nothing else; a plan without --replication-factor may fix it"


def change_factors(given: Snapshot, goals: GoalSet, options: PlanOptions) -> Plan:
    """The plan that gives partitions the replication factors of `options`; deterministic in all its arguments.

    Raises
    ------
    ConfigurationError
        A factor that the cluster cannot have, or a pattern that matches no topic; what-ifs as `apply_whatifs` has them.

    Notes
    -----
    Means are those of the cluster with the factors that the plan leads to. What a hard goal leaves no room for is left as it is, whole
    partitions only. O(partitions changed x brokers).
    """
    snapshot = apply_whatifs(given, goals, options)
    wanted, skipped = _asked(snapshot, goals, options)
    wanted, over = _within_budgets(snapshot, wanted, options)
    refused: dict[int, str] = {}
    while True:
        work = _Work(given, goals, options, wanted)
        failed = work.done()
        if not failed:
            break
        refused |= failed
        wanted[list(failed)] = 0
    told = [*skipped, *((snapshot.partition_name(p), why) for p, why in refused.items())]
    told += [(f"{counted(over, 'partition')} more", "the budget ends before them")] if over else []
    return work.plan(told)


def _asked(snapshot: Snapshot, goals: GoalSet, options: PlanOptions) -> tuple[Rows, list[tuple[str, str]]]:
    """int64 [P], the factor that each partition is to have, 0 where it is to stay; and what cannot have it, with the reason."""
    _check(snapshot, options)
    by_topic = np.zeros(len(snapshot.topics), np.int64)
    for pattern, factor in options.replication_factor:
        by_topic[_matches(snapshot.topics, pattern)] = factor
    rf = snapshot.replication_factor.astype(np.int64)
    wanted = by_topic[snapshot.partition_topic]
    wanted[wanted == rf] = 0
    frozen = matching_topics(snapshot.topics, goals.constraints.freeze_topics)[snapshot.partition_topic]
    lists, states = snapshot.replicas, snapshot.broker_states
    excluded = np.append(states == BrokerState.EXCLUDED, False)
    stay = excluded[lists].sum(axis=1) + ~excluded[snapshot.leader]
    hosting = np.append(states == BrokerState.ACTIVE, False)[lists].sum(axis=1)
    free = int((states == BrokerState.ACTIVE).sum()) - hosting
    reasons: tuple[tuple[BoolArray, str], ...] = (
        (frozen, "its topic is frozen; take it out of constraints.freeze_topics"),
        (offline_partitions(snapshot), "it has no live replica to copy from"),
        (snapshot.leader < 0, "it has no leader to copy from; a plan without --replication-factor gives it one"),
        (stay > wanted, "excluded brokers keep what they host and lead"),
        (wanted - rf > free, "too few active brokers have no replica of it"),
    )
    skipped = []
    for applies, why in reasons:
        rows = np.flatnonzero((wanted > 0) & applies)
        skipped += [(snapshot.partition_name(p), why) for p in rows.tolist()]
        wanted[rows] = 0
    return wanted, skipped


def _matches(topics: tuple[str, ...], pattern: str) -> BoolArray:
    """bool [T]; internal topics (``__*``) only by a pattern that starts as they do."""
    matches = re.compile(translate(pattern)).match
    internal = pattern.startswith("__")
    return np.array([matches(t) is not None and (internal or not t.startswith("__")) for t in topics], np.bool_)


def _check(snapshot: Snapshot, options: PlanOptions) -> None:
    active = int((snapshot.broker_states == BrokerState.ACTIVE).sum())
    problems = []
    for pattern, factor in options.replication_factor:
        if not 1 <= factor <= active:
            message = f"expected 1 to {active} replicas, one for each active broker, found {factor} for {pattern}"
            problems.append(Problem("--replication-factor", message))
        if not _matches(snapshot.topics, pattern).any():
            problems.append(Problem("--replication-factor", no_topic(snapshot, pattern)))
    if problems:
        raise ConfigurationError("options", problems)


def _within_budgets(snapshot: Snapshot, wanted: Rows, options: PlanOptions) -> tuple[Rows, int]:
    """The same as far as budgets go, in the order in which it is done, and how many partitions are beyond them."""
    rf, size = snapshot.replication_factor, _size(snapshot)
    moves, data, partitions = 0, 0.0, 0
    kept = wanted.copy()
    over = 0
    for p in _order(snapshot, wanted):
        more = max(int(wanted[p] - rf[p]), 0)
        spent = (moves + more, data + more * size[p], partitions + 1)
        limits = (options.max_moves, options.max_bytes, options.max_partitions)
        if any(limit is not None and now > limit for now, limit in zip(spent, limits, strict=True)):
            kept[p], over = 0, over + 1
        else:
            moves, data, partitions = spent
    return kept, over


def _order(snapshot: Snapshot, wanted: Rows) -> list[int]:
    """Partitions in the order in which they are changed: those that lose replicas make room first, then the largest."""
    rows = np.flatnonzero(wanted > 0)
    loses = wanted[rows] < snapshot.replication_factor[rows]
    found: list[int] = rows[np.lexsort((rows, -_size(snapshot)[rows], ~loses))].tolist()
    return found


def _size(snapshot: Snapshot) -> FloatArray:
    """float64 [P]: bytes that a new replica copies."""
    return snapshot.vectors("disk")[0] if snapshot.storage == "local" else np.zeros(snapshot.partition_count)


@dataclass(frozen=True, slots=True)
class _Try:
    """A list that was judged, by broker rows, with its leader's slot; `gain` is by how much the potential falls."""

    row: tuple[int, ...]
    lead: int
    gain: float


class _Work:
    """One way to give partitions the factors `wanted` (int64 [P], 0: as it is)."""

    def __init__(self, given: Snapshot, goals: GoalSet, options: PlanOptions, wanted: Rows) -> None:
        self._given, self._goals, self._options, self._wanted = given, goals, options, wanted
        imagined, self._ids, start = with_imagined(given, goals, options, wanted)
        goals = with_set_of(goals, self._ids)
        compiled = compile_problem(imagined, goals, options)
        compiled.problem.partition[wanted > 0, MOVABLE] = 1
        compiled.problem.broker[np.isin(imagined.broker_ids, sorted(self._ids)), SET_OF] = ANYWHERE
        begin = replace(imagined, replicas=start)
        lists, lead = start.astype(np.int64), leader_slots(begin)
        compiled = replace(compiled, replicas=lists, lead=lead, home=lists, home_lead=lead, caution=None)
        self._board = Board.of(begin, compiled)
        self._confines = confines_of(policy_of(goals).filters or Filters(), begin, goals.constraints)
        self._evaluator = Evaluator(compiled)
        broker, table = compiled.problem.broker, compiled.problem.table
        self._rack = broker[:, RACK_OF]
        self._imagined = np.isin(begin.broker_ids, sorted(self._ids))
        self._means = [
            (float(compiled.problem.force[g, WEIGHT]), int(compiled.problem.goal[g, COLUMN]), table[:, g, MEAN])
            for g in np.flatnonzero(compiled.problem.goal[:, KIND] == DISTRIBUTION).tolist()
        ]

    def done(self) -> dict[int, str]:
        """Change all partitions; those that cannot be, with the reason. What has no room at its turn may have some after the others."""
        waiting = _order(self._board.snapshot.with_placement(*self._placed()), self._wanted)
        while True:
            failed = {}
            for p in waiting:
                found = self._found(p)
                if isinstance(found, str):
                    failed[p] = found
                    continue
                step = Step((p,), (found.row,), (found.lead,), self._reason(p, found))
                self._evaluator.make(step)
                self._board.make(step)
            if len(failed) in (0, len(waiting)):
                return failed
            waiting = list(failed)

    def _placed(self) -> tuple[np.ndarray, np.ndarray]:
        lists = np.where(np.append(self._imagined, True)[self._board.lists], -1, self._board.lists).astype(np.int32)
        return lists, self._board.leaders.astype(np.int32)

    def _found(self, p: int) -> _Try | str:
        """The best list for partition `p`, slot by slot; why there is none."""
        row = tuple(self._board.lists[p].tolist())
        best = _Try(row, int(self._board.lead[p]), 0.0)
        missing = [s for s, b in enumerate(row) if b >= 0 and self._imagined[b]]
        for slot in missing:
            tried = self._with_one_more(p, best, slot)
            if tried is None:
                within = "hard goals" if self._confines.allowed is None else f"hard goals and {self._confines.within}"
                return f"no broker may take a replica of it within {within}; {self._confines.remedy}, or loosen the goal"
            best = tried
        surplus = sum(b >= 0 for b in row) - int(self._wanted[p])
        for sink in np.flatnonzero(self._imagined)[: max(surplus, 0)].tolist():
            tried = self._with_one_less(p, best, sink)
            if tried is None:
                return "no replica of it may go within hard goals; loosen the goal"
            best = tried
        return best

    def _with_one_more(self, p: int, best: _Try, slot: int) -> _Try | None:
        """A replica in `slot`: in a rack with fewest of them, on the broker where it helps most."""
        able = np.flatnonzero(self._board.active & ~np.isin(np.arange(len(self._rack)), best.row))
        may = self._confines.may([int(self._board.snapshot.partition_topic[p])])
        if may is not None:
            able = able[may[able]]
        there = self._in_rack(best.row, able)
        pressure = self._pressure()[able]
        for count in np.unique(there).tolist():
            group = able[there == count]
            first = np.argsort(pressure[there == count], kind="stable")
            for start in range(0, len(group), LOOKED_AT):
                chosen = self._best(p, [
                    (_put(best.row, slot, b), best.lead) for b in sorted(group[first[start : start + LOOKED_AT]].tolist())
                ])  # fmt: skip
                if chosen is not None:
                    return chosen
        return None

    def _with_one_less(self, p: int, best: _Try, sink: int) -> _Try | None:
        """One replica fewer: a dead or draining broker's, else one in a rack with most of them, no leader where possible, and of those
        where it helps most."""
        states = self._board.snapshot.broker_states
        slots = [s for s, b in enumerate(best.row) if b >= 0 and not self._imagined[b] and states[b] != BrokerState.EXCLUDED]
        going = {BrokerState.DEAD: 0, BrokerState.DRAINING: 1}
        crowd = self._in_rack(best.row, np.array([best.row[s] for s in slots], np.int64))
        racks = len({int(self._rack[b]) for b in best.row if b >= 0 and not self._imagined[b]})
        needed = min(racks, int(self._wanted[p])) if self._board.rack is not None else 0
        ranks: dict[tuple[int, int, bool], list[int]] = {}
        for slot, count in zip(slots, crowd.tolist(), strict=True):
            rank = (going.get(BrokerState(int(states[best.row[slot]])), 2), -count, slot == best.lead)
            if rank[0] < 2 or count > 1 or racks > needed:
                ranks.setdefault(rank, []).append(slot)
        for rank in sorted(ranks):
            chosen = self._best(
                p, [(_put(best.row, s, sink), lead) for s in ranks[rank] for lead in self._heirs(best, s)]
            )
            if chosen is not None:
                return chosen
        return None

    def _heirs(self, best: _Try, gone: int) -> list[int]:
        """Slots that may lead when a replica is gone: the leader's, else those of active brokers."""
        if gone != best.lead:
            return [best.lead]
        active = self._board.active
        return [s for s, b in enumerate(best.row) if s != gone and b >= 0 and active[b]]

    def _best(self, p: int, lists: list[tuple[tuple[int, ...], int]]) -> _Try | None:
        """Of lists that break no hard goal, the first with the largest gain."""
        found: _Try | None = None
        for row, lead in lists:
            verdict = self._evaluator.verdict(Step((p,), (row,), (lead,), ""))
            if verdict.allowed and (found is None or verdict.gain > found.gain):
                found = _Try(row, lead, float(verdict.gain))
        return found

    def _in_rack(self, row: tuple[int, ...], brokers: np.ndarray) -> Rows:
        """int64 [n], replicas of the list in the rack of each broker."""
        racks = self._rack[[b for b in row if b >= 0 and not self._imagined[b]]]
        return np.asarray((self._rack[brokers][:, None] == racks[None, :]).sum(axis=1), np.int64)

    def _pressure(self) -> FloatArray:
        """float64 [B], how loaded each broker is by the goals, in means; by replicas where no goal has one."""
        state = self._evaluator.state
        total = np.zeros(len(state.hosts))
        for weight, column, mean in self._means:
            total += weight * np.divide(state.load[:, column], mean, out=np.zeros(len(mean)), where=mean > 0)
        return total if self._means else state.hosts.astype(np.float64)

    def _reason(self, p: int, found: _Try) -> str:
        board = self._board
        before, after = ({b for b in row if b >= 0 and not self._imagined[b]} for row in (board.lists[p].tolist(), found.row))
        parts = [f"{_named(board, came)} would get one" for came in [sorted(after - before)] if came]
        parts += [f"{_named(board, gone)} would lose one" for gone in [sorted(before - after)] if gone]
        return f"to have {counted(int(self._wanted[p]), 'replica')}, not {len(before)}: {', '.join(parts)}"

    # -- the plan ------------------------------------------------------------------------------------------------------

    def plan(self, left: list[tuple[str, str]]) -> Plan:
        """The plan of what was done; `left` is what stays as it is, and why."""
        made = assembled(self._given, self._board, self._goals, self._options)
        ids = self._ids
        size = {(c.topic, c.partition): s for c, s in self._sizes(made)}
        reasons = [s.reason for s in self._board.steps]
        actions = tuple(_real_action(a, reason, ids, size) for a, reason in zip(made.actions, reasons, strict=True))
        proposals = tuple(real(c, ids) for c in made.proposals)
        unknown = unsized(self._board.snapshot)
        rows = {(c.topic, c.partition): self._board.snapshot.row_of_partition(c.topic, c.partition) for c in proposals}
        added = sum(len(c.added) for c in proposals)
        data = round(sum(size[c.topic, c.partition] * len(c.added) for c in proposals))
        summary = Summary(
            len(actions), added, sum(c.leader_before != c.leader_after for c in proposals), len(proposals), data,
            sum(len(c.added) for c in proposals if unknown[rows[c.topic, c.partition]]),
        )  # fmt: skip
        return identified(replace(
            made, actions=actions, proposals=proposals, summary=summary, lower_bounds=LowerBounds(added, data), stopped=False, frontier=(),
            goals=tuple(replace(g, explanation=g.explanation.replace(STOPPED, ALONE)) for g in made.goals),
            brokers=tuple(
                replace(b, why=None if b.why is None else b.why.replace(STOPPED, ALONE)) for b in made.brokers if b.id not in ids
            ),
            skipped=(*made.skipped, *_skipped(left)),
            notes=(*(n for n in made.notes if not n.startswith("stopped on request")), *_alone(made.storage, proposals)),
        ))  # fmt: skip

    def _sizes(self, made: Plan) -> list[tuple[Change, float]]:
        sizes, row = self._board.compiled.problem.size, self._board.snapshot.row_of_partition
        return [(c, float(sizes[row(c.topic, c.partition)])) for c in made.proposals]


def _put(row: tuple[int, ...], slot: int, broker: int) -> tuple[int, ...]:
    return (*row[:slot], broker, *row[slot + 1 :])


def _named(board: Board, rows: list[int]) -> str:
    racks = board.snapshot.racks
    return ", ".join(board.name(b) + (f" in rack {racks[b]}" if racks[b] is not None else "") for b in rows)


def _real_action(action: Action, reason: str, imagined: frozenset[int], size: Mapping[tuple[str, int], float]) -> Action:
    changes = tuple(real(c, imagined) for c in action.changes)
    data = sum(len(c.added) * size[c.topic, c.partition] for c in changes)
    goals = tuple(r for r in action.repairs if r in action.goal_scores)
    return replace(
        action, type="replication", changes=changes, bytes_to_move=round(data), reason=reason, repairs=(REPAIR, *goals)
    )


def _alone(storage: str, proposals: Sequence[Change]) -> list[str]:
    """What is said of partitions that keep one of several replicas; in shared storage no data is lost with a broker."""
    count = sum(len(c.replicas_before) > 1 and len(c.replicas_after) == 1 for c in proposals)
    if not count or storage == "shared":
        return []
    whose = "its data" if count == 1 else "their data"
    return [f"{counted(count, 'partition')} would have a single replica: the loss of one broker loses {whose}"]


def _skipped(left: list[tuple[str, str]]) -> tuple[Skipped, ...]:
    named = [Skipped(f"partition {name}" if not name[0].isdigit() else name, why) for name, why in left[:MOST_NAMED]]
    more = len(left) - MOST_NAMED
    return (*named, Skipped(f"{counted(more, 'partition')} more", "as those before")) if more > 0 else tuple(named)
