"""Are limits of brokers found, and only where there are some? Made-up brokers, drawn apart from the tests' generator.

    python -m benchmarks.limits --cases 200

Each case is a broker of its own: 5-minute windows of 14 days with 10% missing, offered load with an AR(1) noise, day, week and bursts
with a Pareto tail, and a latency of one of several forms: queues (M/M/1, M/D/1, M/M/c), knees with a limit of throughput, and rises
without any limit. What is offered beyond the limit does not get through. `--generator general` draws other brokers: noise of load and
latency with Student's tails that goes on from window to window, and queues whose requests differ up to six times as much as those of M/M/1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark.methods.capacity import WIDEST, Bend, find_bend

FloatArray = npt.NDArray[np.float64]
PER_DAY = 288
DAYS = 14


@dataclass(frozen=True)
class Case:
    """A broker: what got through, its latency, its limit (None: none) and the form of the latency."""

    throughput: FloatArray
    latency: FloatArray
    limit: float | None
    form: str


def offered(r: np.random.Generator) -> FloatArray:
    """float64 [windows], of mean 1 or so."""
    n = DAYS * PER_DAY
    phi, sigma = r.uniform(0.5, 0.97), r.uniform(0.04, 0.15)
    shocks = r.standard_normal(n) * sigma * np.sqrt(1 - phi**2)
    noise = np.zeros(n)
    for k in range(1, n):
        noise[k] = phi * noise[k - 1] + shocks[k]
    t = np.arange(n) / PER_DAY
    day = 1 + r.uniform(0.2, 0.5) * np.sin(2 * np.pi * (t - r.uniform(0, 1))) + r.uniform(0, 0.15) * np.sin(4 * np.pi * t)
    week = np.where(t.astype(int) % 7 >= 5, r.uniform(0.6, 1.0), 1.0)
    bursts = 1 + np.where(r.random(n) < 0.01, r.pareto(3.0, n), 0.0)
    return np.asarray(np.maximum(day, 0.1) * week * np.exp(noise) * bursts)


def _server_c(c: int) -> Callable[[FloatArray], FloatArray]:
    """Mean time in system of M/M/c over its service time (Sakasegawa 1977)."""
    return lambda u: 1 + u ** (np.sqrt(2 * (c + 1)) - 1) / (c * (1 - u))


QUEUES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "M/M/1": lambda u: 1 / (1 - u), "M/D/1": lambda u: 1 + u / (2 * (1 - u)), "M/M/4": _server_c(4), "M/M/16": _server_c(16),
}  # fmt: skip
KNEES: dict[str, Callable[[FloatArray, float, float], FloatArray]] = {
    "knee": lambda u, at, steep: 1 + steep * np.maximum(u - at, 0.0),
    "round knee": lambda u, at, steep: 1 + steep * 0.03 * np.logaddexp(0.0, (u - at) / 0.03),
}
NO_LIMIT: dict[str, Callable[[FloatArray], FloatArray]] = {
    "flat": lambda x: np.ones_like(x), "linear": lambda x: 1 + x, "power": lambda x: 1 + 0.5 * x**3,
    "exponential": lambda x: np.exp(1.2 * x),
}  # fmt: skip


def drawn(seed: int) -> Case:
    """A case of the seed: a third of each kind."""
    r = np.random.default_rng([seed, 77])
    load = offered(r)
    kind = seed % 3
    noise = np.exp(r.uniform(0.05, 0.2) * r.standard_normal(len(load)))
    if kind == 2:
        form = str(r.choice(list(NO_LIMIT)))
        latency, through, limit = NO_LIMIT[form](load), load, None
    else:
        limit = float(np.quantile(load, r.uniform(0.9, 0.999)) * r.uniform(1.0, 1.15))
        u = load / limit
        u = u * (1 + u**16) ** (-1 / 16)
        through = u * limit
        if kind == 0:
            form = str(r.choice(list(QUEUES)))
            latency = np.minimum(QUEUES[form](np.minimum(u, 0.999)), 60.0)
        else:
            form = str(r.choice(list(KNEES)))
            latency = KNEES[form](u, r.uniform(0.75, 0.93), r.uniform(15, 80))
    gone = r.random(len(load)) < 0.1
    seen = np.where(gone, np.nan, through * 1e7), np.where(gone, np.nan, 5 * latency * noise)
    return Case(*seen, None if limit is None else limit * 1e7, form)


def drawn_general(seed: int) -> Case:
    """A case of the other generator: a half has a limit, where an M/G/1 queue grows without end."""
    r = np.random.default_rng([seed, 4242])
    n = DAYS * PER_DAY
    t = np.arange(n) / PER_DAY
    shape = np.exp(r.uniform(0.2, 0.6) * np.sin(2 * np.pi * (t - r.random())) + r.uniform(0, 0.3) * np.sin(2 * np.pi * t / 7))
    load = shape * np.exp(_lasting(r, n, r.uniform(0.6, 0.98), r.uniform(0.05, 0.2)))
    load = load * (1 + np.where(r.random(n) < 0.005, r.pareto(2.5, n), 0))
    if seed % 2:
        limit, form, through = None, "power", load
        latency = 1 + r.uniform(0.2, 1.5) * load ** r.uniform(0.5, 2)
    else:
        limit, form = float(np.quantile(load, r.uniform(0.93, 0.998)) * r.uniform(1, 1.1)), "M/G/1"
        u = np.minimum(load / limit, 1 - r.uniform(0.0005, 0.004))
        u = np.where(u > 0.9, 0.9 + 0.0999 * np.tanh((u - 0.9) / 0.1), u)
        through, spread = u * limit, r.choice([0.5, 1, 3, 6])
        latency = np.minimum(1 + u * (1 + spread) / 2 / (1 - u), r.uniform(30, 200))
    latency = latency * np.exp(_lasting(r, n, 0.7, r.uniform(0.05, 0.2)))
    gone = r.random(n) < 0.1
    seen = np.where(gone, np.nan, through * 1e7), np.where(gone, np.nan, 4 * latency)
    return Case(*seen, None if limit is None else limit * 1e7, form)


def _lasting(r: np.random.Generator, n: int, phi: float, sigma: float) -> FloatArray:
    """float64 [n]: AR(1) with shocks of Student's t, of standard deviation `sigma`."""
    shocks = r.standard_t(4, n) * sigma * np.sqrt((1 - phi**2) / 2)
    noise = np.zeros(n)
    for k in range(1, n):
        noise[k] = phi * noise[k - 1] + shocks[k]
    return noise


GENERATORS: dict[str, Callable[[int], Case]] = {"queues": drawn, "general": drawn_general}


def main() -> None:
    """Print a table by kind of broker."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--generator", choices=GENERATORS, default="queues")
    given = parser.parse_args()
    begun = time.process_time()
    found: dict[str, list[tuple[Case, Bend | str]]] = {}
    for seed in range(given.first, given.first + given.cases):
        case = GENERATORS[given.generator](seed)
        kind = "no limit" if case.limit is None else "knee" if case.form in KNEES else "queue"
        found.setdefault(kind, []).append((case, find_bend(case.throughput, case.latency, seed)))
    print("| | cases | given a limit | error, median | 90% of errors within | truth in the 90% interval | of width |")
    print("|---|---|---|---|---|---|---|")
    for kind, rows in found.items():
        bends = [(case.limit, bend) for case, bend in rows if isinstance(bend, Bend)]
        cells = [kind, str(len(rows)), f"{len(bends)} ({len(bends) / len(rows):.0%})"]
        if kind != "no limit" and bends:
            errors = np.array([bend.limit / limit - 1 for limit, bend in bends if limit])
            inside = np.mean([bend.low <= limit <= bend.high for limit, bend in bends if limit])
            width = np.median([(bend.high - bend.low) / bend.limit for _, bend in bends])
            cells += [f"{np.median(errors):+.1%}", f"{np.quantile(np.abs(errors), 0.9):.1%}", f"{inside:.0%}", f"{width:.1%}"]
        print(f"| {' | '.join([*cells, *[''] * (7 - len(cells))])} |")
    told = [(bend, case.limit) for rows in found.values() for case, bend in rows if isinstance(bend, Bend) and case.limit]
    wide, close = [
        [abs(bend.limit / limit - 1) > WIDEST / 2 for bend, limit in told if (bend.high - bend.low > WIDEST * bend.limit) == is_wide]
        for is_wide in (True, False)
    ]
    print(f"{len(wide)} limits are not taken, with an interval of more than {WIDEST:.0%}: {sum(wide)} are more than {WIDEST / 2:.0%} off")
    print(f"{len(close)} limits are taken: {sum(close)} are more than {WIDEST / 2:.0%} off")
    print(f"{(time.process_time() - begun) / given.cases:.3f} CPU s a case")


if __name__ == "__main__":
    main()
