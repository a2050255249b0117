"""Search over weights, bounds, cadence and horizon: grid, random, successive halving. Pure: replaying is the caller's, by parameter.

Called by `spark.backtest.run`. Deterministic by seed; only training stretches are ever asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, cycle, product, zip_longest
from typing import Any, Literal, NamedTuple

import numpy as np

from goals.model import GoalSet
from optimizer.detectors import policy_of
from optimizer.options import MIN_GAIN
from spark.backtest.configuration import HORIZON, Configuration, levelled, starts
from spark.backtest.difference import Difference, luck
from spark.backtest.outcome import Outcome
from spark.backtest.pareto import Rule, cost_difference, hours_difference, promising
from spark.backtest.surface import UNKNOWN, Measured, smoothed

DAY = 86_400.0
COUNTS = ("replicas", "leaders")
Method = Literal["grid", "random", "halving"]
Evaluate = Callable[[Sequence[Configuration], Sequence[int], int], Sequence[tuple[Outcome, ...]]]
"""Configurations, stretches and phases -> what came of each configuration on each of these stretches, the mean of so many phases."""

GENERATIONS = 2  # of configurations that are made from the best of those before
FACTORS = (1.0, 1.5, 2.0, 3.0, 0.5, 0.75, 5.0)  # of the bounds, in the order a grid takes them
SPREAD = 4.0  # weights are drawn from 1/SPREAD to SPREAD times the goal's own
WIDE = 20.0  # bounds of loads: from half the centre's to so many times it, each by itself: what matters in one may not in another
MOST_WIDE = 3.0  # share of the mean, beyond which a bound is none
NARROWEST = 0.5
COUNTS_NARROWEST = 0.6  # counts have no noise: a wider band leaves them out of the one that is scored, a narrower one well in it
GAINS = 30.0  # `min_gain`: from its own to so many times it
MORE_GAIN = 10.0  # times its own: tried whatever chance draws
STARTS = 20.0  # `start`: from the narrowest bound of a load to so many times it
KEPT = 3  # halving keeps one in so many
KNOWN = 1 / 3  # of the trials, at most: what differs from the goals as they are in one thing
ALONE = 10.0  # times its own: a bound that leaves one resource alone
LEVELLED = 1 / 3  # of the largest share of its hours that plans remove of a load: below, moves for a load are of no use
LATER = 1 / 2  # of the trials of halving: made from the best of those before
FINAL = 12  # configurations that are replayed at all phases, on stretches that the search never saw, before one is chosen
PARENTS = 4  # of a generation
CLOSE = 1.35  # what is drawn close to a number, times or divided by at most


class Knobs(NamedTuple):
    """Those of a `Configuration` that are no bounds, weights or times; None: as they are."""

    max_moves: int | None = None
    min_gain: float | None = None
    start: float | None = None
    move_cost: float | None = None


@dataclass(frozen=True)
class Space:
    """What may vary. `centre` has a bound for each goal (by name) around which bounds are tried: calibrated, or the goal's own.
    Of cadences and horizons (seconds) and budgets of moves (None: as the job has it) the first is what the goals are run with as they
    are."""

    goals: GoalSet
    centre: dict[str, float]
    cadences: tuple[float, ...]
    horizons: tuple[float, ...] = (HORIZON,)
    budgets: tuple[int | None, ...] = (None,)

    @property
    def least_gain(self) -> float:
        """`min_gain` of the goals' policy, else the planner's."""
        written = self.goals.policy.get("min_gain")
        return float(written) if isinstance(written, int | float) and written > 0.0 else MIN_GAIN

    @property
    def move_cost(self) -> float | None:
        """What moves cost besides their bytes, where that is tried: nothing, since bytes are counted. None: that is the goals' own."""
        return None if policy_of(self.goals).move_cost == 0.0 else 0.0

    @property
    def loads(self) -> tuple[str, ...]:
        """Names of the goals that level a load, not a count."""
        return tuple(g.name for g in levelled(self.goals) if g.resource not in COUNTS)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(goal.name for goal in levelled(self.goals))

    @property
    def narrow_counts(self) -> dict[str, float]:
        """Bounds of counts, as narrow as they are tried."""
        return {g.name: COUNTS_NARROWEST * g.bound for g in levelled(self.goals) if g.resource in COUNTS}

    @property
    def rhythms(self) -> tuple[tuple[float, float], ...]:
        """All pairs of cadence and horizon; the first is the goals' own."""
        return tuple(product(self.cadences, self.horizons))

    @property
    def own(self) -> Configuration:
        """The goals as they are, at the first cadence and horizon: what everything is compared with."""
        return self.made({}, {}, self.rhythms[0], "default: goals as they are")

    @property
    def never(self) -> Configuration:
        """No plan at all: what any planning has to beat."""
        return replace(self.own, what="never plans", mode="never")

    @property
    def hindsight(self) -> Configuration:
        """The goals as they are with the means of the coming day known: about the least hours that plans can have."""
        day = min(self.cadences[-1], DAY)
        return replace(self.own, what="with hindsight", cadence=day, horizon=day, mode="hindsight")

    @property
    def calibrated(self) -> Configuration:
        """The centre's bounds with the goals' own weights."""
        return self.made({}, self.centre, self.rhythms[0], "calibrated bounds")

    def made(
        self, weights: Mapping[str, float], bounds: Mapping[str, float], rhythm: tuple[float, float], what: str = "",
        knobs: Knobs | None = None,
    ) -> Configuration:  # fmt: skip
        """A configuration that names every goal, with numbers that read well (3 digits)."""
        goals = levelled(self.goals)
        moves, gain, start, move_cost = knobs or Knobs()
        return Configuration(
            rhythm[0],
            {g.name: _short(weights.get(g.name, g.weight)) for g in goals},
            {g.name: _short(bounds.get(g.name, g.bound)) for g in goals},
            what,
            rhythm[1],
            self.budgets[0] if moves is None else moves,
            None if gain is None else _short(gain),
            move_cost,
            None if start is None else _short(start),
        )


@dataclass(frozen=True)
class Trained:
    """A configuration and what came of it on each stretch (by its number) that it was tried on."""

    configuration: Configuration
    at: tuple[int, ...]
    each: tuple[Outcome, ...]

    @cached_property
    def outcome(self) -> Outcome:
        return sum(self.each, Outcome())


def search(
    space: Space,
    method: Method,
    trials: int,
    seed: int,
    stretches: Sequence[int],
    evaluate: Evaluate,
    rule: Rule | None = None,
    phases: int = 1,
) -> tuple[Trained, ...]:
    """Everything that was tried, in order; the goals as they are come first and always see the whole training span.

    `trials` bounds the number of configurations; not planning at all comes second, and is for comparison. With ``halving`` a half of them
    are tried on one stretch, the better third on three times as many, and so on: the better by the rule and the better by Pareto rank, by
    turns. The other half is made from the best of those before, in `GENERATIONS`, and tried on everything. The goals as they are are
    replayed at `phases`: chance in what all are compared with counts in every comparison.
    """
    rule = rule or Rule()
    later = round(LATER * trials / GENERATIONS) if method == "halving" else 0
    (own,), (none,) = evaluate([space.own], stretches, phases), evaluate([space.never], stretches, 1)
    at = tuple(stretches)
    found = [Trained(space.own, at, own), Trained(space.never, at, none)]
    useless = not_levelled(space, found[0].outcome, found[1].outcome)
    drawn = grid(space, trials) if method == "grid" else [*known(space, trials, seed, useless), *random(space, trials, seed)]
    tried = _each_once([space.own, space.calibrated, *drawn])[: max(trials - GENERATIONS * later, 2)]
    found += _halving(tried, own, 1 if method == "halving" else len(stretches), stretches, evaluate, rule)
    for generation in range(GENERATIONS if later else 0):
        more = _unseen(made_of(space, _best(found, rule), later, [seed, 1 + generation]), found)
        found += [Trained(c, at, each) for c, each in zip(more, evaluate(more, stretches, 1), strict=True)] if more else []
    return tuple(found)


def finalists(found: Sequence[Trained], rule: Rule, most: int = FINAL) -> list[int]:
    """Rows that are worth being replayed on the choosing span, the most promising first: those that saw the whole training span, then those
    that came furthest."""
    rows: list[int] = []
    for length in sorted({len(t.each) for t in found[1:]}, reverse=True):
        mine = [0, *(n for n, t in enumerate(found) if n and len(t.each) == length)]
        rows += [mine[i] for i in _promising([found[n] for n in mine], rule, most)]
    return rows[:most]


def estimates(found: Sequence[Trained], wanted: Sequence[Trained] | None = None) -> list[Difference]:
    """By what share each of the `wanted` (None: of all) will have more broker-hours than the first, the goals as they are, given what came
    of everything on every stretch (`smoothed`); of several rows with the same configuration and stretch that of the most phases counts."""
    own, wanted = _key(found[0].configuration), found if wanted is None else wanted
    by_stretch: dict[int, dict[tuple[object, ...], tuple[Configuration, Outcome]]] = {}
    for t in sorted(found, key=lambda t: t.each[0].phases):  # the latest of equal keys stays
        for stretch, one in zip(t.at, t.each, strict=True):
            by_stretch.setdefault(stretch, {})[_key(t.configuration)] = (t.configuration, one)
    measured = []
    for stretch, came in by_stretch.items():
        _, mine = came.pop(own)
        known = luck([mine, *(one for _, one in came.values())])
        chance = UNKNOWN if known is None else known
        for c, one in came.values():
            error = 0.0 if c.mode == "never" else chance / math.sqrt(one.phases)
            more = hours_difference([mine], [one]).share
            measured.append(Measured(c, stretch, more, error, chance / math.sqrt(mine.phases), _saved([mine], [one])))
        came[own] = (found[0].configuration, mine)
    each = [[by_stretch[stretch][own][1] for stretch in t.at] for t in wanted]
    if not measured or not all(math.isfinite(one.share) for one in measured):
        return [hours_difference(mine, t.each) for mine, t in zip(each, wanted, strict=True)]
    asked = [(t.configuration, _saved(mine, t.each)) for mine, t in zip(each, wanted, strict=True)]
    means, errors = smoothed(measured, found[0].configuration, asked)
    told = map(Difference, means.tolist(), errors.tolist())
    return [Difference(0.0, 0.0) if _key(t.configuration) == own else one for t, one in zip(wanted, told, strict=True)]


def _saved(own: Sequence[Outcome], other: Sequence[Outcome]) -> float:
    """Share of the cost; 0 where there is none to save."""
    share = -cost_difference(own, other).share
    return share if math.isfinite(share) else 0.0


def _promising(found: Sequence[Trained], rule: Rule, most: int) -> list[int]:
    """Of rows that were tried on the same stretches, the first the goals as they are; not planning at all is no choice."""
    length = min(len(t.each) for t in found)
    rows = promising([t.each[:length] for t in found], 0, rule, len(found), estimates(found))
    return [n for n in rows if found[n].configuration.mode == "planned"][:most]


def _halving(
    tried: list[Configuration], own: tuple[Outcome, ...], first: int, stretches: Sequence[int], evaluate: Evaluate, rule: Rule
) -> list[Trained]:
    """All but the first, which came out as `own`: on the `first` stretches, the better ones on more, the best on all."""
    found: dict[int, Trained] = {}
    alive, some = list(range(1, len(tried))), first
    while alive:
        at = tuple(stretches[:some])
        for n, each in zip(alive, evaluate([tried[n] for n in alive], at, 1), strict=True):
            found[n] = Trained(tried[n], at, each)
        if some >= len(stretches):
            break
        kept = max(1, -(-len(alive) // KEPT))
        better = _promising([Trained(tried[0], at, own[:some]), *(found[n] for n in alive)], rule, kept)
        alive = sorted(alive[i - 1] for i in better)
        some = min(len(stretches), some * KEPT)
    return [found[n] for n in sorted(found)]


def _best(found: Sequence[Trained], rule: Rule) -> list[Configuration]:
    """Those that are nearest to being chosen."""
    whole = [t for t in found if t.at == found[0].at]
    rows = _promising(whole, rule, PARENTS)
    return [whole[n].configuration for n in rows] or [found[0].configuration]


def _unseen(drawn: Sequence[Configuration], found: Sequence[Trained]) -> list[Configuration]:
    seen = {_key(t.configuration) for t in found}
    return _each_once([c for c in drawn if _key(c) not in seen])


def _each_once(configurations: Sequence[Configuration]) -> list[Configuration]:
    """Those that differ in more than what they are called; the first of equal ones stays, by its name."""
    found: dict[tuple[object, ...], Configuration] = {}
    for c in configurations:
        found.setdefault(_key(c), c)
    return list(found.values())


def not_levelled(space: Space, own: Outcome, none: Outcome) -> tuple[str, ...]:
    """Goals on loads of which plans, as the goals are, remove a far smaller share of the hours without plans than of the load that they
    level best (`LEVELLED`). These loads change faster than plans come."""
    without = {name: none.by_goal.get(name, 0.0) for name in space.loads}
    removed = {name: 1.0 - own.by_goal.get(name, 0.0) / hours for name, hours in without.items() if hours > 0.0}
    least = LEVELLED * max(removed.values(), default=0.0)
    return tuple(name for name, share in removed.items() if share < least) if least > 0.0 else ()


def known(space: Space, trials: int, seed: int, useless: Sequence[str] = ()) -> list[Configuration]:
    """What is worth a look whatever chance draws, in turns, at most `KNOWN` of the trials: the goals as they are, loads left alone, and the
    centre's bounds, at other cadences and horizons. (What cannot be levelled may take all moves from what can.) The longest horizons come
    first, since noise averages out. By turns the policy is as it is, moves cost their bytes alone, and plans have to gain more. Where
    loads are left alone, bounds of counts are the narrowest: moves for those loads kept counts level by the way, and what a count gains
    alone is often too little for a plan.

    `useless`: goals that `not_levelled` names, which are left alone together; else one or two are.
    """
    r = np.random.default_rng([seed, len(space.rhythms)])
    rhythms = sorted((space.rhythms[n] for n in r.permutation(len(space.rhythms)).tolist()), key=lambda rhythm: -rhythm[1])
    others = [rhythm for rhythm in rhythms if rhythm != space.rhythms[0]]
    knobs = cycle([Knobs(), Knobs(move_cost=space.move_cost), Knobs(min_gain=MORE_GAIN * space.least_gain)])
    as_they_are = [space.made({}, {}, rhythm, "weights and bounds as they are", k) for rhythm, k in zip(others, knobs, strict=False)]
    centred = [space.made({}, space.centre, rhythm, "calibrated bounds", k) for rhythm, k in zip(others, knobs, strict=False)]
    bounds = {g.name: g.bound for g in levelled(space.goals)}
    wide = {name: max(min(ALONE * bounds[name], MOST_WIDE), bounds[name]) for name in space.loads}
    drawn = [*combinations(space.loads, 1), *combinations(space.loads, 2)]
    groups = [tuple(useless)] * len(rhythms) if useless else [drawn[n] for n in r.permutation(len(drawn)).tolist()]
    alone = [
        space.made({}, {name: wide[name] for name in group} | space.narrow_counts, rhythm, f"{' and '.join(group)} left alone", k)
        for group, rhythm, k in zip(groups, cycle(rhythms), knobs, strict=False)
    ]
    turns = [one for three in zip_longest(alone, as_they_are, centred) for one in three if one is not None]
    return _each_once([space.own, *turns])[1:][: max(1, int(KNOWN * trials))]


def grid(space: Space, trials: int) -> list[Configuration]:
    """All bounds times a factor, each cadence and horizon; then one weight at a time doubled or halved. The first `trials` of them."""
    made = [
        space.made({}, {n: b * f for n, b in space.centre.items()}, rhythm)
        for f, rhythm in product(FACTORS, space.rhythms)
    ]
    own = {g.name: g.weight for g in levelled(space.goals)}
    for name, factor, f in product(space.names, (2.0, 0.5), FACTORS[:3]):
        bounds = {n: b * f for n, b in space.centre.items()}
        made.append(space.made(own | {name: own[name] * factor}, bounds, space.rhythms[0]))
    return made[:trials]


def random(space: Space, trials: int, seed: int) -> list[Configuration]:
    """Every knob by itself: half of the time as it is (a bound also as the centre has it), else drawn evenly on a logarithmic scale."""
    r = np.random.default_rng(seed)
    goals = levelled(space.goals)
    made = []
    for n in range(trials):
        centre = {g.name: space.centre.get(g.name, g.bound) if n % 2 else g.bound for g in goals}
        weights = {g.name: g.weight * SPREAD ** r.uniform(-1, 1) for g in goals} if r.random() < 0.5 else {}
        factors = {name: NARROWEST * (WIDE / NARROWEST) ** r.random() if r.random() < 0.5 else 1.0 for name in centre}
        bounds = {name: min(bound * factors[name], max(MOST_WIDE, bound)) for name, bound in centre.items()}
        rhythm = space.rhythms[int(r.integers(len(space.rhythms)))]
        made.append(space.made(weights, _counts_kept(space, bounds), rhythm, knobs=_knobs(space, r)))
    return made


def _knobs(space: Space, r: np.random.Generator) -> Knobs:
    """Those that are no bounds or weights: a half of each as it is."""
    budget = space.budgets[int(r.integers(len(space.budgets)))] if r.random() < 0.5 else None
    gain = space.least_gain * GAINS ** r.random() if r.random() < 0.5 else None
    start = None
    if starts(space.goals) and space.loads and r.random() < 0.25:
        narrowest = min(g.bound for g in levelled(space.goals) if g.name in space.loads)
        start = narrowest * STARTS ** r.random()
    return Knobs(budget, gain, start, space.move_cost if r.random() < 0.5 else None)


def made_of(space: Space, best: Sequence[Configuration], number: int, seed: Sequence[int]) -> list[Configuration]:
    """Configurations made of two of the best, each knob from one of them; then each knob, with one chance in three, a little off, or drawn
    again where it has no number."""
    r = np.random.default_rng(seed)
    made = []
    for n in range(number):
        one, other = best[n % len(best)], best[int(r.integers(len(best)))]

        def of(name: str, one: Configuration = one, other: Configuration = other) -> Any:
            return getattr(one if r.random() < 0.5 else other, name)

        def off(value: float) -> float:
            return value * CLOSE ** r.uniform(-1, 1) if r.random() < 1 / 3 else value

        weights = {name: off(weight) for name, weight in of("weights").items()}
        bounds = {name: off((one if r.random() < 0.5 else other).bounds[name]) for name in one.bounds}
        rhythm = of("cadence"), of("horizon")
        if r.random() < 1 / 3:
            rhythm = space.rhythms[int(r.integers(len(space.rhythms)))]
        again = _knobs(space, r)
        knobs = Knobs(*(getattr(again, name) if r.random() < 1 / 3 else of(name) for name in Knobs._fields))
        made.append(space.made(weights, _counts_kept(space, bounds), rhythm, knobs=knobs))
    return made


def _counts_kept(space: Space, bounds: dict[str, float]) -> dict[str, float]:
    """The bounds, those of counts not above the goals' own, and not far below."""
    counts = {g.name: g.bound for g in levelled(space.goals) if g.resource in COUNTS}
    return {
        n: min(max(b, counts[n] * COUNTS_NARROWEST), counts[n]) if n in counts else b for n, b in bounds.items()
    }


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _key(c: Configuration) -> tuple[object, ...]:
    return c.mode, c.cadence, c.horizon, c.max_moves, c.min_gain, c.move_cost, c.start, tuple(c.weights.items()), tuple(c.bounds.items())
