"""Search over weights, bounds, cadence and horizon: grid, random, successive halving. Pure: replaying is the caller's, by parameter.

Called by `spark.backtest.run`. Deterministic by seed; only training stretches are ever asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Literal

import numpy as np

from goals.model import GoalSet
from spark.backtest.configuration import HORIZON, Configuration, levelled
from spark.backtest.outcome import Outcome
from spark.backtest.pareto import Rule, choose, promising

DAY = 86_400.0
Method = Literal["grid", "random", "halving"]
Evaluate = Callable[[Sequence[Configuration], Sequence[int], int], Sequence[tuple[Outcome, ...]]]
"""Configurations, stretches and phases -> what came of each configuration on each of these stretches, the mean of so many phases."""

FACTORS = (1.0, 1.5, 2.0, 3.0, 0.5, 0.75, 5.0)  # of the bounds, in the order a grid takes them
SPREAD = 4.0  # weights are drawn from 1/SPREAD to SPREAD times the goal's own
WIDE = 20.0  # bounds that are drawn for each load by itself, from its own to so many times it: what matters in one may not in another
MOST_WIDE = 3.0  # share of the mean, beyond which a bound is none
NARROWEST, WIDEST = 0.5, 5.0  # bounds, times the centre
NEAR = 1.6  # bounds that are drawn around the goals' own, times or divided by at most
COUNTS_NARROWEST = 0.6  # counts have no noise: a wider band leaves them out of the one that is scored, a narrower one well in it
KEPT = 3  # halving keeps one in so many
AS_THEY_ARE = 1 / 3  # of the trials, at most: the goals as they are at other cadences and horizons
LAST = 1 / 4  # of the trials of halving: drawn close to the best of the others
FINAL = 12  # configurations that are replayed at all phases before one is chosen
CLOSE = 1.35  # bounds and weights of those, times or divided by at most


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
    def names(self) -> tuple[str, ...]:
        return tuple(goal.name for goal in levelled(self.goals))

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
        self, weights: dict[str, float], bounds: dict[str, float], rhythm: tuple[float, float], what: str = "", max_moves: int | None = None
    ) -> Configuration:
        """A configuration that names every goal, with numbers that read well (3 digits)."""
        goals = levelled(self.goals)
        return Configuration(
            rhythm[0],
            {g.name: _short(weights.get(g.name, g.weight)) for g in goals},
            {g.name: _short(bounds.get(g.name, g.bound)) for g in goals},
            what,
            rhythm[1],
            self.budgets[0] if max_moves is None else max_moves,
        )


@dataclass(frozen=True)
class Trained:
    """A configuration and what came of it on each stretch of the training span that it was tried on.

    `whole` where that is all of it; `final` where it was replayed at all phases there, so that it may be chosen.
    """

    configuration: Configuration
    each: tuple[Outcome, ...]
    whole: bool
    final: bool = False

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

    `trials` bounds the number of configurations. With ``halving`` most are tried on one stretch, the better third on three times as
    many, and so on: the better by the rule and the better by Pareto rank, by turns. The last quarter is then drawn close to the best
    and tried on everything. The most promising of all are replayed again at all `phases`, as the goals as they are were from the
    first: chance in what all are compared with would count in every comparison.
    """
    rule = rule or Rule()
    last = round(LAST * trials) if method == "halving" and trials >= 1 / LAST else 0
    drawn = grid(space, trials) if method == "grid" else [*as_they_are(space, trials), *random(space, trials, seed)]
    tried = _each_once([space.own, space.calibrated, *drawn])[: max(trials - last, 2)]
    (own,) = evaluate(tried[:1], stretches, phases)
    first = 1 if method == "halving" else len(stretches)
    found = [Trained(tried[0], own, True, True), *_halving(tried, own, first, stretches, evaluate, rule)]
    if last:
        more = _unseen(close_to(space, _best(found, rule), last, seed), found)
        found += [Trained(c, each, True) for c, each in zip(more, evaluate(more, stretches, 1), strict=True)] if more else []
    return tuple(_finished(found, stretches, evaluate, rule, phases))


def _halving(
    tried: list[Configuration], own: tuple[Outcome, ...], first: int, stretches: Sequence[int], evaluate: Evaluate, rule: Rule
) -> list[Trained]:
    """All but the first, which came out as `own`: on the `first` stretches, the better ones on more, the best on all."""
    found: dict[int, Trained] = {}
    alive, some = list(range(1, len(tried))), first
    while alive:
        whole = some >= len(stretches)
        for n, each in zip(alive, evaluate([tried[n] for n in alive], stretches[:some], 1), strict=True):
            found[n] = Trained(tried[n], each, whole)
        if whole:
            break
        kept = max(1, -(-len(alive) // KEPT))
        better = promising([own[:some], *(found[n].each for n in alive)], 0, rule, kept)
        alive = sorted(alive[i - 1] for i in better)
        some = min(len(stretches), some * KEPT)
    return [found[n] for n in sorted(found)]


def _finished(found: list[Trained], stretches: Sequence[int], evaluate: Evaluate, rule: Rule, phases: int) -> list[Trained]:
    """The same with the most promising ones replayed at all phases; with one phase all are as they should be."""
    if phases == 1:
        return [replace(t, final=t.whole) for t in found]
    whole = [n for n, t in enumerate(found) if t.whole]
    best = [whole[i] for i in promising([found[n].each for n in whole], 0, rule, FINAL)]
    best += _given_up(found, rule)[: FINAL - len(best)]
    made = list(found)
    for n, each in zip(best, evaluate([found[n].configuration for n in best], stretches, phases) if best else [], strict=True):
        made[n] = Trained(found[n].configuration, each, True, True)
    return made


def _given_up(found: Sequence[Trained], rule: Rule) -> list[int]:
    """Those that were not tried on everything, the ones that came furthest first, the most promising of these before the others."""
    rows = []
    for length in sorted({len(t.each) for t in found if not t.whole}, reverse=True):
        mine = [n for n, t in enumerate(found) if not t.whole and len(t.each) == length]
        rows += [mine[i - 1] for i in promising([found[0].each[:length], *(found[n].each for n in mine)], 0, rule, len(mine))]
    return rows


def _best(found: Sequence[Trained], rule: Rule) -> list[Configuration]:
    """The choice so far, and the two that are nearest to being it."""
    whole = [t for t in found if t.whole]
    each = [t.each for t in whole]
    rows = dict.fromkeys([choose(each, 0, rule).row, *promising(each, 0, rule, 2)])
    return [whole[n].configuration for n in rows if n or len(rows) == 1]


def _unseen(drawn: Sequence[Configuration], found: Sequence[Trained]) -> list[Configuration]:
    seen = {_key(t.configuration) for t in found}
    return _each_once([c for c in drawn if _key(c) not in seen])


def _each_once(configurations: Sequence[Configuration]) -> list[Configuration]:
    """Those that differ in more than what they are called; the first of equal ones stays, by its name."""
    found: dict[tuple[object, ...], Configuration] = {}
    for c in configurations:
        found.setdefault(_key(c), c)
    return list(found.values())


def as_they_are(space: Space, trials: int) -> list[Configuration]:
    """The goals as they are at other cadences and horizons, evenly many where there are more than their part of the trials."""
    others = space.rhythms[1:]
    most = min(len(others), max(1, int(AS_THEY_ARE * trials)))
    return [space.made({}, {}, others[(2 * i + 1) * len(others) // (2 * most)], "weights and bounds as they are") for i in range(most)]


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
    """Weights, and bounds of all goals together and of each, drawn evenly on a logarithmic scale; cadences and horizons drawn evenly.

    By turns the bounds are near the goals' own, from their own to `WIDE` times them for each by itself, and widely around the centre; a
    budget of moves is drawn for every second one.
    """
    r = np.random.default_rng(seed)
    goals, made = levelled(space.goals), []
    for n in range(trials):
        common = np.log2(r.uniform(0, 1) + 1)  # 0..1, a little more often wide
        weights = {g.name: g.weight * SPREAD ** r.uniform(-1, 1) for g in goals}
        each = {g.name: 2.0 ** r.uniform(-0.5, 0.5) for g in goals}
        if n % 3 == 0:
            near = NEAR ** r.uniform(-1, 1)
            bounds = {g.name: g.bound * near * each[g.name] for g in goals}
        elif n % 3 == 1:
            bounds = {g.name: min(g.bound * WIDE ** r.uniform(0, 1), max(MOST_WIDE, g.bound)) for g in goals}
        else:
            wide = np.exp(np.log(NARROWEST) + common * np.log(WIDEST / NARROWEST))
            bounds = {g.name: space.centre.get(g.name, g.bound) * wide * each[g.name] for g in goals}
        rhythm = space.rhythms[int(r.integers(len(space.rhythms)))]
        budget = space.budgets[int(r.integers(len(space.budgets)))] if n % 2 else None
        made.append(space.made(weights, _counts_kept(space, bounds), rhythm, max_moves=budget))
    return made


def close_to(space: Space, best: Sequence[Configuration], number: int, seed: int) -> list[Configuration]:
    """Configurations a little off the best ones, by turns; each second one at the best one's own cadence and horizon."""
    r = np.random.default_rng([seed, 1])
    made = []
    for n in range(number):
        base = best[n % len(best)]
        together = CLOSE ** r.uniform(-1, 1)
        bounds = {name: b * together * CLOSE ** r.uniform(-0.5, 0.5) for name, b in base.bounds.items()}
        weights = {name: w * CLOSE ** r.uniform(-2, 2) for name, w in base.weights.items()}
        rhythm = base.cadence, base.horizon
        if n // len(best) % 2:
            rhythm = space.rhythms[int(r.integers(len(space.rhythms)))]
        made.append(space.made(weights, _counts_kept(space, bounds), rhythm, max_moves=base.max_moves))
    return made


def _counts_kept(space: Space, bounds: dict[str, float]) -> dict[str, float]:
    """The bounds, those of counts not above the goals' own, and not far below."""
    counts = {g.name: g.bound for g in levelled(space.goals) if g.resource in ("replicas", "leaders")}
    return {
        n: min(max(b, counts[n] * COUNTS_NARROWEST), counts[n]) if n in counts else b for n, b in bounds.items()
    }


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _key(c: Configuration) -> tuple[object, ...]:
    return c.cadence, c.horizon, c.max_moves, tuple(c.weights.items()), tuple(c.bounds.items())
