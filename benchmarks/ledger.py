"""Quality ledger: is the planner as good as it was, on clusters that it was never tuned on?

``python -m benchmarks.ledger run --out FILE [--rows 20x400,100x50k/b] [--seeds 31844,48114]``
``python -m benchmarks.ledger compare BEFORE AFTER``

A *row* is SIZE/SCENARIO/VARIANT/ACCEPTANCE as in `benchmarks.planner`, such as ``100x50k/b/racks/score``; a *cell* is a row with one
seed. `run` appends one JSON line a cell and goes on where it stopped; all rows of a seed come before the next seed. Every cell is
measured in a process of its own, forked from one that has the kernels. `compare` looks at cells that both files have, prints sums,
geometric means and the worst cells, and exits with 1 when a limit of `broken` is exceeded.

The seeds are held out: read what they say, never choose a constant or a rule by them.

It needs few names of the other benchmarks, so a copy of this file measures an older checkout, too.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from math import exp, inf, log
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

from benchmarks.measure import measured, surroundings
from benchmarks.planner import Cell, job_of
from cluster_model.snapshot import BrokerState
from optimizer.options import Acceptance
from tests.clusters.synthetic import SCENARIOS, VARIANTS, Scenario
from trimtab.warmup import warm_up

# fmt: off
SEEDS = (
    31844, 48114, 53879, 56672, 64655, 78428, 94121, 106810, 117120, 168680, 182816, 195912, 206421, 247702, 285863, 286377, 296621,
    343546, 359762, 396748, 408510, 446134, 490334, 495017, 501387, 518853, 566529, 588703, 593704, 604693, 685327, 687270, 687798,
    694029, 707799, 761971, 763589, 772707, 792514, 794792, 795843, 843883, 853315, 863272, 869764, 895585, 906966, 936661, 942077,
    995961,
)
# fmt: on
SIZES = {"20x400": (20, 400), "20x5k": (20, 5_000), "100x10k": (100, 10_000), "100x50k": (100, 50_000)}
LARGE = {"400x200k": (400, 200_000), "1000x1M": (1_000, 1_000_000), "2000x3M": (2_000, 3_000_000)}
ACCEPTANCES: tuple[Acceptance, ...] = ("score", "potential")
BAND = 0.10
WORST = 5  # cells that `compare` prints of each kind

# Issue "the planner on one page", quality ledger. After over before.
MEAN_LIMIT, WORST_LIMIT = 1.01, 1.03  # moves and bytes: geometric mean, worst cell
CPU_LIMIT, CPU_FROM = 1.0, 50_000  # geometric mean of each size from so many replicas on


@dataclass(frozen=True)
class Line:
    """One cell of a ledger file. Brokers are counted among the active ones; bounds are the plan's own."""

    row: str
    seed: int
    replicas: int
    in_band: int
    proven: int  # left outside their range with a proof
    unproven: int
    hard: int  # violations left beyond those that excluded topics force
    moves: int
    moves_bound: int
    bytes: int
    bytes_bound: int
    leadership_changes: int
    cpu_s: float  # the faster of two runs
    peak_mb: float
    repeated: bool  # both runs gave the same plan
    commit: str | None


# --- run --------------------------------------------------------------------------------------------------------------


def rows_like(patterns: Sequence[str]) -> list[str]:
    """Rows whose leading parts are those of a pattern: ``100x50k``, ``20x400/b``, ``*/b/racks/score``; all but large ones for none.

    Raises
    ------
    SystemExit
        A pattern fits no row.
    """
    every = [
        f"{size}/{scenario}/{variant}/{acceptance}"
        for size in (*SIZES, *LARGE) for scenario in SCENARIOS for variant in VARIANTS for acceptance in ACCEPTANCES
    ]  # fmt: skip
    chosen = {row for pattern in patterns or SIZES for row in every if fits(row, pattern)}
    for pattern in patterns:
        if not any(fits(row, pattern) for row in every):
            raise SystemExit(
                f"--rows: {pattern!r} fits no row: expected SIZE/SCENARIO/VARIANT/ACCEPTANCE or the start of one, * for any part; "
                f"sizes are {', '.join((*SIZES, *LARGE))}, scenarios {', '.join(SCENARIOS)}, variants {', '.join(VARIANTS)}"
            )
    return [row for row in every if row in chosen]


def fits(row: str, pattern: str) -> bool:
    wanted, parts = pattern.split("/"), row.split("/")
    return len(wanted) <= len(parts) and all(w in ("*", p) for w, p in zip(wanted, parts, strict=False))


def run(out: Path, rows: Sequence[str], seeds: Sequence[int]) -> None:
    commit = cast("str | None", surroundings()["commit"])
    done = {(line.row, line.seed): line for line in read(out)} if out.exists() else {}
    if others := {str(line.commit) for line in done.values()} - {str(commit)}:
        raise SystemExit(f"{out} holds cells of commit {', '.join(sorted(others))}, and this is {commit}: name another file with --out")
    wanted = [(row, seed) for seed in seeds for row in rows if (row, seed) not in done]
    compiling = multiprocessing.get_context("fork").Process(target=warm_up)  # elsewhere: memory for it would be in every cell's peak
    compiling.start()
    compiling.join()
    warm_up()
    with out.open("a") as file:
        for n, (row, seed) in enumerate(wanted, 1):
            line = forked(row, seed, commit)
            file.write(json.dumps(asdict(line)) + "\n")
            file.flush()
            print(f"{n}/{len(wanted)} {row} {seed}: {line.cpu_s} s, {line.unproven} unproven", file=sys.stderr)


def forked(row: str, seed: int, commit: str | None) -> Line:
    """One cell, measured in a process of its own that has compiled kernels from the start."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, row, seed, commit))
    process.start()
    sender.close()
    try:
        return cast(Line, receiver.recv())
    except EOFError:
        process.join()
        raise SystemExit(f"{row} with seed {seed} ended with exit code {process.exitcode} before it was measured") from None
    finally:
        process.join()


def _send(sender: Connection, row: str, seed: int, commit: str | None) -> None:
    sender.send(line_of(row, seed, commit))


def line_of(row: str, seed: int, commit: str | None) -> Line:
    size, scenario, variant, acceptance = row.split("/")
    brokers, replicas = (SIZES | LARGE)[size]
    job = job_of(
        Cell(size, brokers, replicas, cast(Scenario, scenario), variant, BAND, seed, cast(Acceptance, acceptance), 1)
    )
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # Linux: what making the cluster took is not in the peak
    found = measured(job)
    active = int((job.snapshot.broker_states == BrokerState.ACTIVE).sum())
    return Line(
        row=row, seed=seed, replicas=found.replicas, in_band=active - found.explained - found.unexplained,
        proven=found.explained, unproven=found.unexplained, hard=found.hard_violations - found.hard_forced,
        moves=found.moves, moves_bound=found.moves_bound, bytes=found.bytes_moved, bytes_bound=found.bytes_bound,
        leadership_changes=found.leadership_changes,
        cpu_s=min(found.cpu_s, found.first_cpu_s), peak_mb=found.peak_mb, repeated=found.repeated, commit=commit,
    )  # fmt: skip


def read(file: Path) -> Iterator[Line]:
    """Lines of a ledger file. A last line without its end, from a run that was interrupted, is cut off.

    Raises
    ------
    SystemExit
        There is no such file, or a line in it is no cell.
    """
    try:
        text = file.read_text()
    except OSError as e:
        raise SystemExit(f"{file}: {e.strerror}: write one with `python -m benchmarks.ledger run --out {file}`") from None
    if not text.endswith("\n") and text:
        text = text[: text.rfind("\n") + 1]
        file.write_text(text)
    for n, each in enumerate(text.splitlines(), 1):
        try:
            yield Line(**json.loads(each))
        except (TypeError, ValueError):
            names = ", ".join(field.name for field in fields(Line))
            raise SystemExit(f"{file} line {n}: expected a JSON object with {names}: remove the line") from None


# --- compare ----------------------------------------------------------------------------------------------------------

Pair = tuple[Line, Line]


def mean(ratios: Iterable[float]) -> float:
    """Geometric, of what is neither 0 nor infinite; 1 where nothing is left."""
    logs = [log(x) for x in ratios if 0 < x < inf]
    return exp(sum(logs) / len(logs)) if logs else 1.0


def over(after: float, before: float) -> float:
    """Infinite where something comes after nothing."""
    if before > 0:
        return after / before
    return inf if after > 0 else 1.0


def ratios(pairs: Iterable[Pair], name: str) -> list[float]:
    return [over(getattr(after, name), getattr(before, name)) for before, after in pairs]


def total(lines: Iterable[Line], name: str) -> int:
    return sum(getattr(line, name) for line in lines)


def by_size(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(pair[0].row.split("/")[0], []).append(pair)
    return found


def broken(pairs: Sequence[Pair]) -> list[str]:
    """Limits that the second run exceeds. Brokers are counted over all cells; a cell that made no move before may make none."""
    before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = []
    for name, text, sign in (
        ("in_band", "brokers in band", -1), ("unproven", "brokers left without a proof", 1), ("hard", "hard violations", 1),
    ):  # fmt: skip
        was, now = total(before, name), total(after, name)
        if (now - was) * sign > 0:
            found.append(f"{text}: {now:,}, {was:,} before")
    for name in ("moves", "bytes"):
        each = ratios(pairs, name)
        if (value := mean(each)) > MEAN_LIMIT:
            found.append(f"{name}: {value:.4f} in the geometric mean, at most {MEAN_LIMIT}")
        if (value := max(each)) > WORST_LIMIT:
            number = sum(x > WORST_LIMIT for x in each)
            found.append(f"{name}: {value:.4f} in the worst cell, at most {WORST_LIMIT} ({number} of {len(each)} cells above)")
    for size, some in by_size(pairs).items():
        if some[0][0].replicas >= CPU_FROM * 0.9 and (value := mean(ratios(some, "cpu_s"))) > CPU_LIMIT:
            found.append(f"CPU of {size}: {value:.3f} in the geometric mean, at most {CPU_LIMIT}")
    if different := sum(not line.repeated for line in after):
        found.append(f"another plan from a second run: {different} cells")
    return found


def compared(before: Iterable[Line], after: Iterable[Line]) -> Iterator[str]:
    """What `compare` prints; broken limits come last."""
    first, second = ({(line.row, line.seed): line for line in lines} for lines in (before, after))
    pairs = [(first[key], second[key]) for key in first if key in second]
    if not pairs:
        raise SystemExit("the two files have no cell in common: run both with the same --rows and --seeds")
    yield f"{len(pairs):,} cells in both; {len(first) - len(pairs):,} only before, {len(second) - len(pairs):,} only after"
    yield (
        f"{'size':<9}{'cells':>6} {'in band':>17} {'proven':>13} {'unproven':>13} "
        f"{'moves':>7} {'x bound':>14} {'bytes':>7} {'x bound':>14} {'CPU':>6} {'MB':>6}"
    )
    for size, some in (*by_size(pairs).items(), ("all", pairs)):
        yield summary(size, some)
    for name in ("moves", "bytes", "cpu_s", "peak_mb"):
        yield f"worst in {name}:"
        worst = sorted(pairs, key=lambda pair: -ratios([pair], name)[0])[:WORST]
        yield from (cell_text(pair, name) for pair in worst)
    for name, sign in (("in_band", -1), ("unproven", 1)):
        lost = [pair for pair in pairs if (getattr(pair[1], name) - getattr(pair[0], name)) * sign > 0]
        won = [pair for pair in pairs if (getattr(pair[1], name) - getattr(pair[0], name)) * sign < 0]
        yield f"{name}: worse in {len(lost)} cells, better in {len(won)}; worst:"
        lost.sort(key=lambda pair: -abs(getattr(pair[1], name) - getattr(pair[0], name)))
        yield from (cell_text(pair, name) for pair in lost[:WORST])
    yield from (f"BROKEN {text}" for text in broken(pairs))


def summary(title: str, pairs: Sequence[Pair]) -> str:
    before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    counts = {name: f"{total(before, name):,}→{total(after, name):,}" for name in ("in_band", "proven", "unproven")}
    bounds = {
        name: "→".join(f"{mean(over(getattr(x, name), getattr(x, name + '_bound')) for x in side):.3f}" for side in (before, after))
        for name in ("moves", "bytes")
    }  # fmt: skip
    means = {name: mean(ratios(pairs, name)) for name in ("moves", "bytes", "cpu_s", "peak_mb")}
    return (
        f"{title:<9}{len(pairs):>6,} {counts['in_band']:>17} {counts['proven']:>13} {counts['unproven']:>13} {means['moves']:>7.4f} "
        f"{bounds['moves']:>14} {means['bytes']:>7.4f} {bounds['bytes']:>14} {means['cpu_s']:>6.3f} {means['peak_mb']:>6.3f}"
    )


def cell_text(pair: Pair, name: str) -> str:
    before, after = pair
    return (
        f"  {before.row} {before.seed}: {getattr(before, name):,} → {getattr(after, name):,}; in band {before.in_band} → {after.in_band}, "
        f"unproven {before.unproven} → {after.unproven}"
    )


# --- command line -----------------------------------------------------------------------------------------------------


def numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected whole numbers with commas between, found {text!r}") from None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run", help="measure cells and append them to a file")
    command.add_argument("--out", type=Path, required=True, metavar="FILE")
    command.add_argument("--rows", type=lambda text: text.split(","), default=[], metavar="A,B",
                         help=f"rows or their beginnings; without it all of {', '.join(SIZES)}; also {', '.join(LARGE)}")  # fmt: skip
    command.add_argument("--seeds", type=numbers, default=list(SEEDS), metavar="N,M", help="without it all held-out ones")
    command = commands.add_parser("compare", help="exit code 1 when the second file exceeds a limit")
    command.add_argument("before", type=Path)
    command.add_argument("after", type=Path)
    chosen = parser.parse_args(arguments)
    if chosen.command == "run":
        run(chosen.out, rows_like(chosen.rows), chosen.seeds)
        return 0
    texts = list(compared(read(chosen.before), read(chosen.after)))
    print("\n".join(texts))
    return 1 if any(text.startswith("BROKEN") for text in texts) else 0


if __name__ == "__main__":
    sys.exit(main())
