"""How fast and how good the planner is: one line for each size, scenario, variant, band, seed and acceptance.

``python -m benchmarks.planner [--sizes 10x1k,100x50k] [--per-broker 50] [--scenarios a,b,c,c5,d] [--variants even,racks]
[--bands 0.10,0.05,0.02] [--acceptance score,potential] [--seeds 0] [--threads 1] [--json FILE] [--smoke]``

Every line is measured in a process of its own (`benchmarks.measure` says what is measured). `in band` is the share of the reducible
brokers that score 1 in every soft goal; *left* counts the others as proven/unexplained. *x bound* is what the plan moves over what
no plan can avoid. ``--smoke`` runs small clusters of every kind in this process and fails, with exit code 1, on counts of work
(moves, bytes, hard violations, brokers within range) and never on time.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from benchmarks.apart import apart
from benchmarks.measure import Job, Row, measured, surroundings
from optimizer.options import Acceptance
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import SCENARIOS, SIZES, VARIANTS, Scenario, cluster
from trimtab.warmup import warm_up


@dataclass(frozen=True)
class Cell:
    """What one line measures."""

    size: str
    brokers: int
    replicas: int
    scenario: Scenario
    variant: str
    band: float
    seed: int
    acceptance: Acceptance
    threads: int
    max_moves: int | None = None


def job_of(cell: Cell) -> Job:
    return Job(
        size=cell.size, scenario=cell.scenario, variant=cell.variant, seed=cell.seed, band=cell.band,
        acceptance=cell.acceptance, threads=cell.threads, max_moves=cell.max_moves,
        snapshot=cluster(cell.brokers, cell.replicas, cell.scenario, cell.seed, cell.variant),
        goals=goals_text(cell.variant, cell.band),
    )  # fmt: skip


def cells(chosen: argparse.Namespace) -> Iterator[Cell]:
    for name in chosen.sizes:
        brokers, replicas = SIZES[name]
        size = name
        if chosen.per_broker is not None:
            replicas = brokers * chosen.per_broker
            size = f"{brokers}x{replicas / 1000:g}k"
        for scenario in chosen.scenarios:
            for variant in chosen.variants:
                for band in chosen.bands:
                    for seed in chosen.seeds:
                        for acceptance in chosen.acceptance:
                            for threads in chosen.threads:
                                yield Cell(
                                    size, brokers, replicas, cast(Scenario, scenario), variant, band, seed,
                                    cast(Acceptance, acceptance), threads, chosen.max_moves,
                                )  # fmt: skip


# --- promises, in counts of work --------------------------------------------------------------------------------------

# Moves and bytes over the lower bound of 100 x 50k, at most. In a, bytes pay for a move cost that saves moves on other clusters. In c, one
# replica of 14% of a broker needs room made for it, which the byte bound cannot see; in d, the bound takes parts of hot partitions, which
# no plan can.
PROMISED = {"a": (1.05, 1.08), "b": (1.06, 1.07), "c": (1.02, 1.05), "c5": (1.01, 1.01), "d": (1.3, 2.0)}
PROMISED_SIZE = "100x50k"
SMOKE_VARIANTS = tuple(name for name in VARIANTS if name not in ("even", "giants", "heavy", "racks-small"))
IN_BAND = {"score": 0.99, "potential": 1.0}


def problems(row: Row) -> list[str]:
    """What a row breaks of the promises."""
    found = []
    if row.hard_violations > row.hard_forced:
        found.append(f"{row.hard_violations} hard violations left, {row.hard_forced} of them forced")
    if row.in_band < IN_BAND[row.acceptance]:
        found.append(f"{row.in_band:.1%} of the reducible brokers in band, {IN_BAND[row.acceptance]:.0%} promised")
    if not row.repeated:
        found.append("a second run gave another plan")
    if row.size == PROMISED_SIZE and row.variant == "even" and row.scenario in PROMISED:
        for what, limit, value in zip(("moves", "bytes"), PROMISED[row.scenario],
                                      (row.moves_over_bound, row.bytes_over_bound), strict=True):  # fmt: skip
            if value is not None and value > limit:
                found.append(f"{what} {value:.3f} of the lower bound, at most {limit} promised")
    return found


# --- table ------------------------------------------------------------------------------------------------------------

COLUMNS: tuple[tuple[str, str, Callable[[Row], str]], ...] = (
    ("size", "<10", lambda r: r.size),
    ("scenario", "<12", lambda r: r.scenario if r.variant == "even" else f"{r.scenario} {r.variant}"),
    ("band", ">5", lambda r: f"{r.band:.0%}"),
    ("seed", ">4", lambda r: str(r.seed)),
    ("accept", "<9", lambda r: r.acceptance),
    ("CPU s", ">7", lambda r: f"{r.cpu_s:.2f}"),
    ("wall s", ">7", lambda r: f"{r.wall_s:.2f}"),
    ("before", ">6", lambda r: f"{r.in_band_before:.1%}"),
    ("in band", ">7", lambda r: f"{r.in_band:.1%}"),
    ("left", ">7", lambda r: f"{r.explained}/{r.unexplained}"),
    ("hard", ">4", lambda r: str(r.hard_violations - r.hard_forced)),
    ("moves", ">8", lambda r: f"{r.moves:,}"),
    ("x bound", ">7", lambda r: shown(r.moves_over_bound)),
    ("GB", ">9", lambda r: f"{r.bytes_moved / 1e9:,.0f}"),
    ("x bound", ">7", lambda r: shown(r.bytes_over_bound)),
    ("leaders", ">7", lambda r: f"{r.leadership_changes:,}"),
    ("actions", ">8", lambda r: f"{r.actions:,}"),
    ("MB", ">6", lambda r: f"{r.peak_mb:,.0f}"),
)


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def line(texts: list[str]) -> str:
    return " ".join(f"{text:{column[1]}}" for text, column in zip(texts, COLUMNS, strict=True))


# --- command line -----------------------------------------------------------------------------------------------------


def listed(allowed: tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        chosen = [part for part in text.split(",") if part]
        for part in chosen:
            if part not in allowed:
                raise argparse.ArgumentTypeError(f"expected any of {', '.join(allowed)}, found {part!r}")
        return chosen

    return parse


def numbers(kind: type[int] | type[float]) -> Callable[[str], list[float]]:
    def parse(text: str) -> list[float]:
        try:
            return [kind(part) for part in text.split(",")]
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected numbers, found {text!r}") from None

    return parse


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--sizes", type=listed(tuple(SIZES)), default=["10x1k", "100x50k"], metavar="A,B")
    add("--per-broker", type=int, metavar="N", help="replicas per broker, instead of those of the size")
    add("--scenarios", type=listed(SCENARIOS), default=list(SCENARIOS), metavar="A,B")
    add("--variants", type=listed(tuple(VARIANTS)), default=["even"], metavar="A,B",
        help="; ".join(f"{name}: {variant.text}" for name, variant in VARIANTS.items()).replace("%", "%%"))  # fmt: skip
    add("--bands", type=numbers(float), default=[0.10], metavar="X,Y", help="half widths, shares of the mean")
    add("--acceptance", type=listed(("score", "potential")), default=["score", "potential"], metavar="A,B")
    add("--seeds", type=numbers(int), default=[0], metavar="N,M", help="of the clusters")
    add("--threads", type=numbers(int), default=[1], metavar="N,M")
    add("--max-moves", type=int, metavar="N", help="budget of replica moves")
    add("--json", type=Path, metavar="FILE")
    add("--smoke", action="store_true", help="small clusters, exit code 1 when more work is done than promised")
    chosen = parser.parse_args(arguments)
    warm_up()
    print(line([title for title, _, _ in COLUMNS]))
    table, broken = [], 0
    for cell in smoke_cells() if chosen.smoke else cells(chosen):
        row = measured(job_of(cell)) if chosen.smoke else apart("benchmarks.measure", "measured", job_of(cell))
        table.append(row)
        print(line([show(row) for _, _, show in COLUMNS]), flush=True)
        for text in problems(row) if chosen.smoke else []:
            broken += 1
            print(f"  {row.size} {row.scenario} {row.variant} {row.acceptance}: {text}")
    if chosen.json is not None:
        written = {**surroundings(), "rows": [asdict(row) for row in table]}
        chosen.json.write_text(json.dumps(written, indent=1) + "\n")
    return 1 if broken else 0


def smoke_cells() -> Iterator[Cell]:
    for acceptance in ("score", "potential"):
        for size in ("10x1k", PROMISED_SIZE):
            for scenario in SCENARIOS:
                yield Cell(size, *SIZES[size], scenario, "even", 0.10, 0, acceptance, 1)
    for variant in SMOKE_VARIANTS:
        yield Cell("30x6k", 30, 6_000, "b", variant, 0.10, 0, "potential", 1)


if __name__ == "__main__":
    sys.exit(main())
