"""The plan as Markdown, for a pull request or a chat.

Called by the command line. Short tables: all goals, the brokers that matter, the actions that matter. User
text is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from cluster_model.plain_text import one_line
from optimizer.plan import Action, BrokerOutcome, GoalOutcome, Plan
from optimizer.report.effort import action_size, net_effort
from optimizer.report.labels import goal_labels, plainly
from optimizer.report.remarks import bounds_sentence, is_bounded
from optimizer.report.standing import worst_first
from optimizer.report.survey import flows, partition_name, route, survey, type_words
from optimizer.report.units import percent, share_in_band, turn
from optimizer.report.verdict import verdict
from optimizer.report.written import plan_as_written

MOST_BROKERS = 20
MOST_ACTIONS = 20
SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#&@$!])")
STATUS_SIGN = {
    "satisfied": "✓",
    "improved": "↗",
    "unchanged": "=",
    "violated": "✗",
    "infeasible": "✗",
    "skipped": "–",
}


def to_markdown(plan: Plan) -> str:
    """The dry run as a Markdown document; ends with a line feed."""
    plan = plan_as_written(plan)
    v = verdict(plan)
    blocks = ["## Trimtab dry run", f"**{escaped(v.sentence)}**"]
    remarks = [r for r in v.remarks if r != bounds_sentence(plan)]
    if remarks:
        blocks.append("\n".join(f"- {escaped(r)}" for r in remarks))
    blocks += [
        "### Goals",
        _goals(plan.goals, goal_labels(plan)),
        "Violations: brokers that do not meet the goal.",
        f"### Brokers{_of(MOST_BROKERS, len(plan.brokers), 'brokers')}",
        _brokers(plan),
    ]
    found = survey(plan, MOST_ACTIONS)
    blocks.append(f"### Actions{_of(MOST_ACTIONS, found.total, 'actions')}")
    if found.total:
        blocks += [f"{type_words(found.types)}. {net_effort(plan)}".rstrip(), _actions(found.top, plan)]
        blocks += ["### Lower bounds", escaped(bounds_sentence(plan))] if is_bounded(plan) else []
    else:
        blocks.append("The plan is empty: nothing would change.")
    blocks += _skipped(plan)
    blocks.append(
        f"Plan `{_code(plan.plan_id)}` for cluster {escaped(plan.cluster_id)} "
        f"as of {escaped(plan.taken_at)}. A dry run: nothing has changed."
    )
    return "\n\n".join(blocks) + "\n"


def escaped(text: str) -> str:
    """User text that Markdown shows as it is, on one line."""
    return SPECIAL.sub(r"\\\1", one_line(text))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[int] = ()) -> str:
    """A pipe table; cells are escaped already, columns in `numeric` are aligned right."""
    rule = ["---:" if i in numeric else "---" for i in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def _goals(goals: Iterable[GoalOutcome], labels: Mapping[str, str]) -> str:
    rows = []
    for g in goals:
        b, a = g.before, g.after
        weight = "hard" if g.hard else f"{g.weight:g}"
        if b is None or a is None:
            rows.append(
                (
                    escaped(labels[g.name]),
                    weight,
                    f"{STATUS_SIGN[g.status]} {g.status}",
                    "–",
                    "–",
                    "–",
                    escaped(plainly(g.explanation, labels)),
                )
            )
            continue
        rows.append(
            (
                escaped(labels[g.name]),
                weight,
                f"{STATUS_SIGN[g.status]} {g.status}",
                f"{b.violations:,} → {a.violations:,}",
                f"{share_in_band(b.in_band)} → {share_in_band(a.in_band)}",
                "–" if b.max_deviation is None else f"{percent(b.max_deviation)} → {percent(a.max_deviation)}",
                escaped(plainly(g.explanation, labels)),
            )
        )
    head = ("goal", "weight", "status", "violations", "in range", "worst deviation", "explanation")
    return table(head, rows, numeric=(3, 4, 5))


def _brokers(plan: Plan) -> str:
    resources = list(dict.fromkeys(g.resource for g in plan.goals if g.resource and g.before))
    moving, labels = flows(plan), goal_labels(plan)
    rows = []
    for b in worst_first(plan)[:MOST_BROKERS]:
        loads = [_load(b, r) for r in resources]
        flow = moving.get(b.id)
        net = "–" if flow is None else f"+{flow.replicas_in:,} / −{flow.replicas_out:,}"
        state = "" if b.state == "active" else f" ({escaped(b.state)})"
        left = ", ".join(escaped(labels.get(name, name)) for name in b.violates)
        reason = escaped(plainly(b.why or "", labels))
        why = f"{left}: {reason}" if left and reason else reason or left or "–"
        rows.append((f"{b.id}{state}", escaped(b.rack or "–"), *loads, net, why))
    head = (
        "broker",
        "rack",
        *(escaped(r.replace("_", " ")) for r in resources),
        "replicas in / out",
        "would stay outside",
    )
    return table(head, rows, numeric=range(2, len(resources) + 3))


def _load(b: BrokerOutcome, resource: str) -> str:
    before, after = b.before.get(resource), b.after.get(resource)
    if before is None or after is None:
        return "–"
    first, then = turn(before, after, resource)
    return then if first == then else f"{first} → {then}"


def _actions(actions: Iterable[Action], plan: Plan) -> str:
    rows = []
    labels = goal_labels(plan)
    for a in actions:
        what = "; ".join(f"`{_code(partition_name(c))}` {route(c)}" for c in a.changes)
        moves = any(c.added for c in a.changes) and plan.storage != "shared"
        cost = action_size(a, plan) if moves else "–"
        rows.append((f"{a.seq:,}", a.type, what, cost, f"{a.score:.3f}", escaped(plainly(a.reason, labels))))
    return table(("#", "type", "would change", "would copy", "score", "reason"), rows, numeric=(0, 3, 4))


def _skipped(plan: Plan) -> list[str]:
    labels = goal_labels(plan)
    told = [f"{s.what}: {s.reason}" for s in plan.skipped] + list(plan.notes)
    lines = [f"- {escaped(plainly(line, labels))}" for line in told]
    return ["### Skipped, and remarks", "\n".join(lines)] if lines else []


def _code(text: str) -> str:
    return one_line(text).replace("`", "'").replace("|", "\\|")


def _of(most: int, total: int, noun: str) -> str:
    return f" (the {most} that matter most of {total:,} {noun})" if total > most else ""
