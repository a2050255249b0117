"""Do calibrated bounds and tuned weights help on real traffic? A month of a public trace, in one process, without Spark.

    python -m benchmarks.backtest --trace bitbrains_rnd_vm_5min_2013-08.parquet

The trace (GWA-T-12 Bitbrains "Rnd", TU Delft Grid Workloads Archive: Shen, van Beek, Iosup, CCGrid 2015) is not part of the
project. One virtual machine is one topic, spread over partitions by a fixed Zipf split; what it receives is produced, what it
sends is fetched, its memory is the size on disk, its cpu is cpu. Windows of 5 minutes. The goals as they are see loads over the first
of `--horizon-hours`, every first of `--cadence-hours`. The first day gives the placement that every stretch starts with (default goals,
planned once on the day's means); the first two thirds of the rest are searched and chosen on, the last is held out. All configurations
have the same budget of moves a plan at most, and are scored by the default bounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from goals.document import load_goals
from goals.model import GoalSet
from kernels.compiled import compile_all
from optimizer.options import PlanOptions
from optimizer.planner import plan
from spark.backtest.configuration import HORIZON, Configuration, levelled
from spark.backtest.judge import broker_loads
from spark.backtest.outcome import Outcome
from spark.backtest.packing import Cut, unpacked
from spark.backtest.page import page_of
from spark.backtest.pareto import EQUAL, Rule, cost_difference, hours_difference
from spark.backtest.replay import RESTARTS, placed_by
from spark.backtest.run import OFTEN, Result, Validated, Wish, found, split
from spark.backtest.search import Knobs, Space, known
from spark.backtest.stretch import Series, Stretch
from spark.backtest.tasks import Job, came_of
from spark.jobs.resources import chosen
from spark.methods.benefit import benefit
from spark.methods.noise import day as day_of
from trimtab.commands.backtest import budgets

T = TypeVar("T")
WINDOW = 300
DAY = 86_400
COLUMNS = {
    "network_in": ("net_rx_kbs", 1024.0),
    "network_out": ("net_tx_kbs", 1024.0),
    "disk": ("mem_kb", 1024.0),
    "cpu": ("cpu_mhz", 1 / 2500),
}


SELDOM = 0.999  # quantile of hourly deviations that a bound by noise alone would be
HELD_OUT = 1.0 / 3.0


@dataclass(frozen=True)
class Shape:
    """How the trace becomes a cluster: the `topics` with the most traffic, each split over `partitions`, on `brokers`."""

    brokers: int
    topics: int
    partitions: int
    zipf: float
    replicas: int
    seed: int


def trace(path: Path, shape: Shape) -> Stretch:
    """The whole trace as one stretch, placed at random; duplicates of a window are dropped."""
    table = pq.read_table(path)
    vm, window = table["vm"].to_numpy().astype(np.int64), table["ts"].to_numpy() // WINDOW
    first, count = int(window.min()), int(window.max() - window.min()) + 1
    load: dict[str, Series] = {}
    for resource, (column, unit) in COLUMNS.items():
        seen = np.full((count, int(vm.max()) + 1), np.nan, np.float32)
        seen[window - first, vm] = table[column].to_numpy() * unit
        load[resource] = seen
    traffic = np.nansum(load["network_in"], axis=0) + np.nansum(load["network_out"], axis=0)
    chosen = np.sort(np.argsort(-traffic, kind="stable")[: shape.topics])
    split = np.arange(1, shape.partitions + 1) ** -shape.zipf
    split /= split.sum()
    number = len(chosen) * shape.partitions
    spread = {
        r: (x[:, chosen, None] * split).reshape(count, number).astype(np.float32) for r, x in load.items()
    }
    r = np.random.default_rng(shape.seed)
    hosts = np.stack([r.permutation(shape.brokers)[: shape.replicas] for _ in range(number)]).astype(np.int32)
    begin = -(-first * WINDOW // DAY) * DAY  # whole days, UTC
    skip = begin // WINDOW - first
    days = (count - skip) * WINDOW // DAY
    kept = {name: x[skip : skip + days * DAY // WINDOW] for name, x in spread.items()}
    return Stretch(
        cluster_id="trace", start=begin, window=float(WINDOW), topics=tuple(f"vm-{v:03d}" for v in chosen),
        partition_topic=np.repeat(np.arange(len(chosen)), shape.partitions).astype(np.int32),
        partition_number=np.tile(np.arange(shape.partitions), len(chosen)).astype(np.int32),
        broker_ids=np.arange(1, shape.brokers + 1, dtype=np.int32), replicas=hosts, load=kept,
        first=np.zeros(number, np.int32), last=np.full(number, days * DAY // WINDOW - 1, np.int32),
    )  # fmt: skip


def settled(stretch: Stretch, goals: GoalSet) -> Stretch:
    """The same, placed by one plan on the means of its first day."""
    per_day = DAY // WINDOW
    snapshot, _ = stretch.snapshot(per_day, per_day, stretch.replicas, stretch.replicas[:, 0].copy())
    replicas, _ = placed_by(snapshot, plan(snapshot, goals))
    return replace(stretch, replicas=replicas)


def calibrated(stretch: Stretch, goals: GoalSet, until: int) -> dict[str, float]:
    """Goal -> bound as a calibration chooses it by what levelling is good for, before window `until`; counts keep theirs."""
    bounds = {g.name: g.bound for g in levelled(goals)}
    for goal in levelled(goals):
        if goal.resource not in stretch.load:
            continue
        loads = broker_loads(stretch, goal.resource, 0, until, stretch.replicas, stretch.replicas[:, 0].copy())
        hours = loads.reshape(-1, 3600 // WINDOW, stretch.brokers).mean(axis=1)
        fast = [day_of(hours[d : d + 24].T).fast for d in range(0, len(hours), 24)]
        by_noise = float(np.nanquantile(np.abs(np.concatenate(fast, axis=1)), SELDOM))
        found = benefit((hours / hours.mean(axis=1, keepdims=True)).T)
        bounds[goal.name] = max(chosen(float(f"{by_noise:.2g}"), found, HORIZON, []), goal.bound)
    return bounds


def packed_rows(stretch: Stretch, cut: Cut, skip: int) -> pa.Table:
    """The rows that `packing.packed` would make of the trace's history from window `skip` on, the lead of the first stretch."""
    columns: dict[str, list[object]] = {
        n: [] for n in ("stretch", "broker", "topic", "partition", "metric", "at", "mean")
    }

    def put(number: int, broker: int, p: int, metric: str, values: npt.NDArray[np.float32]) -> None:
        at = np.flatnonzero(~np.isnan(values))
        if not len(at):
            return
        row = (
            number,
            broker,
            stretch.topics[stretch.partition_topic[p]],
            int(stretch.partition_number[p]),
            metric,
        )
        for name, value in zip(columns, (*row, at.astype(np.int32), values[at]), strict=True):
            columns[name].append(value)

    for number in range((stretch.windows - skip - cut.lead_windows) // cut.windows):
        span = slice(skip + number * cut.windows, skip + number * cut.windows + cut.length)
        for resource, series in stretch.load.items():
            for p in range(stretch.partitions):
                for n, host in enumerate(stretch.replicas[p].tolist()):
                    if host >= 0 and (n == 0 or resource in ("network_in", "disk")):
                        put(
                            number,
                            int(stretch.broker_ids[host]),
                            p,
                            ("follower." if n else "") + resource,
                            series[span, p],
                        )
    types = [
        pa.int32(),
        pa.int32(),
        pa.string(),
        pa.int32(),
        pa.string(),
        pa.list_(pa.int32()),
        pa.list_(pa.float32()),
    ]
    return pa.table({n: pa.array(v, t) for (n, v), t in zip(columns.items(), types, strict=True)})


def main() -> None:
    """Search, validate, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trace", type=Path, required=True, help="Parquet file of the trace")
    parser.add_argument("--brokers", type=int, default=20)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=4, help="of a topic")
    parser.add_argument("--zipf", type=float, default=0.5, help="exponent of the split")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--stretch-days", type=int, default=5)
    parser.add_argument("--cadence-hours", type=float, nargs="+", default=[12.0, 24.0])
    parser.add_argument("--max-moves", type=int, default=50, help="of one plan")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--search", choices=("grid", "random", "halving"), default="halving")
    parser.add_argument("--aim", choices=("hours", "cost", "both"), default="both")
    parser.add_argument("--days", type=int, default=0, help="of the trace; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--horizon-hours", type=float, nargs="+", default=[0.5, 6.0, 24.0])
    parser.add_argument("--phases", type=int, default=4, help="replay each finalist so many times, with looks at other times")
    parser.add_argument("--equal", type=float, default=EQUAL, help="share by which hours or bytes may differ and count as equal")
    parser.add_argument("--restarts", type=int, default=RESTARTS, help="seeds that a replayed plan is searched with at most")
    parser.add_argument("--workers", type=int, default=1, help="processes that replay side by side")
    parser.add_argument("--report", type=Path, help="write the HTML page of the backtest here")
    parser.add_argument("--known", action="store_true", help="no search: replay what every search tries on all stretches, and compare")
    given = parser.parse_args()
    goals = load_goals(None, "default")
    shape = Shape(given.brokers, given.topics, given.partitions, given.zipf, given.replicas, given.seed)
    begun = time.process_time()
    whole = settled(trace(given.trace, shape), goals)
    lead = 3600.0 * max(given.horizon_hours)
    if lead > DAY:
        parser.error("--horizon-hours: expected at most 24, which is how long the trace waits for the first stretch")
    cut = Cut(round(whole.start + DAY - lead), float(WINDOW), float(given.stretch_days * DAY), lead)
    skip = round((DAY - lead) / WINDOW)
    rows = packed_rows(whole, cut, skip)
    stretches = 1 + max(rows["stretch"].to_pylist())
    if given.days:
        stretches = min(stretches, given.days // given.stretch_days)
        rows = rows.filter(pa.compute.less(rows["stretch"], stretches))
    held_out = split(range(stretches), HELD_OUT, "trace").held_out
    centre = calibrated(whole, goals, DAY // WINDOW + held_out[0] * cut.windows)
    shape_of = f"{whole.partitions} partitions x {given.replicas} on {whole.brokers} brokers"
    print(f"{shape_of}, {stretches} stretches of {given.stretch_days} days", flush=True)
    print("calibrated bounds, searched around beside the own ones:", short(centre), flush=True)
    print(f"prepared in {time.process_time() - begun:.0f} CPU s", flush=True)
    job = Job(cut, "trace", goals, goals, {}, options=PlanOptions(max_moves=given.max_moves, restarts=given.restarts))
    cadences, horizons = (tuple(h * 3600.0 for h in hours) for hours in (given.cadence_hours, given.horizon_hours))
    space = Space(goals, centre, cadences, horizons, budgets(given.max_moves))
    wish = Wish(given.search, given.trials, HELD_OUT, Rule(given.aim, given.equal), given.phases, given.seed)
    compile_all()
    pieces = {n: unpacked(rows.filter(pa.compute.equal(rows["stretch"], n)), cut, "trace", {}) for n in range(stretches)}
    here = Here(job, pieces, given.workers)
    if given.known:
        compared(space, sorted(pieces), here, given)
        return
    result = found(space, wish, split(range(stretches), HELD_OUT, "trace"), here, lambda text: print(text, flush=True))
    told(replace(result, replays=here.replays, cpu=here.cpu))
    if given.report:
        given.report.write_text(page_of(result, cut, "trace", given.search, datetime.now(UTC)))


def compared(space: Space, stretches: Sequence[int], here: Here, given: argparse.Namespace) -> None:
    """What every search tries, on all stretches against the goals as they are, and how far each stretch is from that."""
    (own,) = here([space.own], stretches, OFTEN * given.phases)
    print("| every, loads over | knobs | | hours | bytes | hours by stretch, % |\n|---|---|---|---|---|---|", flush=True)
    for c in (space.never, space.calibrated, *known(space, given.trials, given.seed)):
        (each,) = here([c], stretches, given.phases)
        apart = " ".join(f"{100 * hours_difference([a], [b]).share:+.1f}" for a, b in zip(own, each, strict=True))
        print(
            f"| {c.cadence / 3600:g} h, {c.horizon / 3600:g} h | {knobs(c)} | {c.what} | {hours_difference(own, each)} | "
            f"{cost_difference(own, each)} | {apart} |", flush=True,
        )  # fmt: skip


@dataclass
class Here:
    """Replays on this machine what `spark.backtest.tasks` replays in Spark's tasks, in this process or in so many `workers`; counts
    them and their CPU seconds."""

    job: Job
    stretches: Mapping[int, Stretch]
    workers: int = 1
    replays: int = 0
    cpu: float = field(default=0.0)

    def __call__(
        self, configurations: Sequence[Configuration], stretches: Sequence[int], phases: int
    ) -> Sequence[tuple[Outcome, ...]]:
        work = [(nth, c, n, phases) for nth, c in enumerate(configurations) for n in stretches]
        if self.workers > 1:
            with get_context("fork").Pool(self.workers) as pool:
                came = pool.map(self.one, work, chunksize=1)
        else:
            came = list(map(self.one, work))
        self.replays += sum(outcome.phases for outcome, _ in came)
        self.cpu += sum(spent for _, spent in came)
        outcomes, each = [outcome for outcome, _ in came], len(stretches)
        return [tuple(outcomes[k * each : (k + 1) * each]) for k in range(len(configurations))]

    def one(self, asked: tuple[int, Configuration, int, int]) -> tuple[Outcome, float]:
        """What came of the `nth` configuration on a stretch, and the CPU seconds of it."""
        nth, configuration, stretch, phases = asked
        begun = time.process_time()
        return came_of(self.stretches[stretch], self.job, configuration, phases, nth), time.process_time() - begun


def knobs(c: Configuration) -> dict[str, float]:
    """What a configuration changes of the policy and of the budget of plans."""
    return {name: getattr(c, name) for name in Knobs._fields if getattr(c, name) is not None}


def short(by_goal: Mapping[str, T]) -> dict[str, T]:
    """Without what all names start with."""
    return {name.removeprefix("usage_distribution-"): value for name, value in by_goal.items()}


def told(result: Result) -> None:
    """Everything, in the form of docs/benchmarks.md."""
    print(f"\n{result.why}\n{result.verdict}\n")
    print(
        "| | broker-hours out, all goals | any goal | GB moved | moves | moved back | plans | peak | training: hours | GB |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in result.table:
        name = row.trained.configuration.what or "Pareto set"
        t = row.trained.outcome
        trained = f"{t.out_of_band_hours:,.0f} | {t.bytes_moved / 1e9:,.0f}"
        print(f"| {name}{' (chosen)' if row.chosen else ''} | {cells(row)} | {trained} |")
    for row in result.table:
        c = row.trained.configuration
        print(
            c.what or "Pareto set",
            f"| every {c.cadence / 3600:g} h, loads over {c.horizon / 3600:g} h |",
            knobs(c),
            short({n: (w, c.bounds[n]) for n, w in c.weights.items()}),
        )
        print("   hours by goal:", {n: round(h) for n, h in short(row.outcome.by_goal).items()})
    looks = sum(t.outcome.looks for t in result.searched) + sum(r.outcome.looks for r in result.table)
    plans = sum(t.outcome.plans for t in result.searched) + sum(r.outcome.plans for r in result.table)
    print(
        f"{result.replays} replays in {result.cpu:.0f} CPU s of the tasks; the last of each: {looks} looks, {plans} plans carried out"
    )


def cells(row: Validated) -> str:
    """One configuration's figures, and by how much it differs from the goals as they are, with a standard error."""
    o = row.outcome
    return (
        f"{o.out_of_band_hours:,.0f} ({row.hours}) | {o.any_goal_hours:,.0f} | {o.bytes_moved / 1e9:,.0f} ({row.cost}) | "
        f"{o.replica_moves:,} | {o.moved_back:,} | {o.plans} | {o.peak_utilization:.1f}"
    )


if __name__ == "__main__":
    main()
