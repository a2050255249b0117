"""Below which load levelling is senseless: where a part of the noise that does not shrink with the load drowns it.

Called by the calibration job. Plain numpy and scipy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from spark.methods.bins import FloatArray

LEAST_SEEN = 500  # broker windows at a level, that its noise is known
SENSELESS = 0.5  # noise as a share of the bound, from which on the band says nothing
BY_CONVENTION = 0.01  # share of the mean, where no part of the noise stays as load falls


@dataclass(frozen=True)
class NoiseByLevel:
    """Noise of a broker as ``sqrt((share x load)^2 + fixed^2)``, in the resource's unit; `levels` it was seen at."""

    share: float
    fixed: float
    levels: int


def fitted(level: FloatArray, sigma: FloatArray, seen: FloatArray) -> NoiseByLevel | None:
    """The two parts of noise; None where no level was seen often enough.

    Parameters
    ----------
    level, sigma
        float64 [levels], load of a broker, and noise there as a share of it.
    seen
        float64 [levels], broker windows at each.
    """
    enough = (seen >= LEAST_SEEN) & (sigma > 0)
    if not enough.any():
        return None
    level, sigma, seen = level[enough], sigma[enough], seen[enough]
    variance = (level * sigma) ** 2
    weight = np.sqrt(seen) / variance
    parts, _ = nnls(np.stack([level**2, np.ones_like(level)], axis=1) * weight[:, None], variance * weight)
    if len(level) == 1:  # nothing to tell the two apart by
        return NoiseByLevel(float(sigma[0]), 0.0, 1)
    return NoiseByLevel(float(np.sqrt(parts[0])), float(np.sqrt(parts[1])), len(level))


def least_level(noise: NoiseByLevel, bound: float, mean: float) -> float:
    """The load at which noise is half as wide as the band, or a hundredth of the mean where that is more."""
    floor = BY_CONVENTION * mean
    room = (SENSELESS * bound) ** 2 - noise.share**2
    if noise.fixed <= 0 or room <= 0:
        return floor
    return max(noise.fixed / float(np.sqrt(room)), floor)
