"""Where the score of a broker far off goes over into its flat tail: the spread that the cluster really has.

Called by the calibration job. Plain numpy.
"""

from __future__ import annotations

from spark.methods.bins import Histogram
from spark.methods.bound import rounded_up

SHARE = 0.99
LEAST_OVER_BOUND = 2.0  # a narrower linear part would make a step of the score
MOST_OVER_BOUND = 6.0  # as the defaults of a goal have it (0.60 to 0.10), and as a backtest tries other bounds


def var(seen: Histogram, bound: float) -> float:
    """Share of the mean that 99% of brokers' windows are within; twice the bound at least, six times at most."""
    return min(max(rounded_up(seen.quantile(SHARE)), rounded_up(LEAST_OVER_BOUND * bound)), rounded_up(MOST_OVER_BOUND * bound))
