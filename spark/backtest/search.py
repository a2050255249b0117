"""Search over weights, bounds and cadence: grid, random, successive halving. Pure: replaying is the caller's, by parameter.

Called by `spark.backtest.run`. Deterministic by seed; only training stretches are ever asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from goals.model import GoalSet
from spark.backtest.configuration import Configuration, levelled
from spark.backtest.outcome import Outcome
from spark.backtest.pareto import ranks

Method = Literal["grid", "random", "halving"]
Evaluate = Callable[[Sequence[Configuration], Sequence[int]], Sequence[Outcome]]
"""Configurations and stretches -> what came of each configuration over these stretches together."""

FACTORS = (1.0, 1.5, 2.0, 3.0, 0.5, 0.75, 5.0)  # of the bounds, in the order a grid takes them
SPREAD = 4.0  # weights are drawn from 1/SPREAD to SPREAD times the goal's own
NARROWEST, WIDEST = 0.5, 5.0  # bounds, times the centre
COUNTS_NARROWEST = 1.0  # counts have no noise: their bounds are not narrowed
KEPT = 3  # halving keeps one in so many


@dataclass(frozen=True)
class Space:
    """What may vary. `centre` has a bound for each goal (by name) around which bounds are tried: calibrated, or the goal's own."""

    goals: GoalSet
    centre: dict[str, float]
    cadences: tuple[float, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(goal.name for goal in levelled(self.goals))

    @property
    def own(self) -> Configuration:
        """The goals as they are, at the first cadence: what everything is compared with."""
        return self.made({}, {}, self.cadences[0], "default: goals as they are")

    @property
    def calibrated(self) -> Configuration:
        """The centre's bounds with the goals' own weights."""
        return self.made({}, self.centre, self.cadences[0], "calibrated bounds")

    def made(
        self, weights: dict[str, float], bounds: dict[str, float], cadence: float, what: str = ""
    ) -> Configuration:
        """A configuration that names every goal, with numbers that read well (3 digits)."""
        goals = levelled(self.goals)
        return Configuration(
            cadence,
            {g.name: _short(weights.get(g.name, g.weight)) for g in goals},
            {g.name: _short(bounds.get(g.name, g.bound)) for g in goals},
            what,
        )


@dataclass(frozen=True)
class Trained:
    """A configuration and what came of it on as much of the training span as it was tried on; `whole` where that is all of it."""

    configuration: Configuration
    outcome: Outcome
    whole: bool


def search(
    space: Space, method: Method, trials: int, seed: int, stretches: Sequence[int], evaluate: Evaluate
) -> tuple[Trained, ...]:
    """Everything that was tried, in order; the goals as they are come first and always see the whole training span.

    `trials` bounds the number of configurations. With ``halving`` all are tried on one stretch, the better third on three times as
    many, and so on: what is better is told by Pareto rank in hours out of band and cost, not by one of the two.
    """
    first = [space.own, *([space.calibrated] if _key(space.calibrated) != _key(space.own) else [])]
    drawn = grid(space, trials) if method == "grid" else random(space, trials, seed)
    tried = list({_key(c): c for c in (*first, *drawn)}.values())[: max(trials, len(first))]
    if method != "halving" or len(stretches) == 1:
        found = evaluate(tried, stretches)
        return tuple(Trained(c, o, True) for c, o in zip(tried, found, strict=True))
    return _halving(tried, len(first), stretches, evaluate)


def _halving(
    tried: list[Configuration], fixed: int, stretches: Sequence[int], evaluate: Evaluate
) -> tuple[Trained, ...]:
    found: dict[int, Trained] = {}
    alive, some = list(range(len(tried))), 1
    while True:
        part = stretches[:some]
        whole = some >= len(stretches)
        for n, outcome in zip(alive, evaluate([tried[n] for n in alive], part), strict=True):
            found[n] = Trained(tried[n], outcome, whole)
        if whole:
            return tuple(found[n] for n in range(len(tried)))
        rank = ranks([_point(found[n].outcome) for n in alive])
        order = sorted(range(len(alive)), key=lambda i: (rank[i], alive[i]))
        kept = max(1, -(-len(alive) // KEPT))
        alive = sorted({*range(fixed), *(alive[i] for i in order[:kept])})
        some = min(len(stretches), some * KEPT)


def grid(space: Space, trials: int) -> list[Configuration]:
    """All bounds times a factor, each cadence; then one weight at a time doubled or halved. The first `trials` of them."""
    made = [
        space.made({}, {n: b * f for n, b in space.centre.items()}, cadence)
        for f, cadence in product(FACTORS, space.cadences)
    ]
    own = {g.name: g.weight for g in levelled(space.goals)}
    for name, factor, f in product(space.names, (2.0, 0.5), FACTORS[:3]):
        bounds = {n: b * f for n, b in space.centre.items()}
        made.append(space.made(own | {name: own[name] * factor}, bounds, space.cadences[0]))
    return made[:trials]


def random(space: Space, trials: int, seed: int) -> list[Configuration]:
    """Weights, and bounds of all goals together and of each, drawn evenly on a logarithmic scale; cadences drawn evenly."""
    r = np.random.default_rng(seed)
    goals, made = levelled(space.goals), []
    for _ in range(trials):
        common = np.log2(r.uniform(0, 1) + 1)  # 0..1, a little more often wide
        wide = np.exp(np.log(NARROWEST) + common * np.log(WIDEST / NARROWEST))
        weights = {g.name: g.weight * SPREAD ** r.uniform(-1, 1) for g in goals}
        own = {g.name: wide * 2.0 ** r.uniform(-0.5, 0.5) for g in goals}
        counts = {g.name for g in goals if g.resource in ("replicas", "leaders")}
        bounds = {
            n: b * (max(own[n], COUNTS_NARROWEST) if n in counts else own[n]) for n, b in space.centre.items()
        }
        made.append(space.made(weights, bounds, float(r.choice(space.cadences))))
    return made


def _point(outcome: Outcome) -> tuple[float, float]:
    return outcome.out_of_band_hours, outcome.cost


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _key(c: Configuration) -> tuple[object, ...]:
    return c.cadence, tuple(c.weights.items()), tuple(c.bounds.items())
