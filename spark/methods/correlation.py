"""Which resources of brokers rise and fall together, beyond what the hour does to all of them.

Plain numpy, called by the calibration job with the windows of a day. Of each window, brokers are compared with each other
only, so that day and night, which all resources follow, make no correlation.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement

import numpy as np

from spark.methods.bins import FloatArray

Pair = tuple[str, str]


def covariances(loads: Mapping[str, FloatArray]) -> dict[Pair, tuple[float, int]]:
    """For each pair of resources the brokers' covariance over both means, summed over windows, and how many windows that are.

    Parameters
    ----------
    loads
        By resource float64 [brokers, windows], the same brokers and windows in each; NaN: not measured. A window counts where a broker
        has both and neither mean is 0.
    """
    result = {}
    for one, other in combinations_with_replacement(loads, 2):
        a, b = loads[one], loads[other]
        both = np.isfinite(a) & np.isfinite(b)
        count = both.sum(axis=0)
        a, b = np.where(both, a, 0.0), np.where(both, b, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_a, mean_b = a.sum(axis=0) / count, b.sum(axis=0) / count
            covariance = np.where(both, (a - mean_a) * (b - mean_b), 0.0).sum(axis=0) / count
            relative = covariance / (mean_a * mean_b)
        known = np.isfinite(relative)
        result[one, other] = float(relative[known].sum()), int(known.sum())
    return result


def correlations(found: Mapping[Pair, tuple[float, int]]) -> dict[Pair, float]:
    """Pairs of different resources, in the order given, and how they go together, -1 to 1; without those that do not vary."""
    mean = {pair: total / windows for pair, (total, windows) in found.items() if windows}
    result = {}
    for (a, b), value in mean.items():
        of_a, of_b = mean.get((a, a), 0.0), mean.get((b, b), 0.0)
        if a != b and of_a > 0 and of_b > 0:
            result[a, b] = max(-1.0, min(1.0, value / (of_a * of_b) ** 0.5))
    return result
