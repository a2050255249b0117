"""The cycle of a policy: sources and amounts, order of units, filters, placement, evaluator; again until the detector is satisfied.

Called by `follow`. Nothing is kept between plans.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from cluster_model.quantities import format_size
from cluster_model.snapshot import FloatArray
from goals.model import GoalSet
from goals.policy import Fraction, PolicyDocument, PolicyGuards, UntilBelow
from goals.policy_filters import Filters
from optimizer.options import PlanOptions
from optimizer.policies.board import Board, Step
from optimizer.policies.confines import confines_of
from optimizer.policies.groups import Groups, groups_of
from optimizer.policies.picking import best_fit, heaviest_until, in_order, lightest_within, offload
from optimizer.policies.placements import Dice, Placer
from optimizer.policies.profiles import Weights, broker_scores, weights_of
from optimizer.policies.recording import MOST_CHANGES, Evaluator
from optimizer.policies.sources import Source, sources
from optimizer.policies.targeting import Chooser
from optimizer.policies.units import Unit, carried, units_on
from optimizer.policies.when import When
from optimizer.whatif import matching_topics
from optimizer.why_words import counted, few

MOST_CYCLES = 2_000
HEAVIEST = 10  # units of a broker that `swap_if_too_big` looks at
INTERNAL = "__"  # how names of internal topics start
MOST_TOLD = 8  # splits of groups
MOST_TRIED = 64  # units of a broker that may not move, before the next broker gives


@dataclass(eq=False)
class Run:
    """One plan being made: the board, the evaluator's state beside it, and what the stages kept and dropped."""

    board: Board
    goals: GoalSet
    policy: PolicyDocument
    options: PlanOptions
    when: When
    evaluator: Evaluator
    weights: Weights
    chooser: Chooser
    passed: np.ndarray  # bool [P]: left alone
    resting: np.ndarray  # bool [P]: of these, those that are for now only
    groups: Groups | None = None  # of unit `group`
    by_rate: bool = False  # weights are requests/s, as the detector fires for these
    dropped: dict[str, set[tuple[int, str]]] = field(default_factory=dict)  # why -> broker row and unit that were passed over
    changed: set[int] = field(default_factory=set)
    unloading: bool = False  # parts of what was split are offered
    stuck: bool = False  # nothing more can leave dead and draining brokers for now
    moves: int = 0
    moved_bytes: float = 0.0

    def drop(self, why: str, row: int, units: Iterable[Unit]) -> None:
        """Count `units` of a broker as passed over: once, in however many cycles they are."""
        self.dropped.setdefault(why, set()).update((row, unit.name) for unit in units)

    @property
    def filters(self) -> Filters:
        return self.policy.filters or Filters()

    def content(self) -> bool:
        """Whether the detector wants nothing more, as the cluster would stand now."""
        return not self.when.found.fired and (self.stuck or not self.when.found.unrepaired)

    @property
    def confined(self) -> str:
        """What leaves fewer brokers to a placement, as a part of a sentence."""
        given = [name for name in ("isolation", "anti_affinity") if getattr(self.filters, name)]
        given += ["broker sets"] if self.board.compiled.sets is not None else []
        return f" within {' and '.join(given)}" if given else ""

    @property
    def guards(self) -> PolicyGuards:
        return self.policy.guards or PolicyGuards()


def run(board: Board, goals: GoalSet, policy: PolicyDocument, options: PlanOptions, when: When) -> list[str]:
    """Make steps on `board` until the detector is satisfied or a part says stop; what every stage did, in sentences."""
    filters = policy.filters or Filters()
    passed = ~board.movable
    named = matching_topics(board.snapshot.topics, filters.exclude)
    if filters.include:
        named |= ~matching_topics(board.snapshot.topics, filters.include)
    passed |= named[board.snapshot.partition_topic]
    resting = board.resting & ~named[board.snapshot.partition_topic]
    confines = confines_of(filters, board.snapshot, goals.constraints)
    hits = None if options.split_hits is None else dict(options.split_hits)
    groups = groups_of(board.snapshot, policy.split, hits) if policy.unit == "group" else None
    one = Run(
        board, goals, policy, options, when, Evaluator(board.compiled, board.steps), weights_of(board.snapshot),
        Chooser(Placer(policy.placement, goals, Dice(options.seed)), confines), passed, resting, groups,
    )  # fmt: skip
    offered, why, cycles, levelling = _unloaded(one), "", 0, 0
    while not why and cycles < MOST_CYCLES:
        if levelling == one.guards.cycles:
            why = f"guard cycles: {levelling}, which is the limit of one plan"
            break
        levelling += one.stuck or not board.leaving[board.lists[board.lists >= 0]].any()
        why = _cycle(one)
        cycles += 1
    kind = policy.amount.kind if policy.amount else ""
    told = [f"amount {kind}: {counted(one.moves, 'move')} in {counted(cycles, 'cycle')}; {why or 'too many cycles'}"]
    if one.groups is not None:
        if policy.split is not None and policy.split.hits > 1 and hits is None:
            told.append(f"split: the dry run does not wait for {policy.split.hits} checks in a row")
        more = len(one.groups.told) - MOST_TOLD
        told += [*one.groups.told[:MOST_TOLD], *([f"split: {more} more"] if more > 0 else []), *offered]
    noun = "replica" if policy.unit == "partition" else "unit"
    told += [f"{why}: {counted(len(units), noun)} passed over" for why, units in sorted(one.dropped.items()) if units]
    if named.any():
        told.append(f"filter exclude, include: {counted(int(named.sum()), 'topic')} left alone")
    return [*told, *confines.told]


def _cycle(one: Run) -> str:
    """One cycle; why there is no other, empty where there is."""
    snapshot = one.board.now()
    scores = broker_scores(one.policy.score.kind if one.policy.score else "count", snapshot, one.goals)
    if one.content():
        return "the detector is satisfied"
    if one.by_rate != one.when.by_rate:
        one.by_rate = one.when.by_rate
        one.weights = weights_of(snapshot, by_rate=one.by_rate)
    leaving = one.board.leaving & (not one.stuck)
    giving = sources(one.policy, snapshot, one.goals, scores, one.board.active, leaving, by_rate=one.by_rate)
    if not giving:
        return "no broker has to give"
    done, brokers, served = 0, 0, set[int]()
    for source in giving:
        if one.guards.brokers_per_cycle is not None and brokers >= one.guards.brokers_per_cycle:
            break
        if one.content():
            return "the detector is satisfied"
        counterpart = next((int(b) for b in source.takers if b not in served), None)
        if counterpart is None and len(source.takers):
            continue
        before, refused = done, 0
        for unit, target, others in _chosen(one, source, counterpart, scores):
            stop = _spent(one, done, repairs=source.leaves)
            if stop:
                return stop if done == 0 or "guard moves_per_cycle" not in stop else ""
            if refused >= MOST_TRIED:
                break
            if _made(one, unit, source.row, target, others, rest=done > before):
                done += 1
                if one.policy.amount is not None and one.policy.amount.kind == "one" and not source.leaves:
                    return ""
            else:
                refused += 1
        brokers += done > before
        if done > before and counterpart is not None:
            served.add(counterpart)
    repairs = giving[0].leaves
    one.stuck = repairs and not done  # what cannot leave keeps no other broker from being levelled, which may make room for it
    return "" if done or repairs else "filters, placement and evaluator left nothing to move"


def too_few(board: Board, policy: PolicyDocument) -> str:
    """Why nothing is moved for balance with so few active brokers; empty where there are enough."""
    there, least = int(board.active.sum()), (policy.guards or PolicyGuards()).min_brokers
    return f"guard min_brokers: {there} active brokers, {least} must be there" if there < least else ""


def _unloaded(one: Run) -> list[str]:
    """Offer the parts of what was split to other brokers, before brokers give; what came of it, in sentences. No broker gives to one that
    is loaded as much, and all parts of the policy but the amount have a say."""
    split = one.policy.split
    if one.groups is None or split is None or not split.unload or not one.groups.parts:
        return []
    offers = moved = 0
    one.unloading = True
    for row in np.flatnonzero(one.board.active).tolist():
        units = [unit for unit in _filtered(one, Source(row), None)[0] if unit.name in one.groups.parts]
        for i in _ranked(one, [unit.amount for unit in units], _late(one, units)):
            scores = broker_scores(one.policy.score.kind if one.policy.score else "count", one.board.now(), one.goals)
            if one.content() or _spent(one, moved, repairs=False):
                break
            if scores[row] > scores[one.board.active].min():
                offers += 1
                moved += _made(one, units[i], row, -1, ())
    one.unloading = False
    return [f"split unload: {offers} parts offered, {moved} moved"]


def _late(one: Run, units: list[Unit]) -> list[bool]:
    """Which units have a partition of an internal topic: they go last, as Kafka and its balancers stand on them."""
    topics, of = one.board.snapshot.topics, one.board.snapshot.partition_topic
    return [any(topics[of[p]].startswith(INTERNAL) for p, _ in unit.replicas) for unit in units]


def _ranked(one: Run, amounts: list[float], late: list[bool]) -> list[int]:
    return in_order(amounts, late, heaviest=one.policy.order == "heaviest")


def _spent(one: Run, done: int, *, repairs: bool) -> str:
    """Why nothing more may be moved, empty where something may. Guards do not hold repairs back, budgets do."""
    missing = too_few(one.board, one.policy)
    if missing and not repairs:
        return missing
    guards = () if repairs else (one.guards.moves, one.guards.moves_per_hour)
    limits = [limit for limit in (one.options.max_moves, *guards) if limit is not None]
    if limits and one.moves >= min(limits):
        return f"guard moves: {one.moves} moves, which is the limit of one plan"
    if one.options.max_partitions is not None and len(one.changed) >= one.options.max_partitions:
        return f"guard budget: {len(one.changed)} partitions, which is the limit"
    if one.guards.moves_per_cycle is not None and not repairs and done >= one.guards.moves_per_cycle:
        return "guard moves_per_cycle"
    return ""


def _chosen(
    one: Run, source: Source, target: int | None, scores: FloatArray
) -> list[tuple[Unit, int, tuple[Unit, ...]]]:
    """Units of a source in the order they are tried, with their targets, and units that come back for it. `target` is its counterpart."""
    units, staying = _filtered(one, source, target)
    amounts = [unit.amount for unit in units]
    late = _late(one, units)
    order, amount = one.policy.order or "lightest", one.policy.amount
    to = -1 if target is None else target
    room = max(len(units) if source.leaves else len(units) + len(staying) - one.filters.keep, 0)
    if source.leaves or amount is None or amount.kind == "one":
        if not source.leaves and _too_little(one, source.row, sum(amounts), units):
            return []
        return [(units[i], to, ()) for i in _ranked(one, amounts, late)[:room]]
    carries = carried(one.board, one.weights)
    wanted = _wanted(one, source, target, scores, carries)
    if _too_little(one, source.row, wanted, units):
        return []
    if order == "heaviest":
        rank = heaviest_until(amounts, wanted, late)
    elif order == "best_fit":
        rank = best_fit(amounts, wanted, late, amount.slack if isinstance(amount, Fraction) else 0.0)
    else:
        if order == "swap_if_too_big":  # among the heaviest, lightest first, as those are what is worth a move
            top = in_order(amounts, late, heaviest=True)[:HEAVIEST]
            units, amounts, late = [units[i] for i in top], [amounts[i] for i in top], [late[i] for i in top]
            if target is not None:
                return _offloaded(one, source.row, target, units, staying, wanted, carries)
        rank = lightest_within(amounts, wanted, late)
    return [(units[i], to, ()) for i in rank[:room]]


def _too_little(one: Run, row: int, wanted: float, units: list[Unit]) -> bool:
    """Whether what a broker is to give is not worth moving."""
    least = {"bytes/s": one.filters.min_throughput, "requests/s": one.filters.min_rate}.get(one.weights.unit, 0.0)
    if wanted < least:
        rate = f"{format_size(least)}/s" if one.weights.unit == "bytes/s" else f"{least:g} {one.weights.unit}"
        one.drop(f"filter min: less than {rate} to move", row, units)
    return wanted < least


def _wanted(one: Run, source: Source, target: int | None, scores: FloatArray, carries: FloatArray) -> float:
    """How much is to leave a source, in the unit of weights; `carries` float64 [B] is what brokers hold of it."""
    total = float(carries[source.row])
    others = one.board.active if target is None else [target]
    match one.policy.amount:
        case UntilBelow():
            return source.share * total
        case Fraction(ratio=ratio):
            return ratio * (total - float(carries[others].min()))
        case _:  # half of the gap, as a share of what the source holds
            low, high = float(scores[others].min()), float(scores[source.row])
            return total * (high - low) / 2.0 / high if high > 0.0 else 0.0


def _filtered(one: Run, source: Source, target: int | None) -> tuple[list[Unit], list[Unit]]:
    """Units on a source that no filter passes over, and those that stay for another reason than that their topics are left alone."""
    kept, staying = [], []
    for unit in units_on(one.board, source.row, one.weights, one.policy.unit, one.groups):
        rows = [p for p, _ in unit.replicas]
        if source.leaves:
            if one.board.mendable[rows].all():
                kept.append(unit)
        elif one.passed[rows].any():
            rests = bool(one.resting[rows].any())
            one.drop("moved lately, or a load in doubt" if rests else "filter topics: excluded or frozen", source.row, [unit])
            if rests:
                staying.append(unit)
        elif one.filters.once and any(p in one.changed for p in rows):
            one.drop("filter once: changed in this plan already", source.row, [unit])
            staying.append(unit)
        elif target is not None and not one.chooser.fits(one.board, unit, source.row, target, one.filters.max_units):
            one.drop("placement paired: the counterpart may not take it", source.row, [unit])
            staying.append(unit)
        else:
            kept.append(unit)
    return kept, staying


def _offloaded(
    one: Run, source: int, target: int, units: list[Unit], staying: list[Unit], wanted: float, carries: FloatArray
) -> list[tuple[Unit, int, tuple[Unit, ...]]]:
    """Units of `source` for its counterpart, with what comes back for those that are too heavy alone."""
    there = units_on(one.board, target, one.weights, one.policy.unit, one.groups)
    back = [u for u in there if not any(one.passed[p] or (one.filters.once and p in one.changed) for p, _ in u.replicas)]
    most = [back[j] for j in in_order([u.amount for u in back], heaviest=True)[:HEAVIEST]]
    every = [*units, *staying]
    picked = offload(
        [u.amount for u in every], [u.amount for u in most], wanted, float(carries[source]), float(carries[target]),
        stays=[i >= len(units) for i in range(len(every))], late=_late(one, every), keep=one.filters.keep,
    )  # fmt: skip
    return [(every[i], target, tuple(most[j] for j in returned)) for i, returned in picked]


def _made(one: Run, unit: Unit, source: int, target: int, others: tuple[Unit, ...], *, rest: bool = False) -> bool:
    """Whether a unit was moved; parts say why not. `rest`: the source gave a part of its amount already."""
    board = one.board
    if target < 0:
        snapshot = board.now()
        scores = broker_scores(one.policy.score.kind if one.policy.score else "count", snapshot, one.goals)
        found = one.chooser.target(board, snapshot, unit, source, scores, one.filters.max_units)
    else:
        found = target if one.chooser.fits(board, unit, source, target, one.filters.max_units) else None
    if found is None:
        one.drop(f"placement{one.confined}: no broker may take it", source, [unit])
        return False
    changes = [(p, slot, found) for p, slot in unit.replicas]
    if not all(one.chooser.fits(board, other, found, source, None) for other in others):
        one.drop("placement: no swap is possible", source, [unit])
        return False
    changes += [(p, slot, source) for other in others for p, slot in other.replicas]
    size = sum(float(board.compiled.problem.size[p]) for p, _, _ in changes)
    if one.options.max_bytes is not None and one.moved_bytes + size > one.options.max_bytes:
        one.drop("guard budget: too many bytes", source, [unit])
        return False
    steps = _steps(board, changes, _why(board, one, unit, source, found, others))
    if not _accepted(one, steps, unit, source, rest and not others):
        return False
    one.moves += len(changes)
    one.moved_bytes += size
    one.changed.update(p for p, _, _ in changes)
    return True


def _steps(board: Board, changes: list[tuple[int, int, int]], reason: str) -> list[Step]:
    """One action, or several where there are more changes than one may have."""
    result = []
    for start in range(0, len(changes), MOST_CHANGES):
        part = changes[start : start + MOST_CHANGES]
        lists = tuple(board.moved(p, slot, target) for p, slot, target in part)
        result.append(Step(tuple(p for p, _, _ in part), lists, tuple(int(board.lead[p]) for p, _, _ in part), reason))
    return result


def _accepted(one: Run, steps: list[Step], unit: Unit, source: int, rest: bool) -> bool:
    """Make the steps where `accept` goes along; else leave all as it was. For the rest of an amount it is enough if nothing gets worse:
    the source may be below its line by then, and another broker above it."""
    by_score = one.policy.accept in ("score", "both")
    done: list[tuple[Step, Step]] = []
    refusal: str | None = None
    for step in steps:
        back = Step(step.partitions, tuple(tuple(one.board.lists[p].tolist()) for p in step.partitions), step.leads, "")
        refusal = one.evaluator.refusal(step, by_score=by_score)
        if refusal is not None:
            break
        one.evaluator.make(step)
        one.board.make(step)
        done.append((step, back))
    if refusal is None:
        after = one.when.ahead(one.board.now())
        if one.policy.accept == "score" or one.when.agrees(after) or (rest and one.when.no_worse(after)) or one.board.leaving[source]:
            one.when.go_on(after)
            return True
        refusal = "the detector would not be more satisfied"
    for _, back in reversed(done):
        one.evaluator.make(back)
        one.board.make(back)
        del one.board.steps[-2:]
    one.drop(f"evaluator: {refusal if 'combined' not in refusal else 'combined score not above 0.5'}", source, [unit])
    return False


def _why(board: Board, one: Run, unit: Unit, source: int, target: int, others: tuple[Unit, ...]) -> str:
    weight = one.weights.unit
    amount = f"{format_size(unit.amount)}/s" if weight == "bytes/s" else f"{unit.amount:.4g} {weight}"
    text = f"detector {one.when.found.findings[0].text}" if one.when.found.findings else "the detector goes on until its stop"
    swap = f", against {few([other.name for other in others])}" if others else ""
    kind = one.policy.placement.kind if one.policy.placement else "least"
    first = "split unload" if one.unloading else f"order {one.policy.order or 'lightest'}"
    return (
        f"{text}; {first}: {unit.name} ({amount}) would leave {board.name(source)}; "
        f"placement {kind}: {board.name(target)} would take it{swap}"
    )


