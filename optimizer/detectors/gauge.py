"""A gauge: one number per broker, or one for the cluster, with the line at which it counts. Rules make them, `check` reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import BoolArray, FloatArray
from goals.score import TOLERANCE

Words = Callable[[int], tuple[str, str]]
"""Row -> a sentence in two parts, between which ``for 3 checks in a row`` fits."""


@dataclass(frozen=True, eq=False)
class Gauge:
    """Numbers of one kind, n of them.

    Attributes
    ----------
    subject
        Goal, resource or what else is measured; with the broker it tells one count from another.
    brokers
        int64 [n] wire ids; None for a single number of the cluster.
    value, line
        float64 [n]; `line` is above 0.
    words
        See `Words`.
    strict
        Reached beyond the line only, not at it.
    high
        A second, higher line for hits that weigh more; None where there is none.
    latched
        Whether a hysteresis applies.
    behind
        Subject of a gauge whose spread its line comes down with: while that one fires, less of that is enough (`agrees`).
    """

    subject: str
    brokers: np.ndarray | None
    value: FloatArray
    line: FloatArray
    words: Words
    strict: bool = False
    high: float | None = None
    latched: bool = True
    behind: str = ""

    def broker(self, row: int) -> int | None:
        return None if self.brokers is None else int(self.brokers[row])


def reached(value: FloatArray, line: FloatArray | float, strict: bool) -> BoolArray:
    """bool [n]: at the line or, where `strict`, beyond it; a share of 1e-9 more or less is the line itself."""
    slack = TOLERANCE * np.abs(line)
    return np.asarray(value > line + slack if strict else value >= line - slack)


def of_cluster(
    subject: str, value: float, line: float, words: tuple[str, str], *, strict: bool = False, latched: bool = True
) -> Gauge:
    """A single number."""
    return Gauge(subject, None, np.array([value]), np.array([line]), lambda row: words, strict=strict, latched=latched)


def few_ids(ids: np.ndarray, most: int = 5) -> str:
    """``broker 3``, ``brokers 1, 2 and 4 more``."""
    named = ", ".join(str(int(b)) for b in ids[:most])
    return f"broker{'s' if len(ids) != 1 else ''} {named}" + (f" and {len(ids) - most} more" if len(ids) > most else "")
