"""The frontier of a plan for people and for programs: balance against bytes, step by step."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from optimizer.frontier import Frontier
from optimizer.plan import Plan, Step
from optimizer.report.paper import Paper
from optimizer.report.units import count, size

if TYPE_CHECKING:
    from rich.console import Console

Column = tuple[str, Callable[[Step], str]]

BAR, LEAST_BAR, GAP = 40, 8, 2  # columns of the plot, and between columns
COLUMNS: tuple[Column, ...] = (
    ("bytes", lambda s: size(s.bytes_to_move)),
    ("moves", lambda s: f"{s.replica_moves:,}"),
    ("leaders", lambda s: f"{s.leadership_changes:,}"),
    ("in range", lambda s: f"{s.brokers_in_band:,}"),
    ("violations", lambda s: f"{s.violations:,}"),
    ("worst score", lambda s: f"{s.worst:.3f}"),
    ("balance", lambda s: f"{s.balance:.4f}"),
)
NARROW = ("violations", "worst score", "leaders", "in range", "moves")  # what goes first where the terminal is narrow
VIOLATIONS = "Violations: brokers that do not meet a goal, hard or soft; a broker counts once for each such goal."
STOPPED = "Planning was stopped before it was done: a whole plan would go on. "


def frontier_json(plan: Plan) -> str:
    """``{"version": 1, "plan_id": …, "steps": [{"actions": …, "bytes_to_move": …, "brokers_in_band": …, "balance": …}]}``."""
    steps = [
        {
            "actions": s.actions, "replica_moves": s.replica_moves, "leadership_changes": s.leadership_changes,
            "bytes_to_move": s.bytes_to_move, "brokers_in_band": s.brokers_in_band, "violations": s.violations,
            "balance": float(f"{s.balance:.9g}"), "worst_score": float(f"{s.worst:.9g}"),
        }
        for s in plan.frontier
    ]  # fmt: skip
    return json.dumps({"version": 1, "plan_id": plan.plan_id, "steps": steps}, indent=1) + "\n"


def render_frontier(plan: Plan, console: Console) -> None:
    """Print the frontier as a table with a bar for the balance of each step."""
    paper = Paper(console)
    steps = list(plan.frontier)
    brokers = sum(b.state == "active" for b in plan.brokers)
    whole = steps[-1]
    if not whole.actions:
        paper.paragraph(
            "Planning was stopped before anything was found." if plan.stopped else "The plan is empty: no budget would buy more balance."
        )
        return
    cut = STOPPED if plan.stopped else ""
    paper.paragraph(
        f"All {count(whole.actions, 'action')} would copy {size(whole.bytes_to_move)} and bring {whole.brokers_in_band} of "
        f"{count(brokers, 'active broker')} into their target range. {cut}{_knee(steps)}"
    )
    columns, plot = _fitting(COLUMNS, [[text(step) for _, text in COLUMNS] for step in steps], paper.console.width)
    table = paper.table(*((name, True) for name, _ in columns), *([("", False)] if plot else []))
    low = steps[0].balance
    for step in steps:
        share = (step.balance - low) / (whole.balance - low) if whole.balance > low else 1.0
        bar = ("#" if paper.ascii_only else "█") * max(0, min(plot, round(share * plot)))
        table.add_row(*map(paper.text, [*(text(step) for _, text in columns), *([bar] if plot else [])]))
    paper.show(table)
    if any(name == "violations" for name, _ in columns):
        paper.paragraph(VIOLATIONS, "dim")
    limit = "bytes as --max-bytes" if whole.bytes_to_move else "moves as --max-moves"
    lines = f"Each line but the first is a plan of its own: to get it, give its {limit}."
    if isinstance(plan.frontier, Frontier):
        lines = f"The lines are first parts of this plan; a plan for the budget of a line (its {limit}) often brings more."
    paper.paragraph(f"Balance is the weighted mean of all soft broker scores. {lines}", "dim")


def _fitting(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> tuple[list[Column], int]:
    """Columns that a terminal has room for, and how wide the plot beside them is: 0 where there is none."""
    needs = {
        name: max(len(name), *(len(row[i]) for row in cells)) + GAP for i, (name, _) in enumerate(columns)
    }
    kept = [name for name, _ in columns]
    for name in NARROW:
        if sum(needs[k] for k in kept) + LEAST_BAR <= width:
            break
        kept.remove(name)
    room = width - sum(needs[k] for k in kept)
    return [c for c in columns if c[0] in kept], min(BAR, room) if room >= LEAST_BAR else 0


def _knee(steps: list[Step]) -> str:
    """What part of the bytes buys nine tenths of the balance; nothing where none are copied."""
    if not steps[-1].bytes_to_move:
        return ""
    first, last = steps[0].balance, steps[-1].balance
    for step in steps:
        if last > first and step.balance - first >= 0.9 * (last - first):
            share = step.bytes_to_move / steps[-1].bytes_to_move
            return f"Nine tenths of the gain in balance would take {size(step.bytes_to_move)} ({share:.0%} of the bytes)."
    return ""
