"""What a broker's cpu is spent on: cores per byte and per request, by a robust non-negative fit over brokers' windows.

Called by the calibrate job on a sample of all brokers' windows, and to give partitions their share of a broker's cpu. Plain
numpy and scipy; knows nothing of Spark. docs/calibration-methods.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]

FEATURES = ("network_in", "network_out", "produce_rate", "fetch_rate")
LEAST_WINDOWS = 100
LEAST_PRESENT = 0.5  # share of the windows that a feature has to be measured in
MISREAD = 5.0  # times the 90th percentile of its kind: not believed
ROUNDS = 12
TUKEY = 4.685  # of the residuals' scale: beyond, a window does not count
INFLATED = 100.0  # how many times collinearity blows up a cost's variance before two are tied (correlation 0.995)
UNSURE = 0.25  # standard error over the cost, from which it is told
STANDS_OUT = 0.05  # of the mean cpu: a broker's median residual


@dataclass(frozen=True)
class CpuCosts:
    """Cores of an idle broker, and core seconds per byte in and out, produce and fetch request: all not negative.

    Attributes
    ----------
    error
        Median absolute residual over the mean cpu of a broker.
    residuals
        By broker: median of measured less explained cores.
    outstanding
        Those brokers whose residual is beyond `STANDS_OUT` of the mean cpu: other hardware, or work that no rate shows.
    doubt
        By feature that has a cost: its standard error over the cost.
    windows
        How many were fitted; how many of these did not count in the end is in `words`.
    words
        What to know about the fit, a sentence each.
    """

    idle: float
    per_byte_in: float
    per_byte_out: float
    per_produce_request: float
    per_fetch_request: float
    error: float
    residuals: Mapping[int, float]
    outstanding: tuple[int, ...]
    doubt: Mapping[str, float]
    windows: int
    words: tuple[str, ...]

    @property
    def costs(self) -> dict[str, float]:
        """By feature."""
        values = (self.per_byte_in, self.per_byte_out, self.per_produce_request, self.per_fetch_request)
        return dict(zip(FEATURES, values, strict=True))

    def explained(self, rates: Mapping[str, FloatArray], idle: bool = True) -> FloatArray:
        """Cores [n] for rates [n] by feature; NaN where a rate that costs something is NaN. Features not given count as none."""
        size = len(next(iter(rates.values())))
        total = np.full(size, self.idle if idle else 0.0)
        for name, cost in self.costs.items():
            if name in rates and cost:
                total += cost * rates[name]
        return total


def fit(cpu: FloatArray, rates: Mapping[str, FloatArray], broker: IntArray) -> CpuCosts | str:
    """Costs over windows, or why there are none.

    Parameters
    ----------
    cpu
        float64 [windows], cores of a whole broker.
    rates
        By name of `FEATURES`: float64 [windows] of the whole broker, NaN where not measured. Any may be absent.
    broker
        int [windows], whose window it is.

    Notes
    -----
    ``cpu = idle + sum of cost x rate``, relative least squares (cpu's noise grows with cpu) with Tukey's weights, each round
    solved by non-negative least squares over the triangular factor. Features whose variance inflation exceeds `INFLATED` are
    tied to the one they follow: each of the two explains the same number of cores, and the words say so. O(windows).
    """
    from scipy.stats import median_abs_deviation

    words: list[str] = []
    names = [n for n in FEATURES if n in rates and np.mean(np.isfinite(rates[n])) >= LEAST_PRESENT]
    for name in FEATURES:
        if name not in names:
            words.append(f"{_plain(name)} are not measured, so their cost is part of the other costs")
    use = _believable(cpu)
    for name in names:
        use &= _believable(rates[name])
    if not names or np.count_nonzero(use) < LEAST_WINDOWS:
        return f"only {np.count_nonzero(use)} windows have cpu and rates, {LEAST_WINDOWS} are needed"
    y, who = cpu[use], broker[use]
    scale = {n: float(rates[n][use].mean()) for n in names}
    names = [n for n in names if scale[n] > 0]
    if not names or not y.any():
        return "the brokers have no traffic" if y.any() else "cpu is 0 all the time"
    columns = np.stack([rates[n][use] / scale[n] for n in names], axis=1)
    groups, tied = _groups(columns, names)
    words += tied
    design = np.column_stack([np.ones(len(y)), *(columns[:, g].mean(axis=1) for g in groups)])
    cost, weight = _robust(design, y)
    rest = y - design @ cost
    spread = float(median_abs_deviation(rest / np.maximum(design @ cost, 1e-12), scale="normal"))
    mean = float(y.mean())
    doubtful = _doubt(design, weight, spread, design @ cost)
    by_name = {name: cost[1 + i] / len(group) for i, group in enumerate(groups) for name in (names[j] for j in group)}
    doubt = {
        names[j]: float(doubtful[1 + i] / cost[1 + i]) if cost[1 + i] > 0 else float("inf")
        for i, group in enumerate(groups) for j in group
    }  # fmt: skip
    for name, share in doubt.items():
        if np.isinf(share):
            words.append(f"no cpu is explained by {_plain(name)} alone")
        elif share > UNSURE:
            words.append(f"the cost of {_plain(name)} has a standard error of {share:.0%}, since they hardly vary independently")
    ignored = float(np.mean(weight == 0))
    if ignored > 0.01:
        words.append(f"{ignored:.0%} of the windows do not fit and were left out")
    residuals = {int(b): float(np.median(rest[who == b])) for b in np.unique(who)}
    outstanding = tuple(sorted((b for b, r in residuals.items() if abs(r) > STANDS_OUT * mean), key=lambda b: -abs(residuals[b])))
    if outstanding:
        some = f"{len(outstanding)} of {len(residuals)} brokers"
        words.append(f"{some} differ from the explained cpu by more than {STANDS_OUT:.0%} of the mean")
    per_unit = {n: float(by_name[n] / scale[n]) if n in by_name else 0.0 for n in FEATURES}
    return CpuCosts(
        idle=float(cost[0]),
        per_byte_in=per_unit["network_in"],
        per_byte_out=per_unit["network_out"],
        per_produce_request=per_unit["produce_rate"],
        per_fetch_request=per_unit["fetch_rate"],
        error=float(np.median(np.abs(rest)) / mean),
        residuals=residuals,
        outstanding=outstanding,
        doubt=doubt,
        windows=len(y),
        words=tuple(words),
    )


def attributed(
    costs: CpuCosts, rates: Mapping[str, FloatArray], broker: IntArray, measured: Mapping[int, float] | None = None
) -> FloatArray:
    """float64 [n]: cores that each replica takes of its broker.

    Parameters
    ----------
    costs
        As fitted.
    rates
        By feature: float64 [n] of each replica; a follower has only ``network_in``. NaN: none.
    broker
        int [n], where it is.
    measured
        By broker: its cpu in cores. Then a broker's replicas share what it uses beyond idle in proportion to what they cost,
        where that is at most twice and at least half of what the costs explain; otherwise the costs stand. A broker that is
        not named keeps the costs.

    Notes
    -----
    What an idle broker uses belongs to no partition: a move does not take it along.
    """
    alone = costs.explained({name: np.nan_to_num(rate) for name, rate in rates.items()}, idle=False)
    if not measured:
        return alone
    ids, row = np.unique(broker, return_inverse=True)
    total = np.bincount(row, alone)
    real = np.array([measured.get(int(b), np.nan) for b in ids]) - costs.idle
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = real / total
    factor = np.where((factor >= 0.5) & (factor <= 2.0), factor, 1.0)
    found: FloatArray = alone * factor[row]
    return found


def _believable(values: FloatArray) -> npt.NDArray[np.bool_]:
    """Finite, not negative, and not far above nearly all others."""
    with np.errstate(invalid="ignore"):
        good = np.isfinite(values) & (values >= 0)
    if good.any():
        good[good] &= values[good] <= MISREAD * np.quantile(values[good], 0.9)
    return good


def _groups(columns: FloatArray, names: list[str]) -> tuple[list[list[int]], list[str]]:
    """Columns that are fitted as one, and why: first the one by one, then those that cannot be told apart."""
    words: list[str] = []
    groups = [[i] for i in range(len(names))]
    while len(groups) > 1:
        together = np.stack([columns[:, g].mean(axis=1) for g in groups], axis=1)
        if (together.std(axis=0) == 0).any():
            return groups, words
        correlation = np.corrcoef(together.T)
        inflation = np.diag(np.linalg.pinv(correlation, hermitian=True))
        singular = np.linalg.eigvalsh(correlation)[0] < 1e-10
        if inflation.max() < INFLATED and not singular:
            break
        apart = np.abs(correlation) - np.eye(len(groups))
        one, other = sorted(np.unravel_index(np.argmax(apart), apart.shape))
        both = [" and ".join(_plain(names[i]) for i in groups[k]) for k in (one, other)]
        words.append(
            f"{both[0]} and {both[1]} rise and fall together (correlation {correlation[one, other]:.3f}), so their costs cannot be "
            "told apart: each is assumed to explain as many cores as the other"
        )
        groups[one] += groups.pop(int(other))
    return groups, words


def _robust(design: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Non-negative coefficients [k], and the weight [windows], 0..1, that each window had in the end."""
    from scipy.optimize import nnls
    from scipy.stats import median_abs_deviation

    weight = np.ones(len(y))
    level = np.maximum(np.median(y) * np.ones(len(y)), 1e-12)
    cost = np.zeros(design.shape[1])
    for turn in range(ROUNDS):
        root = np.sqrt(weight) / level
        triangle: FloatArray = np.linalg.qr(np.column_stack([design, y]) * root[:, None], mode="r")  # type: ignore[assignment]
        before, cost = cost, nnls(triangle[:, :-1], triangle[:, -1])[0]
        level = np.maximum(design @ cost, 0.05 * np.median(y))
        rest = (y - design @ cost) / level
        spread = max(float(median_abs_deviation(rest, scale="normal")), 1e-9)
        away = np.abs(rest) / spread
        if turn < 4:  # Huber's weights first, so that Tukey's start near the answer
            weight = np.minimum(1.0, 1.345 / np.maximum(away, 1e-12))
        else:
            weight = np.where(away < TUKEY, (1 - np.minimum(away / TUKEY, 1.0) ** 2) ** 2, 0.0)
        if turn > 5 and np.allclose(before, cost, rtol=1e-6, atol=1e-12):
            break
    return cost, weight


def _doubt(design: FloatArray, weight: FloatArray, spread: float, level: FloatArray) -> FloatArray:
    """Standard errors [k] of the coefficients, as if windows were independent and none had hit zero."""
    scaled = design * (np.sqrt(weight) / np.maximum(level, 1e-12))[:, None]
    covariance = spread**2 * np.linalg.pinv(scaled.T @ scaled, hermitian=True)
    found: FloatArray = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return found


def _plain(feature: str) -> str:
    words = {"network_in": "bytes in", "network_out": "bytes out", "produce_rate": "produce requests"}
    return words.get(feature, "fetch requests")
