"""`trimtab backtest`: which weights, bounds, cadence and horizon would have done better on this history. Changes nothing on a cluster.

What a replay is and how configurations are searched is `spark.backtest`; here is only parsing, telling and writing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.quantities import parse_duration, parse_throttle
from trimtab.bar import bar
from trimtab.commands import options as o
from trimtab.commands import spark_options as so
from trimtab.commands import values as v
from trimtab.commands.planning_options import MaxBytes, MaxMoves
from trimtab.commands.spark_options import spark_for
from trimtab.output import emit, overwritten, unwritable
from trimtab.story import Story, log

if TYPE_CHECKING:
    from goals.calibration import Calibration
    from goals.model import GoalSet
    from spark.backtest.difference import Difference
    from spark.backtest.run import Result, Validated

DAY = 86_400.0
Search = Literal["grid", "random", "halving"]
Aim = Literal["hours", "cost", "both"]
StorageKind = Literal["local", "shared"]


def parse_durations(text: str) -> tuple[float, ...]:
    """``DURATION[,DURATION…]`` in seconds, each once; the first is what the goals as they are run with."""
    found = tuple(dict.fromkeys(parse_duration(part.strip()) for part in text.split(",")))
    if min(found) <= 0:
        raise ValueError(f"expected durations above 0 such as 5m,1h, found {text!r}")
    return found


def parse_length(text: str) -> float:
    """Seconds above 0."""
    seconds = parse_duration(text)
    if seconds < 1:
        raise ValueError(f"expected at least 1s, found {text!r}")
    return seconds


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("backtest")(backtest_command)


def backtest_command(
    context: typer.Context,
    history: so.History,
    cluster_id: so.ClusterId = None,
    storage: Annotated[
        StorageKind,
        typer.Option(
            "--storage", rich_help_panel=o.SOURCE, help="shared: moves copy nothing, so the cost is their number."
        ),
    ] = "local",
    goals: o.GoalsPath = None,
    preset: o.Preset = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            "--calibration",
            exists=True,
            dir_okay=False,
            metavar="FILE",
            rich_help_panel=o.WANTED,
            help="Calibration file: the search starts from its bounds; its capacities are used where brokers report none.",
        ),
    ] = None,
    search: Annotated[
        Search, typer.Option("--search", help="How configurations are drawn and narrowed down.")
    ] = "halving",
    trials: Annotated[
        int, typer.Option("--trials", metavar="N", min=1, max=10_000, help="Try at most so many configurations.")
    ] = 60,
    aim: Annotated[
        Aim,
        typer.Option(
            "--aim",
            help="hours: least time outside the target range at equal bytes; cost: least bytes at equal hours; both: the larger gain.",
        ),
    ] = "both",
    equal: Annotated[
        float,
        typer.Option(
            "--equal",
            metavar="SHARE",
            min=0.0,
            max=0.5,
            help="Hours (or bytes) that differ by no more than this share count as equal.",
        ),
    ] = 0.01,
    phases: Annotated[
        int,
        typer.Option(
            "--phases",
            metavar="N",
            min=1,
            max=24,
            help="Replay each finalist so many times, and the goals as they are three times as often, with looks at different times of "
            "the day.",
        ),
    ] = 4,
    held_out: Annotated[
        float,
        typer.Option(
            "--held-out",
            metavar="SHARE",
            show_default=False,
            min=0.01,
            max=0.9,
            help="Share of the history, at its end, that is held out for the test (default: a third).",
        ),
    ] = 1 / 3,
    cadence: Annotated[
        str,
        typer.Option(
            "--cadence",
            metavar="DURATION[,…]",
            help="Time between looks of the detector. Each is tried; the goals as they are have the first.",
        ),
    ] = "1h,6h,24h",
    window: Annotated[
        float,
        typer.Option(
            "--window",
            metavar="DURATION",
            parser=v.parsed_by(parse_length),
            help="Average loads over windows of this length.",
        ),
    ] = "5m",  # type: ignore[assignment]
    horizon: Annotated[
        str,
        typer.Option(
            "--horizon",
            metavar="DURATION[,…]",
            help="The planner sees mean loads of the last so much time. Each is tried; the goals as they are have the first.",
        ),
    ] = "30m,6h,24h",
    stretch: Annotated[
        float,
        typer.Option(
            "--stretch",
            metavar="DURATION",
            parser=v.parsed_by(parse_length),
            help="Cut the history into stretches of this length.",
        ),
    ] = "7d",  # type: ignore[assignment]
    max_moves: MaxMoves = None,
    max_bytes: MaxBytes = None,
    throttle: Annotated[
        float,
        typer.Option(
            "--throttle", parser=v.parsed_by(parse_throttle), metavar="SIZE/s", help="Copy at most so much into, and out of, each broker."
        ),
    ] = "50MB/s",  # type: ignore[assignment]
    snapshot: Annotated[
        Path | None,
        typer.Option(
            "--snapshot", exists=True, metavar="FILE", rich_help_panel=o.SOURCE,
            help="Snapshot of the cluster: the racks of its brokers, which a history does not have.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, max=2**31 - 1, help="Seed of the search and of the plans.")
    ] = 0,
    restarts: Annotated[
        int,
        typer.Option(
            "--restarts", metavar="N", min=1, max=100,
            help="Search each replayed plan with at most so many seeds; the service uses up to 9 in small clusters.",
        ),
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write the calibration, with weights and table added, here (needs --calibration).",
        ),
    ] = None,
    once: so.Once = False,
    report: so.Report = None,
    master: so.Master = None,
) -> int:
    """Test goals on the past: replay a history through the planner and search for better bounds, weights, budgets and timing.

    Every configuration is scored by the bounds of the goals as they are. The last part of the history is held out: only the final
    test sees it. Needs Java.
    """
    wanted = o.Wanted(goals, preset)
    cadences, horizons = _durations("--cadence", cadence), _durations("--horizon", horizon)
    inputs = {"--goals": goals, "--history": None if so.is_uri(history) else Path(history)}
    problems = [
        *overwritten({"--out": out, "--report": report}, inputs),
        *unwritable("--out", out),
        *unwritable("--report", report),
        *_disagreements(out, report, calibration, window, horizons, stretch, cadences),
    ]
    if problems:
        raise ConfigurationError("trimtab backtest", problems)
    story = context.find_object(Story) or Story()
    goal_set = wanted.read()
    from goals.calibration import calibration_text, load_calibration
    from optimizer.options import PlanOptions
    from spark.backtest.configuration import levelled
    from spark.backtest.pareto import Rule
    from spark.backtest.reading import capacities_told, read_series, unscored
    from spark.backtest.run import Wish, backtest
    from spark.backtest.search import Space
    from spark.backtest.tasks import Job
    from spark.history.read import read_samples
    from trimtab.warmup import announce, warm_up

    if not levelled(goal_set):
        nothing = "expected at least one soft goal of kind usage_distribution (the search varies its weight and bound), found none"
        raise ConfigurationError(goal_set.source, [Problem("goals", nothing)])
    given = load_calibration(calibration) if calibration is not None else None
    racks = _racks(snapshot)
    with spark_for("trimtab backtest", master, history, story) as spark:
        announce()
        warm_up()
        samples = read_samples(spark, history, cluster_id)
        log.info("reading %s: windows of %g s, stretches of %g days", history, window, stretch / DAY)
        with (
            bar(story, "Replays", "done") as (tell, move),
            read_series(samples, window, stretch, max(horizons), history, datetime.now(UTC), once, tell) as read,
        ):
            capacity = _capacity(given)
            told = capacities_told(read.series, capacity)
            tell(told)
            if left_out := unscored(goal_set, read.resources):
                tell(left_out)
            options = PlanOptions(seed=seed, max_moves=max_moves, max_bytes=max_bytes, restarts=restarts)
            job = Job(read.cut, read.cluster_id, goal_set, goal_set, capacity, storage, options, throttle, racks)
            space = Space(goal_set, _centre(goal_set, given), cadences, horizons, budgets(max_moves))
            wish = Wish(search, trials, held_out, Rule(aim, equal), phases, seed)
            found = backtest(spark, read.series, job, space, wish, tell, history, move)
    if out is not None and given is not None:
        emit(calibration_text(_completed(given, found)), out)
    if report is not None:
        from spark.backtest.page import page_of

        emit(page_of(found, read.cut, read.cluster_id, search, datetime.now(UTC), told), report)
    if out is None or str(out) != "-":
        _show(found)
    log.info("%s", found.verdict)
    return 0


def _durations(option: str, text: str) -> tuple[float, ...]:
    try:
        return parse_durations(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _disagreements(
    out: Path | None, report: Path | None, calibration: Path | None, window: float, horizons: tuple[float, ...], stretch: float,
    cadences: tuple[float, ...],
) -> list[Problem]:  # fmt: skip
    found = []
    if out is not None and calibration is None:
        found.append(
            Problem(
                "--out",
                "needs --calibration: weights and table are added to that file; run `trimtab calibrate` first",
            )
        )
    if report is not None and report == out:
        found.append(Problem("--report", "expected a file of its own, found that of --out"))
    for horizon in horizons:
        if horizon % window:
            found.append(Problem("--horizon", f"expected a multiple of {window:g} s (--window), found {horizon:g} s"))
    if stretch < max(horizons) or stretch % window:
        wanted = f"expected a multiple of {window:g} s (--window), and no less than the longest --horizon ({max(horizons):g} s)"
        found.append(Problem("--stretch", f"{wanted}, found {stretch:g} s"))
    for cadence in cadences:
        if cadence % window or cadence >= stretch:
            found.append(
                Problem(
                    "--cadence",
                    f"expected a multiple of {window:g} s (--window), shorter than --stretch, found {cadence:g} s",
                )
            )
    return found


def _centre(goals: GoalSet, given: Calibration | None) -> dict[str, float]:
    from spark.backtest.configuration import levelled

    measured = given.resources if given is not None else {}
    return {
        g.name: (measured[g.resource].bound if g.resource in measured else None) or g.bound
        for g in levelled(goals)
    }


def budgets(max_moves: int | None) -> tuple[int | None, ...]:
    """Replica moves that a plan may have, as given and less: often what decides most of what is moved."""
    return (None, 100, 30) if max_moves is None else tuple(dict.fromkeys((max_moves, max(max_moves // 2, 1), max(max_moves // 5, 1))))


def _racks(snapshot: Path | None) -> dict[int, str]:
    """Broker -> rack, of those that have one."""
    if snapshot is None:
        return {}
    from cluster_model.files import read_snapshot

    found = read_snapshot(snapshot)
    return {int(broker): rack for broker, rack in zip(found.broker_ids, found.racks, strict=True) if rack is not None}


def _capacity(given: Calibration | None) -> dict[str, dict[int, float]]:
    table: dict[str, dict[int, float]] = {}
    for estimate in given.capacity if given is not None else ():
        if estimate.confidence != "low":
            table.setdefault(estimate.resource, {})[estimate.broker] = estimate.value
    return table


def _completed(given: Calibration, found: Result) -> Calibration:
    """The calibration with the table, and with the chosen weights where the held-out part confirms them; else without weights."""
    weights = dict(found.chosen.trained.configuration.weights) if found.confirmed else {}
    return given.model_copy(update={"weights": weights, "backtest": found.rows()})


def _show(found: Result) -> None:
    """The table on stdout, of the held-out part."""
    from rich.console import Console
    from rich.table import Table

    from spark.report.backtest import PLUS_MINUS

    table = Table(title="On the held-out part", title_justify="left", box=None)
    for name in ("", "looks every", "loads over", "broker-hours out", "bytes moved", "actions", "moved back", "peak", "verdict"):
        table.add_column(name, justify="left" if not name else "right")
    for row in found.table:
        table.add_row(*_cells(row, found))
    console = Console(width=None if Console().is_terminal else 120)
    for sentence in found.terms:
        console.print(sentence, highlight=False)
    console.print()
    console.print(table)
    if any(row.hours.error is not None for row in found.table):
        console.print(f"{PLUS_MINUS}\n", highlight=False)
    console.print(f"{found.why}.", style=None, highlight=False)
    chosen = found.chosen.trained.configuration
    if found.confirmed:
        told = f"  looks every {_time(chosen.cadence)} (interval of the service), loads over {_time(chosen.horizon)} (model.long)"
        console.print(told, highlight=False)
        if chosen.max_moves is not None:
            console.print(f"  {chosen.max_moves} moves in a plan at most (budgets.max_moves of the service)", highlight=False)
        if chosen.min_gain is not None:
            console.print(f"  min_gain {chosen.min_gain:g} (policy of the goals file)", highlight=False)
        if chosen.move_cost is not None:
            console.print(f"  move_cost {chosen.move_cost:g} (policy of the goals file)", highlight=False)
        if chosen.start is not None:
            hysteresis = f"hysteresis: {{start: {chosen.start:g}, stop: {chosen.start / 2:g}}}"
            console.print(f"  {hysteresis} (policy.detector of the goals file)", highlight=False)
        for name in chosen.weights:
            console.print(
                f"  {name}: weight {chosen.weights[name]:g}, bound {chosen.bounds[name]:g}", highlight=False
            )


def _time(seconds: float) -> str:
    unit, name = next(((u, n) for u, n in ((3600, "h"), (60, "min")) if seconds % u == 0), (1, "s"))
    return f"{seconds / unit:g} {name}"


def _cells(row: Validated, found: Result) -> list[str]:
    from optimizer.report.units import size

    c, outcome = row.trained.configuration, row.outcome

    def beside(more: Difference) -> str:
        return "" if row is found.own else f" ({more})"

    return [
        c.what or "Pareto set", _time(c.cadence), _time(c.horizon), f"{outcome.out_of_band_hours:,.1f}{beside(row.hours)}",
        f"{size(outcome.bytes_moved)}{beside(row.cost)}",
        f"{outcome.actions:,}", f"{outcome.moved_back:,}", f"{outcome.peak_utilization:.2f}", row.verdict,
    ]  # fmt: skip
