"""What a difference most probably is, of everything that was tried: each measured by chance, all together much better. Pure.

Called by the search, to go on with what is good and not with what was lucky, and by the choice, to which the search's span says something
too. Plain numpy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from cluster_model.snapshot import FloatArray
from spark.backtest.configuration import Configuration

SLOPES = (0.0, 0.003, 0.01, 0.03, 0.1)  # standard deviation of what one knob does over a factor of e, as shares of the hours
BENDS = (0.0, 0.003, 0.01, 0.03, 0.1)  # of what no sum of knobs explains
APART = (0.0, 0.03, 0.1, 0.3)  # what is so in one span only, over what is always so: variances (docs/benchmarks.md: 0.04)
REACH = 1.5  # over so many factors of e, in all knobs together, what is no sum goes by itself
SAVED = 3.0  # all of the cost counts as so many factors of e of a knob
UNKNOWN = 0.05  # luck of one replay where nothing was replayed twice
LEAST = 1e-4
NONE = {"max_moves": 1000.0, "min_gain": 0.1, "start": 0.1}  # from where on a knob counts that the goals as they are have not


@dataclass(frozen=True)
class Measured:
    """By what share a configuration had more hours than the goals as they are on one span of time, the standard errors that luck of its own
    replays and luck of the goals as they are make, and what share of the cost it saved."""

    configuration: Configuration
    span: int
    share: float
    error: float
    of_own: float
    saved: float = 0.0


def smoothed(
    measured: Sequence[Measured], own: Configuration, wanted: Sequence[tuple[Configuration, float]]
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of what each of the `wanted` will have more than `own` on another span, given all that was measured.

    Parameters
    ----------
    wanted
        Configurations, and what share of the cost they save: it is known well, and where nothing is moved hours are those without a plan.

    Notes
    -----
    A Gaussian process over the logarithms of the knobs and what is saved, linear plus smooth, which is 0 at `own`: one for all spans, and
    one of the same form for each span by itself, since what is right this week may not be next week. Its scales are those under which
    what was measured is most probable. Luck of `own` is in all differences of a span alike. O(n^3).

    *Source*: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 5.
    """
    count = len(measured)
    at = knobs([*(one.configuration for one in measured), *(c for c, _ in wanted)], own)
    saved = np.array([*(one.saved for one in measured), *(share for _, share in wanted)])
    at = np.column_stack([at, SAVED * np.clip(saved, -1.0, 1.0)])
    y = np.array([one.share for one in measured])
    spans = np.array([one.span for one in measured])
    alike = spans[:, None] == spans
    noise = np.diag([max(one.error, LEAST) ** 2 for one in measured]) + alike * np.array([one.of_own for one in measured]) ** 2
    linear, bent = _kernels(at)
    best, found = -math.inf, (np.zeros(len(wanted)), np.zeros(len(wanted)))
    for slope, bend, apart in product(SLOPES, BENDS, APART):
        kernel = slope**2 * linear + bend**2 * bent
        whole = kernel[:count, :count] * (1.0 + apart * alike) + noise
        factor = np.linalg.cholesky(whole)
        solved = np.linalg.solve(whole, y)
        likely = -0.5 * float(y @ solved) - float(np.log(np.diag(factor)).sum())
        if likely > best + 1e-9:
            between = kernel[:count, count:]
            spread = np.linalg.solve(factor, between)
            left = np.diag(kernel)[count:] * (1.0 + apart) - (spread**2).sum(axis=0)
            best, found = likely, (between.T @ solved, np.sqrt(np.maximum(left, 0.0)))
    return found


def _kernels(at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Linear and smooth, float64 [n, n] each; both 0 at `own`, whose knobs are 0."""
    apart = ((at[:, None, :] - at[None, :, :]) ** 2).sum(axis=2)
    here = np.exp(-(at**2).sum(axis=1) / (2 * REACH**2))
    return at @ at.T, np.exp(-apart / (2 * REACH**2)) - np.outer(here, here)


def knobs(tried: Sequence[Configuration], own: Configuration) -> FloatArray:
    """float64 [n, knobs]: logarithms over those of `own`, 0 where a knob is as it has it."""
    return np.array([_of(one, own) for one in tried], np.float64).reshape(len(tried), -1)


def _of(one: Configuration, own: Configuration) -> list[float]:
    found = [_log(one.bounds[name], own.bounds[name]) for name in own.bounds]
    found += [_log(one.weights[name], own.weights[name]) for name in own.weights]
    found += [_log(one.cadence, own.cadence), _log(one.horizon, own.horizon)]
    found.append(0.0 if one.move_cost == own.move_cost else 1.0)
    for name in ("max_moves", "min_gain", "start"):
        mine, theirs = getattr(one, name), getattr(own, name)
        found += [0.0 if mine == theirs else 1.0, _log(mine, theirs or NONE[name]) if mine is not None else 0.0]
    return found


def _log(value: float, over: float) -> float:
    return math.log(value / over) if value > 0.0 and over > 0.0 else 0.0
