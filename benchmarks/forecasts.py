"""How well, and how fast, loads of the coming day are forecast: against last-value, on days that no forecast has seen.

    python -m benchmarks.forecasts
    python -m benchmarks.forecasts --trace FILE.parquet --series vm --time ts --value net_rx_kbs

Without a trace: 20,000 made-up partitions of four patterns over 30 days of hours. A trace is a table of (series, Unix seconds,
value), made hourly; every day from the 15th on is forecast from what was before it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spark.methods.forecast import METHODS, PATTERNS, dense, forecast
from tests.histories.truth import Truth

FloatArray = npt.NDArray[np.float64]
HOUR, DAY = 3_600, 24
FIRST = 15  # days before the first that is forecast


def made_up(series: int, days: int, seed: int = 0) -> FloatArray:
    """float64 [series, hours]: a quarter each steady, cyclic, growing by a tenth a week, and bursty; 10% noise, 5% missing."""
    r = np.random.default_rng(seed)
    hours = np.arange(days * DAY, dtype=np.float64)
    kind = np.arange(series) % len(PATTERNS)
    season = Truth().season(4.0 * DAY * HOUR + HOUR * hours)
    level = np.where(kind[:, None] == 0, 1.0, season)
    level = level * np.where(kind[:, None] == 2, 1 + 0.1 * (hours - hours.mean()) / (7 * DAY), 1.0)
    level = level * np.where((kind[:, None] == 3) & (r.random(level.shape) < 0.04), 6.0, 1.0)
    level *= r.lognormal(12, 1.5, (series, 1)) * np.exp(0.1 * r.standard_normal(level.shape))
    level[r.random(level.shape) < 0.05] = np.nan
    return level


def traced(path: Path, series: str, at: str, value: str) -> FloatArray:
    """float64 [series, hours]: means of the samples in each hour, those of one instant counted once."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=[series, at, value]).to_pandas().dropna()
    table = table.drop_duplicates([series, at])
    table["hour"] = table[at].astype("int64") // HOUR
    hourly = table.groupby([series, "hour"])[value].mean().reset_index()
    names, code = np.unique(hourly[series].to_numpy(), return_inverse=True)
    hour = hourly["hour"].to_numpy()
    return dense(code, hour, hourly[value].to_numpy(), len(names), int(hour.min()), int(hour.max()) + 1)


def compared(values: FloatArray) -> None:
    """Tell errors of the forecast and of last-value, for whole days and for their peaks."""
    days = values.shape[1] // DAY
    rows = []
    spent = 0.0
    for day in range(FIRST, days):
        past, truth = values[:, : day * DAY], values[:, day * DAY : (day + 1) * DAY]
        begun = time.process_time()
        found = forecast(past, DAY)
        spent += time.process_time() - begun
        known = np.isfinite(found.path[:, 0]) & (np.isfinite(truth).mean(axis=1) > 0.5)
        last = np.array([row[np.isfinite(row)][-1] for row in past[known]])
        mean = np.nanmean(past[known], axis=1)
        peak = np.nanmax(truth[known], axis=1)
        rows.append(np.stack([
            np.nanmean(np.abs(found.path[known] - truth[known]), axis=1) / mean,
            np.nanmean(np.abs(last[:, None] - truth[known]), axis=1) / mean,
            np.abs(found.peak[known] - peak) / mean,
            np.abs(last - peak) / mean,
            mean,
        ]))  # fmt: skip
    whole = np.concatenate(rows, axis=1)
    whole = whole[:, np.isfinite(whole).all(axis=0)]
    print(f"{values.shape[0]:,} series, {days} days; {days - FIRST} days forecast in {spent:.1f} CPU s")
    for name, ours, theirs in (("hours of the day", 0, 1), ("peak of the day", 2, 3)):
        summed = (whole[4] * whole[ours]).sum() / (whole[4] * whole[theirs]).sum()
        medians = np.median(whole[ours]), np.median(whole[theirs])
        better, worse = np.mean(whole[ours] < whole[theirs]), np.mean(whole[ours] > whole[theirs])
        print(
            f"  {name}: error {medians[0]:.3f} of the mean load (median), last-value {medians[1]:.3f}; "
            f"{1 - medians[0] / medians[1]:+.0%} less, {1 - summed:+.0%} less in total load; "
            f"better in {better:.0%} of series and days, worse in {worse:.0%}"
        )
    found = forecast(values, DAY)
    print("  chosen:", ", ".join(f"{name} {np.mean(found.method == i):.0%}" for i, name in enumerate(METHODS)))
    print("  patterns:", ", ".join(f"{name} {np.mean(found.pattern == i):.0%}" for i, name in enumerate(PATTERNS)))


def main() -> None:
    """Run on a trace, or on what is made up."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--series", default="series")
    parser.add_argument("--time", default="time")
    parser.add_argument("--value", default="value")
    parser.add_argument("--count", type=int, default=20_000, help="made-up series")
    given = parser.parse_args()
    if given.trace:
        compared(traced(given.trace, given.series, given.time, given.value))
        return
    values = made_up(given.count, 30)
    begun = time.process_time()
    found = forecast(values, DAY)
    print(f"{len(values):,} series of 30 days: {time.process_time() - begun:.1f} CPU s")
    right = [np.mean(found.pattern[i :: len(PATTERNS)] == i) for i in range(len(PATTERNS))]
    print("  patterns told right:", ", ".join(f"{name} {share:.1%}" for name, share in zip(PATTERNS, right, strict=True)))
    compared(values[:2_000])


if __name__ == "__main__":
    main()
