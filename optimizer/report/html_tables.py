"""Tables of the HTML report: goals, actions, brokers. Called by `html`.

The page's script makes them sortable and filterable and shows long ones in pages; without it they are
complete and plain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster_model.plain_text import printable
from optimizer.plan import Action, BrokerOutcome, GoalOutcome, GoalState, Plan
from optimizer.reasons import lowered
from optimizer.report.effort import action_size, net_effort
from optimizer.report.json_form import value_text
from optimizer.report.labels import goal_labels, plainly
from optimizer.report.markup import Child, Markup, el, join, trusted
from optimizer.report.standing import worst_first
from optimizer.report.survey import TYPES, Flow, Survey, flows, improved_goals, partition_name, route, touched_brokers, type_words
from optimizer.report.units import count, exact, percent, resource_label, share_in_band, turn

SIGNS = {
    "satisfied": "✓",
    "improved": "↗",
    "unchanged": "=",
    "violated": "✗",
    "infeasible": "✗",
    "skipped": "–",
}
MOOD = {
    "satisfied": "good",
    "improved": "some",
    "unchanged": "plain",
    "violated": "bad",
    "infeasible": "bad",
    "skipped": "plain",
}
MOST_BROKERS = 2000
DETAIL_DIGITS = 6
SPREAD = "Spread: standard deviation over the brokers, as a share of the mean."
VIOLATIONS = "Violations: brokers that do not meet the goal."
SCORE = "Score of an action, the weighted mean over the goals: above 0.5 they would be better met; 0.5 changes nothing."


def goals_table(plan: Plan) -> Markup:
    labels = goal_labels(plan)
    heads = (
        "goal",
        "kind",
        "weight",
        "status",
        "violations",
        "in range",
        "worst deviation",
        "spread",
        "explanation",
    )
    return _wrapped(
        el(
            "table",
            el("caption", f"Goals in the order of the goals file, before and after the plan. {VIOLATIONS} {SPREAD}", class_="quiet"),
            el(
                "thead",
                el(
                    "tr",
                    *(el("th", h, scope="col", class_=None if i in (0, 1, 3, 8) else "num") for i, h in enumerate(heads)),
                ),
            ),
            el("tbody", *(_goal_row(g, labels) for g in plan.goals)),
            class_="goals",
        )
    )


def _goal_row(g: GoalOutcome, labels: Mapping[str, str]) -> Markup:
    b, a = g.before, g.after
    kind = g.kind.replace("_", " ") + (f" of {resource_label(g.resource)}" if g.resource else "")
    status = el("span", f"{SIGNS[g.status]} {g.status}", class_=f"badge {MOOD[g.status]}")
    cells: list[Child] = [
        el("th", labels[g.name], scope="row", title=g.name),
        el("td", kind, class_="quiet"),
        el("td", "hard" if g.hard else f"{g.weight:g}", class_="num"),
        el("td", status),
    ]
    if b is None or a is None:
        cells += [el("td", "–", class_="num")] * 4
    else:
        cells += [
            el("td", _turn(f"{b.violations:,}", f"{a.violations:,}"), class_="num"),
            el(
                "td",
                _turn(share_in_band(b.in_band), share_in_band(a.in_band)),
                _share_bar(b, a),
                class_="num",
            ),
            el("td", _turn(percent(b.max_deviation), percent(a.max_deviation)), class_="num"),
            el("td", _turn(*("–" if x is None else f"{x:.3f}" for x in (b.cv, a.cv))), class_="num"),
        ]
    return el("tr", *cells, el("td", plainly(g.explanation, labels), class_="words"))


def _share_bar(before: GoalState, after: GoalState) -> Markup:
    return el(
        "svg",
        el("rect", x=0, y=0, width=100, height=5, class_="track"),
        el("rect", x=0, y=0, width=100 * after.in_band, height=5, class_="after"),
        el("rect", x=max(100 * before.in_band - 1, 0.0), y=-1, width=2, height=7, class_="meter-mark"),
        viewBox="0 -1 100 7",
        preserveAspectRatio="none",
        class_="share",
        aria_hidden="true",
    )


def actions_section(plan: Plan, found: Survey) -> list[Child]:
    """Counts, filters, the table, and the goal scores of each action as data for the script."""
    if not found.total:
        return [el("p", "The plan is empty: nothing would change.")]
    actions = sorted(found.top, key=lambda a: a.seq)
    goals = [g.name for g in plan.goals if g.before is not None]
    words, told = type_words(found.types), " ".join(filter(None, (net_effort(plan), SCORE)))
    note = f"{count(found.total, 'action')}: {words}. In the order they would be carried out. {told}"
    if not found.complete:
        note = (
            f"{count(found.total, 'action')}: {words}. Listed here are the {len(actions):,} that matter most "
            f"(repairs first, then the highest score); the JSON form of the plan has all of them. {told}"
        )
    heads = (
        ("", None),
        ("#", "number"),
        ("type", "text"),
        ("partition", "text"),
        ("would change", None),
        ("would copy", "number"),
        ("score", "number"),
        ("helps most", "text"),
        ("reason", None),
    )
    labels = goal_labels(plan)
    rank = {name: i for i, name in enumerate(goals)}
    table = el(
        "table",
        el("caption", "Actions of the plan, with their reasons", class_="quiet"),
        el("thead", el("tr", *(_head_cell(h, sort) for h, sort in heads))),
        el("tbody", *(_action_row(a, plan, rank, labels) for a in actions)),
        class_="actions",
        id="action-table",
        data_page="50",
    )
    return [el("p", note), _filters(actions, [labels[g] for g in goals]), _wrapped(table), _scores(actions, goals, labels)]


def _action_row(a: Action, plan: Plan, rank: Mapping[str, int], labels: Mapping[str, str]) -> Markup:
    better = improved_goals(a)
    touched = touched_brokers(a)
    names = join((el("span", partition_name(c)) for c in a.changes), "")
    routes = join((el("span", route(c)) for c in a.changes), "")
    repairs = [el("span", f"repairs {labels.get(r, r).replace('_', ' ')}", class_="badge some") for r in a.repairs]
    moves = any(c.added for c in a.changes) and plan.storage != "shared"
    copied = action_size(a, plan) if moves else "none"
    asked = dict.fromkeys((*better, *a.repairs))
    return el(
        "tr",
        el(
            "td",
            el(
                "button",
                trusted("&#9656;"),
                type="button",
                aria_expanded="false",
                aria_label=f"Goal scores of action {a.seq}",
                class_="more",
                hidden=True,
            ),
        ),
        el("td", f"{a.seq:,}", class_="num", data_v=a.seq),
        el("td", a.type),
        el("td", names, class_="lines"),
        el("td", routes, class_="lines"),
        el("td", copied, class_="num", data_v=a.bytes_to_move, title=f"{a.bytes_to_move:,} bytes"),
        el("td", f"{a.score:.3f}", class_="num", data_v=f"{a.score:.9g}"),
        el("td", labels.get(better[0], better[0]) if better else "–"),
        el("td", join(repairs, " "), " " if repairs else None, plainly(_beside_tags(a), labels), class_="words"),
        data_type=a.type,
        data_goals=" ".join(str(rank[g]) for g in asked if g in rank),
        data_brokers=" ".join(map(str, touched)),
    )


def _beside_tags(a: Action) -> str:
    """The reason without what the tags before it say: which hard goals the action repairs."""
    tagged = {lowered(name) for name in a.repairs}
    return "; ".join(part for part in a.reason.split("; ") if part not in tagged)


def _filters(actions: Sequence[Action], goals: Sequence[str]) -> Markup:
    types = [kind for kind in TYPES if any(a.type == kind for a in actions)]
    brokers = sorted({b for a in actions for b in touched_brokers(a)})
    return el(
        "form",
        el(
            "label",
            "Search",
            el("input", type="search", name="text", placeholder="topic, reason …", autocomplete="off"),
        ),
        _choice("Type", "type", [(t, t) for t in types]),
        _choice("Helps goal", "goal", [(str(i), g) for i, g in enumerate(goals)]),
        _choice("Broker", "broker", [(str(b), str(b)) for b in brokers]),
        el("button", "Clear", type="reset"),
        el("output", aria_live="polite"),
        class_="filters",
        data_for="action-table",
        hidden=True,
    )


def _choice(label: str, name: str, options: Sequence[tuple[str, str]]) -> Markup:
    every = el("option", "any", value="")
    return el(
        "label",
        label,
        el("select", every, *(el("option", text, value=value) for value, text in options), name=name),
    )


def _scores(actions: Sequence[Action], goals: Sequence[str], labels: Mapping[str, str]) -> Markup:
    """``{"goals": [...], "actions": {seq: [[goal, score, [[broker, before, after], ...]], ...]}}``."""
    rows = []
    for a in actions:
        parts = []
        for i, name in enumerate(goals):
            s = a.goal_scores.get(name)
            if s is None:
                continue
            brokers = ",".join(
                f"[{b},{s.before[b]:.{DETAIL_DIGITS}g},{s.after[b]:.{DETAIL_DIGITS}g}]"
                for b in sorted(s.before)
                if b in s.after
            )
            parts.append(f"[{i},{s.score:.{DETAIL_DIGITS}g},[{brokers}]]")
        rows.append(f'"{a.seq}":[{",".join(parts)}]')
    text = f'{{"goals":[{",".join(value_text(printable(labels[g])) for g in goals)}],"actions":{{{",".join(rows)}}}}}'
    return el("script", script_data(text), type="application/json", id="goal-scores")


def script_data(text: str) -> Markup:
    """JSON text that cannot end the script element it stands in."""
    return trusted(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def brokers_table(plan: Plan) -> Markup:
    resources = list(dict.fromkeys(g.resource for g in plan.goals if g.resource and g.before is not None))
    resources += sorted({r for b in plan.brokers for r in b.before} - set(resources))
    moving = flows(plan)
    heads = [("broker", "number"), ("rack", "text"), ("state", "text")]
    heads += [(resource_label(r), "number") for r in resources]
    heads += [("replicas ±", "number"), ("leaders ±", "number"), ("outside in", "text")]
    labels = goal_labels(plan)
    outside = {r: [g.name for g in plan.goals if g.resource == r and g.before is not None] for r in resources}
    rows = []
    for b in worst_first(plan)[:MOST_BROKERS]:
        flow = moving.get(b.id, Flow())
        rows.append(
            el(
                "tr",
                el("th", str(b.id), scope="row", class_="num", data_v=b.id),
                el("td", b.rack or "–"),
                el("td", b.state),
                *(_load_cell(b, r, outside[r], plan) for r in resources),
                _flow_cell(flow.replicas_in, flow.replicas_out),
                _flow_cell(flow.leaders_in, flow.leaders_out),
                el("td", ", ".join(labels.get(v, v) for v in b.violates) or "–", title=plainly(b.why, labels) if b.why else None),
            )
        )
    caption = "Brokers before and after, those that would stay outside first: ▴ above its range or limit, ▾ below it"
    if len(plan.brokers) > MOST_BROKERS:
        caption += f"; the worst {MOST_BROKERS:,} of {len(plan.brokers):,}"
    return _wrapped(
        el(
            "table",
            el("caption", caption, class_="quiet"),
            el("thead", el("tr", *(_head_cell(h, sort) for h, sort in heads))),
            el("tbody", *rows),
            class_="brokers",
            data_page="25",
        )
    )


def _mark(load: float, means: Sequence[float]) -> str:
    """Above or below the mean of the goal that the broker is outside of; a limit has none and is exceeded."""
    return "▾" if means and load < means[0] else "▴"


def _load_cell(b: BrokerOutcome, resource: str, goals: Sequence[str], plan: Plan) -> Markup:
    before, after = b.before.get(resource), b.after.get(resource)
    if before is None or after is None:
        return el("td", "–", class_="num")
    out = [name for name in goals if name in b.violates]
    means = [plan.bands[name][b.id].mean for name in out if b.id in plan.bands.get(name, {})]
    title = f"{exact(before, resource)} → {exact(after, resource)}"
    first, then = turn(before, after, resource)
    loads: list[Child] = [el("span", first, " → ", class_="was load")] if first != then else []
    return el(
        "td",
        *loads,
        el("span", then, f" {_mark(after, means)}" if out else None, class_="load"),
        class_="num bad" if out else "num",
        data_v=f"{after:.9g}",
        title=title,
    )


def _flow_cell(gained: int, lost: int) -> Markup:
    """Gains and losses; sorts by their sum."""
    return el("td", f"+{gained:,} −{lost:,}" if gained or lost else "–", class_="num", data_v=gained + lost)


def _turn(before: str, after: str) -> Child:
    """``before → after``, or one of them where nothing would change."""
    if before == after:
        return after
    return [el("span", before, class_="was"), el("span", " → ", class_="was"), after]


def _head_cell(text: str, sort: str | None) -> Markup:
    kind = "num" if sort == "number" else None
    if not text:
        return el("th", el("span", "details", class_="hidden"), scope="col")
    return el("th", text, scope="col", class_=kind, data_sort=sort)


def _wrapped(table: Markup) -> Markup:
    return el("div", table, class_="scroll", tabindex="0", role="region", aria_label="table, scrolls sideways")
