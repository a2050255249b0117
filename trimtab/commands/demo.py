"""`trimtab demo`: the whole loop on a simulated cluster, told step by step on stderr; the report is the data.

Shows what `trimtab.demo` does; decides nothing.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster_model.errors import ConfigurationError, ExternalError, Problem
from cluster_model.plain_text import printable
from trimtab.commands.options import DEFAULT_PRESET, LARGEST, GoalsPath, Preset
from trimtab.output import overwritten, unwritable, unwritable_folders, write_file
from trimtab.planning import apart
from trimtab.story import Story, log

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress as Bar

    from cluster_model.snapshot import Snapshot
    from optimizer.plan import Action, Plan
    from trimtab.demo import Demo, DemoOptions
    from trimtab.executor import Progress

DEFAULT_OUT = Path("trimtab-demo/report.html")
BROKERS, PARTITIONS = 12, 900
QUICK_BROKERS, QUICK_PARTITIONS = 6, 240
BAR_WIDTH = 11
MOST_BROKERS = 24  # rows of a table
REASONS = 3
SHOWN = {"network_in": "network in", "network_out": "network out", "disk": "disk"}


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    context: typer.Context,
    seed: Annotated[int, typer.Option("--seed", min=0, max=LARGEST, metavar="N", help="Seed of the simulated cluster.")] = 0,
    brokers: Annotated[
        int | None,
        typer.Option("--brokers", metavar="N", help=f"Brokers, the new ones too (default {BROKERS})."),
    ] = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", metavar="N", help=f"Partitions (default {PARTITIONS}).")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"{QUICK_BROKERS} brokers and {QUICK_PARTITIONS} partitions.")
    ] = False,
    goals: GoalsPath = None,
    preset: Preset = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help=f"The HTML report (default {DEFAULT_OUT}).")] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", file_okay=False, metavar="DIR", help="Keep the internal topic's file here."),
    ] = None,
) -> None:
    """Show the whole loop on a simulated cluster: measure, plan, carry out, compare. Needs no Kafka."""
    from rich.console import Console

    from goals.document import load_goals
    from trimtab.demo import Demo, DemoOptions

    story: Story = context.find_root().ensure_object(Story)
    wanted = load_goals(goals, preset=preset if preset is not None or goals is not None else DEFAULT_PRESET)
    options = DemoOptions(
        seed,
        brokers if brokers is not None else QUICK_BROKERS if quick else BROKERS,
        partitions if partitions is not None else QUICK_PARTITIONS if quick else PARTITIONS,
    )
    for note in wanted.notes:
        log.warning("%s", note)
    out = _prepared(options, out, directory, goals)
    told = story.log_format == "text" and not story.quiet
    console = Console(stderr=True, quiet=not told, highlight=False)
    with ExitStack() as stack:
        folder = directory
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trimtab-demo-")))
        run = Demo(options, folder)
        stack.callback(run.close)
        show = DemoStory(console, story, run)
        show.cluster()
        before = run.measure()
        show.measured(before)
        with console.status("planning (the first run compiles the planner, some seconds)"):
            plan = apart(lambda: run.plan(before, wanted))
        show.plan(plan)
        failed = show.execution(plan)
        after = run.measure()
        show.after(plan, before, after)
        _write_report(plan, out)
        show.next_steps(out, None if directory is None else folder)
    if failed:
        raise ExternalError(f"{failed} of {len(plan.proposals)} changes were not carried out; the story above says why")


def _prepared(options: DemoOptions, out: Path | None, directory: Path | None, goals: Path | None) -> Path:
    """The place of the report, and folders for what will be written; all problems are told at once, before the work starts."""
    from trimtab.simulator.scenario import size_problems

    place = DEFAULT_OUT if out is None else out
    problems = [
        *([Problem("--out", f"expected a file that ends in .html, found {place}; name it so")] if _other(place) else []),
        *size_problems(options.brokers, options.partitions),
        *overwritten({"--out": place}, {"--goals": goals}),
        *(unwritable_folders("--out", place.parent, ()) if out is None else unwritable("--out", out)),
        *unwritable_folders("--dir", directory, ()),
    ]
    if problems:
        raise ConfigurationError("demo", problems)
    for folder in (*([place.parent] if out is None else []), *([directory] if directory is not None else [])):
        folder.mkdir(parents=True, exist_ok=True)
    return place


def _other(place: Path) -> bool:
    """Whether the name is of something else than a page."""
    return place.suffix.lower() not in ("", ".html", ".htm")


def _write_report(plan: Plan, out: Path) -> None:
    from optimizer.report import to_html

    write_file(out, to_html(plan))


class DemoStory:
    """Tells a demo: pretty lines for a person, log lines where JSON was asked for."""

    def __init__(self, console: Console, story: Story, run: Demo) -> None:
        self._console, self._story, self._run = console, story, run
        self._step = 0
        self._full_bar: dict[str, float] = {}  # share of capacity that a whole bar stands for, the same before and after
        self._plain = not (console.encoding or "").lower().startswith("utf")

    def cluster(self) -> None:
        from optimizer.report.units import listing

        options, cluster = self._run.options, self._run.cluster
        used = cluster.logs.disk_used(len(cluster.broker_ids))
        new = [str(b) for b, bytes_used in zip(cluster.broker_ids, used, strict=True) if bytes_used == 0]
        added = (
            f"broker {new[0]} was just added and is empty"
            if len(new) == 1
            else f"brokers {listing(new)} were just added and are empty"
        )
        racks = len({spec.rack for spec in cluster.brokers.specs})
        topics = len(cluster.controller.topics)
        self._console.print("[bold]Trimtab demo[/] · a simulated cluster in virtual time; nothing outside is touched")
        self._say(
            "Cluster",
            f"{options.brokers} brokers in {racks} racks, {topics} topics, {options.partitions} partitions"
            f" × 3 replicas; {added}; brokers 1, 2 and 3 have double capacity",
        )

    def measured(self, before: Snapshot) -> None:
        seen = self._run.measured
        self._say(
            "Measure",
            f"{len(self._run.cluster.broker_ids)} reporters → internal topic → model:"
            f" {seen.records} records, {seen.samples:,} samples, {seen.decode_errors} unreadable",
        )
        self._console.print(self._bars(before, "cyan"))

    def plan(self, plan: Plan) -> None:
        from optimizer.report.labels import goal_labels, plainly
        from optimizer.report.units import count
        from optimizer.report.verdict import verdict

        said, labels = verdict(plan), goal_labels(plan)
        self._say("Plan", " ".join((said.sentence, *said.remarks)))
        shown = _telling(plan)
        for action in shown:
            change = action.changes[0]
            more = f" and {len(action.changes) - 1} more" if len(action.changes) > 1 else ""
            self._line(
                f"{action.type} {change.topic}-{change.partition}: {list(change.replicas_before)} →"
                f" {list(change.replicas_after)}{more}, score {action.score:.2f}; {plainly(action.reason, labels)}"
            )
        if len(plan.actions) > len(shown):
            rest = count(len(plan.actions) - len(shown), "more action")
            self._line(f"… and {rest}, each with its reason in the report")

    def execution(self, plan: Plan) -> int:
        """Show the progress of the execution; how many proposals failed."""
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        from trimtab.demo import THROTTLE

        self._say("Approve", f"{plan.plan_id[:23]}… (a person reads the report and says yes; the demo just does)")
        self._say(
            "Execute",
            f"in batches, each broker copies at most {THROTTLE / 1e6:.0f} MB/s, then leaders are elected",
        )
        columns = (TextColumn("  "), BarColumn(30), TextColumn("{task.percentage:>3.0f}% of the bytes, {task.description}"))
        started = self._run.cluster.now_ms
        progress: Progress | None = None
        with Bar(*columns, console=self._console, transient=True, disable=not self._story.animated) as bar:
            task = bar.add_task("", total=None)
            quarter = 1
            for progress in self._run.execute(plan):
                minutes = (self._run.cluster.now_ms - started) / 60_000
                self._update(bar, task, progress, minutes)
                if not self._story.animated and progress.bytes_copied >= quarter / 4 * progress.bytes_total > 0:
                    self._line(f"{quarter * 25:>3}% of the bytes, {_sentence(progress, minutes)}")
                    quarter = min(int(progress.bytes_copied / progress.bytes_total * 4) + 1, 5)
        if progress is None:
            return 0
        self._line(f"done: {_sentence(progress, (self._run.cluster.now_ms - started) / 60_000)}")
        for failure in progress.failed[:REASONS]:
            self._line(f"not done: {failure.topic}-{failure.partition}: {failure.reason}")
        return len(progress.failed)

    def _update(self, bar: Bar, task: object, progress: Progress, minutes: float) -> None:
        bar.update(
            task,  # type: ignore[arg-type]
            total=progress.bytes_total,
            completed=progress.bytes_copied,
            description=_sentence(progress, minutes),
        )

    def after(self, plan: Plan, before: Snapshot, after: Snapshot) -> None:
        from optimizer.report.units import percent, resource_label
        from trimtab.demo import deviations

        apart = [
            f"{resource_label(d.resource)} {percent(d.largest)}" for d in deviations(plan, after) if d.resource in SHOWN
        ]
        self._say("After", "measured again by the same reporters")
        self._console.print(self._bars(after, "green"))
        for resource, label in SHOWN.items():
            if resource in after.capacity and after.is_reported(resource):
                self._line(f"{label:<11} {_spread(before, resource)} → {_spread(after, resource)} of capacity")
        if apart:
            self._line(f"largest difference of a broker from the plan (share of the mean): {', '.join(apart)}")

    def next_steps(self, out: Path, directory: Path | None) -> None:
        self._say("Report", f"{out}  (one file, opens in any browser)")
        if directory is not None:
            self._line(f"internal topic kept in {directory}")
        self._console.print("\nYour own cluster, as a dry run that changes nothing:", style="bold")
        for command in (
            "trimtab capacity --bootstrap-server HOST:9092 --template --out capacity.yaml",
            "trimtab snapshot --bootstrap-server HOST:9092 --capacity capacity.yaml --out cluster.json.gz",
            "trimtab plan --snapshot cluster.json.gz --preset default --out report.html",
        ):
            self._console.print(f"  {command}", soft_wrap=True)

    def _say(self, title: str, text: str) -> None:
        """A step of the story."""
        self._step += 1
        if self._story.log_format == "json":
            log.info("%s: %s", title, text)
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        row = Table.grid(padding=(0, 1))
        row.add_column(no_wrap=True, width=10)
        row.add_column()
        row.add_row(Text(f"{self._step} {title}", style="bold"), Text(printable(text)))
        self._console.print(Padding(row, (1, 0, 0, 0)))

    def _line(self, text: str) -> None:
        """A detail of the step before."""
        if self._story.log_format == "json":
            log.info("%s", text)
        from rich.padding import Padding
        from rich.text import Text

        self._console.print(Padding(Text(printable(text)), (0, 0, 0, 11)))

    def _bars(self, snapshot: Snapshot, colour: str) -> RenderableType:
        """Brokers with a bar per resource: load as a share of capacity."""
        from rich.padding import Padding
        from rich.table import Table

        table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("broker", justify="right")
        table.add_column("rack")
        resources = [r for r in SHOWN if r in snapshot.capacity and snapshot.is_reported(r)]
        for resource in resources:
            table.add_column(SHOWN[resource], no_wrap=True)
        table.add_column("leaders", justify="right", no_wrap=True)
        shares = {r: snapshot.broker_load(r) / snapshot.capacity[r] for r in resources}
        for resource in resources:
            self._full_bar.setdefault(resource, float(shares[resource].max()))
        leaders = snapshot.broker_load("leaders")
        for row, broker in enumerate(snapshot.broker_ids.tolist()[:MOST_BROKERS]):
            cells = [self._bar(float(shares[r][row]), self._full_bar[r], colour) for r in resources]
            table.add_row(str(broker), snapshot.racks[row] or "-", *cells, str(int(leaders[row])))
        if snapshot.broker_count > MOST_BROKERS:
            table.add_row("…", "")
        table.caption = "percent of each broker's capacity"
        return Padding(table, (0, 0, 0, 2))

    def _bar(self, share: float, whole: float, colour: str) -> str:
        full, rest = ("#", ".") if self._plain else ("█", "░")
        length = min(round(BAR_WIDTH * share / whole), BAR_WIDTH) if whole > 0 else 0
        return f"[{colour}]{full * length}[/][dim]{rest * (BAR_WIDTH - length)}[/] {share * 100:3.0f}%"


def _telling(plan: Plan) -> list[Action]:
    """The best action of each type, the most important type first."""
    best: dict[str, Action] = {}
    for action in plan.actions:
        if action.type not in best or action.score > best[action.type].score:
            best[action.type] = action
    return [best[kind] for kind in ("move", "leadership", "swap", "exchange") if kind in best][:REASONS]


def _sentence(progress: Progress, minutes: float) -> str:
    from optimizer.report.units import size

    total = progress.waiting + progress.moving + progress.done + len(progress.failed)
    copied = size(progress.bytes_copied)
    return f"{progress.done} of {total} changes, {copied} copied, {minutes:.0f} min of virtual time"


def _spread(snapshot: Snapshot, resource: str) -> str:
    shares = snapshot.broker_load(resource) / snapshot.capacity[resource]
    return f"{float(shares.min()) * 100:.0f} to {float(shares.max()) * 100:.0f}%"
