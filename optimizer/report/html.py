"""The plan as one HTML page: self-contained, no network, light and dark, fit for print.

Called by the command line and the service. This module lays out the page; tables, figures and the drawings
in them have modules of their own, and style and script lie in `assets`. All text of the plan is escaped on
its way in (see `markup`).
"""

from __future__ import annotations

from optimizer.plan import Plan
from optimizer.report.effort import budgets, copied
from optimizer.report.frame import Section, document, facts, tile
from optimizer.report.html_figures import broker_figures, curve_figures
from optimizer.report.html_tables import actions_section, brokers_table, goals_table
from optimizer.report.json_form import value_text
from optimizer.report.labels import goal_labels, plainly
from optimizer.report.markup import Child, Markup, el, join
from optimizer.report.remarks import bounds_sentence, does_one_thing, is_bounded
from optimizer.report.standing import standing, stay_out
from optimizer.report.survey import survey
from optimizer.report.units import count, size
from optimizer.report.verdict import Verdict, verdict
from optimizer.report.written import plan_as_written

MOST_ACTIONS = 2000
MOST_REASONS = 30  # beyond, folded away
SCORES = (
    "Each curve shows the score of a broker by its deviation from its mean: 1 inside the target range, lower outside."
)
TONES = {
    "balanced": "Balanced",
    "good": "Would balance the cluster",
    "partial": "Would improve the cluster",
    "stuck": "Nothing acceptable to do",
    "stopped": "Planning was stopped before it was done",
    "infeasible": "Proven: a hard goal cannot be met",
    "unjudged": "Nothing to judge",
    "unchecked": "Balanced as far as it was checked",
}
EMPTIED = "Proven: a broker cannot be emptied"


def to_html(plan: Plan) -> str:
    """The dry run as one HTML document.

    Notes ----- At most `MOST_ACTIONS` actions are listed, the most important ones (see `survey`), and
    beyond 120 brokers the charts are histograms, so that 150,000 actions on 1,000 brokers stay below 10 MB.
    """
    plan = plan_as_written(plan)
    said = verdict(plan)
    found = survey(plan, MOST_ACTIONS)
    figures = curve_figures(plan)
    sections = [
        Section("goals", "Goals", [goals_table(plan)]),
        Section("load", "Load of the brokers", broker_figures(plan)),
        Section("scores", "Scores", [el("p", SCORES), *figures] if figures else []),
        Section("left", "What would stay unbalanced", _left(plan)),
        Section("actions", "Actions", actions_section(plan, found)),
        Section("brokers", "Brokers", [brokers_table(plan)]),
        Section("skipped", "Skipped, and remarks", _skipped(plan)),
        Section("identity", "Options and identity", [_identity(plan)]),
    ]
    where = (("cluster", plan.cluster_id or "unnamed"), ("as of", plan.taken_at or "unknown"))
    footer = ("A dry run by Trimtab: nothing has changed. Plan ", el("code", plan.plan_id), ".")
    return document("dry run", f"Dry run of {plan.cluster_id or 'a cluster'}", where, _verdict(plan, said), _tiles(plan), sections, footer)


def _verdict(plan: Plan, said: Verdict) -> Markup:
    first = ". ".join(p[:1].upper() + p[1:] for p in (said.situation, said.remedy) if p)
    return el(
        "div",
        el("p", EMPTIED if said.tone == "infeasible" and not plan.infeasible else TONES[said.tone], class_="tone"),
        el("h1", first + "."),
        el("p", said.remainder[:1].upper() + said.remainder[1:] + ".", class_="remainder") if said.remainder else None,
        el("p", said.unchecked[:1].upper() + said.unchecked[1:] + ".", class_="remainder") if said.unchecked else None,
        *(el("p", remark, class_="remark") for remark in said.remarks),
        id="verdict",
        class_=f"verdict {said.tone}",
    )


def _tiles(plan: Plan) -> Markup:
    s, least = plan.summary, plan.lower_bounds
    stands = standing(plan)
    judged = len(stands.judged)
    hard = sum(g.before.violations for g in plan.goals if g.hard and g.before)
    shared = plan.storage == "shared"
    return el(
        "dl",
        tile(
            "Replica moves",
            f"{s.replica_moves:,}",
            *_bound(s.replica_moves, least.replica_moves, f"{least.replica_moves:,}", plan),
        ),
        tile(
            "Data to copy",
            "none" if shared else "unknown" if s.unsized_moves else size(s.bytes_to_move),
            *(
                ["shared storage: moves no data"]
                if shared
                else [copied(plan)]
                if s.unsized_moves
                else _bound(s.bytes_to_move, least.bytes_to_move, size(least.bytes_to_move), plan)
            ),
            title=f"{s.bytes_to_move:,} bytes; lower bound {least.bytes_to_move:,} bytes",
        ),
        tile("Leadership changes", f"{s.leadership_changes:,}", "copy nothing"),
        tile("Partitions touched", f"{s.partitions:,}", f"in {count(s.actions, 'action')}"),
        tile(
            "Brokers in range",
            _shift(judged - len(stands.out_before), judged - len(stands.out_after)),
            f"of {judged:,}",
        ),
        tile(
            "Hard violations",
            _shift(hard, plan.hard_violations_left),
            "none would be left"
            if not plan.hard_violations_left
            else "no placement can fix what remains"
            if plan.infeasible
            else "the plan was stopped before it was done"
            if plan.stopped
            else "the budget ends before"
            if budgets(plan.options)
            else "no allowed move was found for what remains",
        ),
        class_="tiles",
    )


def _shift(before: int, after: int) -> Child:
    if before == after:
        return f"{after:,}"
    return [el("span", f"{before:,}", class_="was"), el("span", " → ", class_="was"), f"{after:,}"]


def _bound(used: float, least: float, text: str, plan: Plan) -> list[Child]:
    """The lower bound beside what is used, with a meter whose mark is the bound."""
    if does_one_thing(plan) or not (plan.summary.actions or least) or used < least:  # less is done than the bound is of
        return []
    note = f"lower bound {text}"
    mark = 100.0 * least / used if used > 0 else None
    if mark is None:
        return [note]
    meter = el(
        "svg",
        el("rect", x=0, y=2, width=100, height=4, class_="meter-used"),
        el("rect", x=0, y=2, width=mark, height=4, class_="meter-least"),
        el("rect", x=max(mark - 0.6, 0.0), y=0, width=1.2, height=8, class_="meter-mark"),
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        role="img",
        class_="meter",
        aria_label=f"the lower bound is {mark:.0f} percent of what the plan would use",
    )
    return [meter, note]


def _left(plan: Plan) -> list[Child]:
    """Goals that would not be met and brokers that would stay out, with the reasons."""
    goals = [g for g in plan.goals if g.hard and g.status in ("infeasible", "violated")]
    labels = goal_labels(plan)
    items: list[Child] = [
        el(
            "li",
            el("b", f"Hard goal {labels[g.name]}"),
            " ",
            el("span", g.status, class_="badge bad"),
            el("p", plainly(g.explanation, labels)),
        )
        for g in goals
    ]
    for violates, why, members in stay_out(plan):
        ids = ", ".join(str(b.id) for b in members)
        badges = [el("span", labels.get(name, name), class_="badge", title=name) for name in violates]
        items.append(
            el(
                "li",
                el("b", f"Broker{'' if len(members) == 1 else 's'} {ids}"),
                " ",
                join(badges, " "),
                el("p", plainly(why, labels)),
            )
        )
    if not items:
        return []
    parts: list[Child] = [el("ul", *items[:MOST_REASONS], class_="left")]
    if len(items) > MOST_REASONS:
        rest = items[MOST_REASONS:]
        parts.append(el("details", el("summary", f"{len(rest):,} more"), el("ul", *rest, class_="left")))
    return parts


def _skipped(plan: Plan) -> list[Child]:
    labels = goal_labels(plan)
    items = [el("li", el("b", plainly(s.what, labels)), ": ", plainly(s.reason, labels)) for s in plan.skipped]
    items += [el("li", plainly(note, labels)) for note in plan.notes]
    return [el("ul", *items)] if items else []


def _identity(plan: Plan) -> Markup:
    rows: list[tuple[str, Child]] = [
        ("Plan", el("code", plan.plan_id)),
        ("Snapshot", el("code", plan.snapshot_digest)),
        ("Goals", el("code", plan.goals_digest)),
        ("Cluster", plan.cluster_id),
        ("Taken at", plan.taken_at),
        ("Storage", plan.storage),
    ]
    rows += [(name.replace("_", " "), el("code", value_text(value))) for name, value in plan.options.items()]
    if is_bounded(plan):
        rows.append(("Lower bounds", bounds_sentence(plan)))
    return facts(rows)
