"""The plan for a terminal: verdict, goals, brokers with strips, actions with reasons, what was skipped.

Called by the command line with a rich console. Legible at 80 columns and without colour; wider terminals
get more columns, not longer lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from cluster_model.plain_text import one_line
from optimizer.plan import Action, BrokerOutcome, Plan
from optimizer.report.effort import action_size, net_effort
from optimizer.report.labels import goal_labels, plainly
from optimizer.report.paper import Paper
from optimizer.report.remarks import does_one_thing
from optimizer.report.standing import standing, stay_out, worst_first
from optimizer.report.strips import legend, scale, strip, strip_width, worst_deviation
from optimizer.report.survey import Survey, partition_name, route, survey, type_words
from optimizer.report.units import count, percent, share_in_band
from optimizer.report.verdict import COUNTS, Tone, verdict
from optimizer.report.written import plan_as_written

if TYPE_CHECKING:
    from rich.console import Console

MOST_BROKERS = 20
MOST_ACTIONS = 10
REPEATED = 3  # lines in a row with the same reason: it stands once
SPREAD = "spread: standard deviation over the brokers, as a share of the mean (coefficient of variation)"
VIOLATIONS = "violations: brokers that do not meet the goal"
SCORE = "Score of an action: above 0.5 the goals would be better met; 0.5 changes nothing."
GAP = 2  # columns between columns
LEFT_HEAD = "outside in"
STYLES: dict[Tone, str] = {
    "balanced": "bold green",
    "good": "bold green",
    "partial": "bold cyan",
    "stuck": "bold yellow",
    "stopped": "bold yellow",
    "infeasible": "bold red",
    "unjudged": "bold yellow",
    "unchecked": "bold yellow",
}
STATUS_STYLES = {
    "satisfied": "green",
    "improved": "cyan",
    "violated": "red",
    "infeasible": "red",
    "skipped": "dim",
}


def render_text(plan: Plan, console: Console) -> None:
    """Print the dry run on `console`."""
    plan = plan_as_written(plan)
    paper = Paper(console)
    said = verdict(plan)
    paper.paragraph(one_line(said.sentence), STYLES[said.tone])
    for remark in said.remarks:
        paper.paragraph(one_line(remark), "dim")
    _goals(plan, paper)
    _brokers(plan, paper)
    _left(plan, paper)
    _actions(plan, survey(plan, MOST_ACTIONS), paper)
    if plan.skipped or plan.notes:
        paper.heading("Skipped, and remarks")
        labels = goal_labels(plan)
        for line in (*(f"{s.what}: {s.reason}" for s in plan.skipped), *plan.notes):
            paper.item(plainly(line, labels))
    console.print()
    where = f"cluster {plan.cluster_id or 'unnamed'} as of {plan.taken_at or 'an unknown time'}"
    paper.paragraph(one_line(f"A dry run of {where}: nothing has changed."), "dim")
    paper.paragraph(one_line(f"Plan {plan.plan_id}"), "dim")


def _goals(plan: Plan, paper: Paper) -> None:
    paper.heading("Goals")
    labels = goal_labels(plan)
    heads = [
        ("goal", False),
        ("", False),
        ("status", False),
        ("violations", True),
        ("in range", True),
        ("worst deviation", True),
    ]
    table = paper.table(*heads, *([("spread", True)] if paper.wide else []))
    for g in plan.goals:
        b, a = g.before, g.after
        cells = ["-"] * 4
        if b is not None and a is not None:
            cells = [
                paper.turn(f"{b.violations:,}", f"{a.violations:,}"),
                paper.turn(share_in_band(b.in_band), share_in_band(a.in_band)),
                "-" if b.max_deviation is None else paper.turn(percent(b.max_deviation), percent(a.max_deviation)),
                "-" if b.cv is None or a.cv is None else paper.turn(f"{b.cv:.3f}", f"{a.cv:.3f}"),
            ]
        row = [paper.clip(labels[g.name], 40 if paper.wide else 20), "hard" if g.hard else f"x{g.weight:g}"]
        table.add_row(
            *map(paper.text, row),
            paper.text(g.status, STATUS_STYLES.get(g.status, "")),
            *map(paper.text, cells if paper.wide else cells[:3]),
        )
    paper.show(table)
    if any(g.before is not None for g in plan.goals):
        paper.show(paper.text(VIOLATIONS, "dim"))
    if paper.wide and any(g.before is not None and g.before.cv is not None for g in plan.goals):
        paper.show(paper.text(SPREAD, "dim"))
    told = []
    for g in plan.goals:  # the words of those that are not simply satisfied
        if g.explanation and (g.status not in ("satisfied", "improved", "skipped") or g.unknown):  # those skipped stand at the end
            counts = COUNTS.match(g.explanation)
            told.append((f"{g.name}: {counts[0]}", g.explanation[counts.end() :]) if counts else ("", f"{g.name}: {g.explanation}"))
    for line in reasons_once(told, "goals"):
        paper.item(plainly(line, labels))


def _brokers(plan: Plan, paper: Paper) -> None:
    """A strip per broker in the goal that it deviates most in."""
    rows = [(b, d) for b in worst_first(plan) if (d := worst_deviation(plan, b)) is not None]
    if not rows:
        return
    shown, rest = rows[:MOST_BROKERS], rows[MOST_BROKERS:]
    paper.heading("Brokers" + (f" (the {len(shown)} worst of {len(rows):,})" if rest else ""))
    labels = goal_labels(plan)
    most = 24 if paper.wide else 14
    heads = ["broker", "rack", "worst in", "before", "after"]
    cells = [
        [str(b.id), paper.clip(b.rack or "-", 10), paper.clip(labels[d.goal], most)]
        + [percent(share, signed=True) for share in (d.before, d.after)]
        for b, d in shown
    ]
    left = [paper.clip(", ".join(labels.get(v, v) for v in b.violates) or "-", 24) for b, _ in shown] if paper.wide else []
    taken = sum(max(len(row[i]) for row in [heads, *cells]) + GAP for i in range(len(heads)))
    taken += max(map(len, [LEFT_HEAD, *left])) + GAP if left else 0
    width = strip_width(console_width=paper.console.width, taken=taken)
    table = paper.table(
        *((head, head not in ("rack", "worst in")) for head in heads),
        (scale(width), False),
        *([(LEFT_HEAD, False)] if left else []),
    )
    for i, (_, d) in enumerate(shown):
        table.add_row(*map(paper.text, cells[i]), strip(d, width, paper), *map(paper.text, left[i : i + 1]))
    paper.show(table)
    paper.show(paper.text(legend(paper), "dim"))
    for b in plan.brokers:
        if b.state != "active" and "replicas" in b.before:
            paper.item(f"broker {b.id} is {b.state}: {b.before['replicas']:,.0f} → {b.after['replicas']:,.0f} replicas")
    if rest:
        out = {b.id for b in standing(plan).out_after}
        inside = sum(b.id not in out for b, _ in rest)
        more = count(len(rest), "more broker")
        paper.paragraph(f"{more}: {inside:,} would be within their target range, {len(rest) - inside:,} outside.")


def _left(plan: Plan, paper: Paper) -> None:
    groups = stay_out(plan)
    if not groups:
        return
    paper.heading("What would stay unbalanced")
    labels = goal_labels(plan)
    told = []
    for violates, why, members in groups[:MOST_BROKERS]:
        said = violates and why.startswith(violates[0])  # the reason names the goal itself
        where = "" if said or not violates else f" in {', '.join(violates)}"
        goals, colon, reason = why.partition(": ") if said and does_one_thing(plan) else ("", "", why)
        told.append((f"{_named(members)}{where}: {goals}{colon}", reason))
    for line in reasons_once(told, "groups of brokers"):
        paper.item(plainly(line, labels))
    if len(groups) > MOST_BROKERS:
        paper.item(f"{count(len(groups) - MOST_BROKERS, 'more reason')}; the JSON form has them all")


def reasons_once(told: Sequence[tuple[str, str]], noun: str) -> Iterator[str]:
    """Lines of what (ends in ``: ``) and why; a reason that three or more in a row share stands once, behind them."""
    for reason, group in groupby(told, key=lambda one: one[1]):
        lines = [what for what, _ in group]
        if len(lines) < REPEATED:
            yield from (f"{what}{reason}" for what in lines)
        else:
            yield from (what.removesuffix(": ") for what in lines)
            yield f"these {len(lines)} {noun}: {reason}"


def _named(members: list[BrokerOutcome]) -> str:
    ids = ", ".join(str(b.id) for b in members[:8])
    more = f" and {len(members) - 8:,} more" if len(members) > 8 else ""
    return f"broker{'' if len(members) == 1 else 's'} {ids}{more}"


def _actions(plan: Plan, found: Survey, paper: Paper) -> None:
    if not found.total:
        return
    which = "" if found.complete else f" (the {len(found.top)} that matter most)"
    paper.heading(f"Actions: {type_words(found.types)}{which}")
    paper.paragraph(" ".join(filter(None, (net_effort(plan), SCORE))), "dim")
    labels = goal_labels(plan)
    for a in found.top:
        for line in _action_lines(a, plan):
            paper.paragraph(line, indent=9)
        paper.paragraph(" " * 7 + one_line(plainly(a.reason, labels)), "dim", indent=7)
    if not found.complete:
        paper.paragraph(f"All {found.total:,} are in the page and in the plan file: --out report.html --out plan.json", "dim")


def _action_lines(a: Action, plan: Plan) -> list[str]:
    cost = "" if plan.storage == "shared" or not any(c.added for c in a.changes) else f", {action_size(a, plan)}"
    head = f"{'#' + str(a.seq):>6} {a.type}, score {a.score:.3f}{cost}: "
    routes = [one_line(f"{partition_name(c)}  {route(c)}") for c in a.changes]
    return [head + routes[0], *(" " * 9 + text for text in routes[1:])]
