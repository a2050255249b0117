"""The frontier of a plan for people and for programs: balance against bytes, step by step."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from optimizer.plan import Plan, Step
from optimizer.report.paper import Paper
from optimizer.report.units import count, size

if TYPE_CHECKING:
    from rich.console import Console

BAR = 40  # columns of the plot


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
        paper.paragraph("The plan is empty: no budget would buy more balance.")
        return
    paper.paragraph(
        f"All {count(whole.actions, 'action')} would copy {size(whole.bytes_to_move)} and bring {whole.brokers_in_band} of "
        f"{count(brokers, 'active broker')} into band. {_knee(steps)}"
    )
    table = paper.table(
        ("bytes", True), ("moves", True), ("leaders", True), ("in band", True), ("violations", True), ("worst score", True),
        ("balance", True), ("", False),
    )  # fmt: skip
    low = steps[0].balance
    for step in steps:
        share = (step.balance - low) / (whole.balance - low) if whole.balance > low else 1.0
        bar = ("#" if paper.ascii_only else "█") * max(0, min(BAR, round(share * BAR)))
        table.add_row(
            *map(
                paper.text,
                (
                    size(step.bytes_to_move), f"{step.replica_moves:,}", f"{step.leadership_changes:,}",
                    f"{step.brokers_in_band:,}", f"{step.violations:,}", f"{step.worst:.3f}", f"{step.balance:.4f}", bar,
                ),
            )
        )  # fmt: skip
    paper.show(table)
    paper.paragraph(
        "Balance is the weighted mean of all soft broker scores. To plan for one of the lines, give its bytes as --max-bytes, "
        "which may do a little better.",
        "dim",
    )


def _knee(steps: list[Step]) -> str:
    """What part of the bytes buys nine tenths of the balance."""
    first, last = steps[0].balance, steps[-1].balance
    for step in steps:
        if last > first and step.balance - first >= 0.9 * (last - first):
            share = step.bytes_to_move / steps[-1].bytes_to_move if steps[-1].bytes_to_move else 0.0
            return f"Nine tenths of the gain in balance would take {size(step.bytes_to_move)} ({share:.0%} of the bytes)."
    return ""
