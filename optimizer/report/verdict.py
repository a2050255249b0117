"""The sentences that sum up a plan: how the cluster stands, what the plan would do, what remains, what was not checked.

Called by every report a person reads, so that all of them say the same. A plan changes nothing, so nothing is told as done.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from optimizer.plan import BrokerOutcome, GoalOutcome, Plan
from optimizer.report.effort import budgets, copied, making
from optimizer.report.labels import goal_labels, plainly
from optimizer.report.remarks import remarks_on, spelled, upper, without_factor
from optimizer.report.standing import Standing, standing, violations
from optimizer.report.units import count, listing, resource_label

MOST_GOALS = 3  # named in a row
LONGEST_REASON = 160  # characters of a reason in the verdict, as far as its clauses allow
COUNTS = re.compile(r"^[\d,]+ would remain, [\d,]+ before \(.*?\): ")
LIMITS = ("capacity", "count_limit")
Tone = Literal["balanced", "good", "partial", "stuck", "stopped", "infeasible", "unjudged", "unchecked"]


@dataclass(frozen=True)
class Verdict:
    """`situation`, `remedy`, `remainder` and `unchecked` make the sentences; `remarks` follow them."""

    tone: Tone
    situation: str
    remedy: str
    remainder: str
    unchecked: str
    remarks: tuple[str, ...]

    @property
    def sentence(self) -> str:
        return " ".join(_stop(upper(_bare(p))) for p in (self.situation, self.remedy, self.remainder, self.unchecked) if p)


def verdict(plan: Plan) -> Verdict:
    """See the module."""
    s = standing(plan)
    if plan.options.get("replication_factor"):
        return _of_factors(plan)
    policy = plan.options.get("policy")
    if isinstance(policy, Mapping) and policy.get("demotes"):
        return _of_demotion(plan, set(policy["demotes"]))
    labels = goal_labels(plan)
    return Verdict(
        _tone(plan, s),
        plainly(_situation(plan, s), labels),
        plainly(_remedy(plan, s), labels),
        plainly(_remainder(plan, s), labels),
        plainly(_unchecked(plan), labels),
        tuple(plainly(remark, labels) for remark in remarks_on(plan)),
    )


def _of_factors(plan: Plan) -> Verdict:
    """Of a plan that changes replication factors: it is not judged by how balanced the cluster is."""
    added, before = plan.summary.replica_moves, sum(len(c.replicas_before) for c in plan.proposals)
    removed = before + added - sum(len(c.replicas_after) for c in plan.proposals)
    asked = plan.options["replication_factor"]
    factors = listing([f"{spelled(factor)} for {glob}" for glob, factor in asked.items()]) if isinstance(asked, Mapping) else ""
    left = without_factor(plan)
    parts = [f"adding {count(added, 'replica')} ({copied(plan)})"] if added else []
    parts += [f"removing {count(removed, 'replica')}"] if removed else []
    changed = count(plan.summary.partitions, "partition")
    wanted = {factor for factor in asked.values() if isinstance(factor, int)} if isinstance(asked, Mapping) else set()
    aim = count(wanted.pop(), "replica") if len(wanted) == 1 else "the factors asked for"
    remedy = f"{listing(parts)} brings {changed} to {aim}" if parts else "the plan is empty and nothing would change"
    remainder = f"{left[0].what} would stay unchanged: {left[0].reason}" if left else ""
    if len(left) > 1:
        remainder += f" ({len(left) - 1} more of these below)"
    unmet = "; ".join(_unmet_goals(plan))
    tone: Tone = "partial" if left else "good" if parts else "balanced"
    situation = f"Replication factor {factors}"
    return Verdict(tone, situation, remedy, "; ".join(filter(None, (remainder, unmet))), _unchecked(plan), tuple(remarks_on(plan)))


def _of_demotion(plan: Plan, ids: set[int]) -> Verdict:
    """Of a plan that takes leaderships off the brokers `ids`: neither is it judged by how balanced the cluster is."""
    brokers = [b for b in plan.brokers if b.id in ids]
    led = round(sum(b.before.get("leaders", 0) for b in brokers))
    moved, its = plan.summary.leadership_changes, "its" if len(brokers) == 1 else "their"
    situation = f"{_named(brokers)} {'is' if len(brokers) == 1 else 'are'} to give up {its} {count(led, 'leadership')}"
    copies = "copies" if moved == 1 else "copy"
    remedy = f"the plan makes {count(moved, 'leadership change')}, which {copies} nothing"
    remedy = remedy if moved else "the plan is empty and nothing would change"
    left = f"{led - moved:,} would stay, and the remarks say why" if led > moved else ""
    unmet = _unmet_goals(plan)
    tone: Tone = "partial" if left or unmet else "good" if moved else "balanced"
    return Verdict(tone, situation, remedy, "; ".join(filter(None, (left, *unmet))), _unchecked(plan), tuple(remarks_on(plan)))


def _left(s: Standing) -> bool:
    return bool(s.out_after or s.stuck or any(violations(g)[1] for g in s.limits))


def _tone(plan: Plan, s: Standing) -> Tone:
    left = _left(s)
    if plan.stopped and left:
        return "stopped"
    if plan.infeasible or plan.cannot_be_emptied:
        return "infeasible"
    if plan.summary.actions:
        return "partial" if left else "good"
    if all(g.status == "skipped" for g in plan.goals) or not s.replicas:
        return "unjudged"
    if left:
        return "stuck"
    return "unchecked" if any(g.hard and g.unchecked for g in plan.goals) else "balanced"


def _situation(plan: Plan, s: Standing) -> str:
    judged = [g for g in plan.goals if g.status != "skipped"]
    if not judged:
        return "No goal could be judged: " + (
            "there are no goals" if not plan.goals
            else "the only goal is skipped" if len(plan.goals) == 1
            else f"all {count(len(plan.goals), 'goal')} are skipped"
        )
    if not s.replicas:
        return "Nothing to judge: the cluster has no replicas"
    clauses = []
    if s.out_before:
        its = "its" if len(s.out_before) == 1 else "their"
        clauses.append(f"{_part(len(s.out_before), len(s.judged))} outside {its} target range")
    clauses += _exceeded(s)
    led = _leaders_given(plan)
    if led:
        clauses.append(f"{count(led, 'partition')} {'has' if led == 1 else 'have'} no leader")
    for state in ("dead", "draining"):
        brokers = [b for b in s.leaving if b.state == state]
        if brokers:
            replicas = count(round(sum(b.before["replicas"] for b in brokers)), "replica")
            clauses.append(f"{_named(brokers)} {'is' if len(brokers) == 1 else 'are'} {state} with {replicas}")
    if clauses:
        lead = "Unbalanced: " if s.out_before or s.limits else ""
        return lead + (clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])} and {clauses[-1]}")
    if not s.judged:
        return "No broker is active"
    goals = {1: "the only goal", 2: "both goals"}.get(len(judged), f"all {count(len(judged), 'goal')}")
    which = "that could be checked" if any(g.hard and g.unchecked for g in plan.goals) else ""
    lead = "Balanced: " if not which else ""
    return f"{lead}{_part(len(s.judged), len(s.judged))} within {goals} {which}".rstrip()


def _exceeded(s: Standing) -> list[str]:
    """``13 hard limits are exceeded (disk on broker 2, cpu on 12 brokers)``, and partitions that crowd racks."""
    clauses = []
    for hard in (True, False):
        broken = [g for g in s.limits if g.kind in LIMITS and g.hard == hard and violations(g)[0]]
        if broken:
            total = sum(violations(g)[0] for g in broken)
            where = [f"{resource_label(g.resource or g.name)} on {_beyond(s, g)}" for g in broken]
            limits = count(total, f"{'hard' if hard else 'soft'} limit")
            named = ", ".join(where[:MOST_GOALS]) + (", …" if len(where) > MOST_GOALS else "")
            clauses.append(f"{limits} {'is' if total == 1 else 'are'} exceeded ({named})")
    for g in s.limits:
        if g.kind not in LIMITS and violations(g)[0]:
            clauses.append(_crowded(g, violations(g)[0], g.before.misplaced if g.before else None))
    return clauses


def _beyond(s: Standing, g: GoalOutcome) -> str:
    """Brokers beyond the limit of `g`: their ids where they are few."""
    brokers = [b for b in s.judged if b.scores_before.get(g.name, 1.0) < 1.0]
    number = violations(g)[0]
    return _named(brokers) if len(brokers) == number <= MOST_GOALS else count(number, "broker")


def _crowded(g: GoalOutcome, brokers: int, partitions: int | None) -> str:
    if partitions:
        return f"{count(partitions, 'partition')} {'has' if partitions == 1 else 'have'} too many replicas in a rack"
    return f"{count(brokers, 'broker')} {'violates' if brokers == 1 else 'violate'} {g.name}"


def _remedy(plan: Plan, s: Standing) -> str:
    limits = budgets(plan.options)
    within = f"within the budget of at most {listing(limits)}, " if limits else ""
    within = "planning was stopped before it was done: " + within if plan.stopped else within
    if not plan.summary.actions:
        if not _left(s):
            return "the plan is empty and nothing would change"
        if plan.stopped:
            return "planning was stopped before anything was found, so the plan is empty"
        return f"{within}no allowed move would noticeably improve the balance, so the plan is empty"
    moving = making(plan) or count(plan.summary.actions, "action")
    led = _leaders_given(plan)
    if not _left(s) and (s.out_before or s.limits or s.leaving):
        return f"{within}{moving} fixes all of it"
    aims = []
    if s.out_before:
        aims.append(_aim_of_bands(s))
    aims += _aims_of_limits(s)
    emptied = [b for b in s.leaving if b not in s.stuck]
    if emptied:
        aims.append(f"empties {_named(emptied)}")
    lighter = [b for b in s.stuck if b.after["replicas"] < b.before["replicas"]]
    if lighter:
        taken = round(sum(b.before["replicas"] - b.after["replicas"] for b in lighter))
        aims.append(f"takes {count(taken, 'replica')} off {_named(lighter)}")
    if led:
        aims.append(f"gives {count(led, 'partition')} a leader")
    return f"{within}{moving} {listing(aims, most=len(aims)) or 'brings loads closer to their means'}"


def _leaders_given(plan: Plan) -> int:
    """Partitions that have no leader and would get one."""
    before = sum(b.before.get("leaders", 0) for b in plan.brokers)
    after = sum(b.after.get("leaders", 0) for b in plan.brokers)
    if after <= before:  # as nearly always; spares a walk over perhaps 100,000 proposals
        return 0
    return sum(c.leader_before is None and c.leader_after is not None for c in plan.proposals)


def _aims_of_limits(s: Standing) -> list[str]:
    """How many exceeded limits a plan ends, and how many partitions it spreads over racks."""
    aims = []
    limits = [violations(g) for g in s.limits if g.kind in LIMITS]
    total, ended = sum(b for b, _ in limits), sum(max(b - a, 0) for b, a in limits)
    if ended:
        aims.append(f"ends {_of(ended, total, 'exceeded limit')}")
    for g in s.limits:
        if g.kind in LIMITS or g.before is None or g.after is None:
            continue
        before, after = g.before.misplaced, g.after.misplaced
        if before and after is not None and after < before:
            aims.append(f"spreads {_of(before - after, before, 'partition')} over racks")
        elif not before and violations(g)[1] < violations(g)[0]:
            aims.append(f"brings {_of(violations(g)[0] - violations(g)[1], violations(g)[0], 'broker')} within {g.name}")
    return aims


def _of(some: int, every: int, noun: str) -> str:
    """``2 of 3 brokers``, ``all 3 brokers``, ``1 broker``."""
    if some < every:
        return f"{some:,} of {count(every, noun)}"
    return count(every, noun) if every == 1 else f"both {noun}s" if every == 2 else f"all {count(every, noun)}"


def _aim_of_bands(s: Standing) -> str:
    if not s.out_after:
        return f"brings {'it into its' if len(s.out_before) == 1 else 'all of them into their'} target range"
    if not s.mended:
        return f"brings {'it' if len(s.out_before) == 1 else 'them'} closer"
    total = (
        f" ({len(s.judged) - len(s.out_after):,} of {len(s.judged):,} in all)" if len(s.out_before) < len(s.judged) else ""
    )
    return f"brings {s.mended:,} of them into {'its' if s.mended == 1 else 'their'} target range{total}"


def _part(some: int, every: int) -> str:
    """``12 of 12 brokers are``, ``1 of 12 brokers is``."""
    return f"{some:,} of {count(every, 'broker')} {'is' if some == 1 else 'are'}"


def _remainder(plan: Plan, s: Standing) -> str:
    clauses = _unmet_goals(plan)
    unmet = bool(clauses)  # with a reason, beside which others are details
    clauses += [
        f"{count(violations(g)[1], 'violation')} of {g.name} would remain" for g in s.limits if violations(g)[1] and not g.hard
    ]
    told = " ".join(clauses)
    left = list(s.out_after)
    if left:
        text = f"{_named(left)} would stay outside {'its' if len(left) == 1 else 'their'} target range"
        explained = next((b for b in left if b.why and not plan.stopped and not unmet), None)
        why = _first_reason(plan, explained.why or "", told) if explained is not None else ""
        if explained is not None and why:
            text += f": {why}" if len(left) == 1 else f" (broker {explained.id}: {why})"
        clauses.append(text)
    if s.stuck:
        held = count(round(sum(b.after["replicas"] for b in s.stuck)), "replica")
        text = f"{_named(list(s.stuck))} would still host {held}"
        first = s.stuck[0]
        if first.why:
            why = _brief(first.why.partition(": ")[2] or first.why)
            if why not in " ".join(clauses):
                text += f": {why}" if len(s.stuck) == 1 else f" (broker {first.id}: {why})"
        clauses.append(text)
    return "; ".join(clauses)


def _unmet_goals(plan: Plan) -> list[str]:
    """Hard goals that would not hold, those of one kind together, with the reason of the first."""
    clauses = []
    for status, how in (("infeasible", "cannot be met"), ("violated", "would stay violated")):
        unmet = [g for g in plan.goals if g.hard and g.status == status]
        if unmet:
            names = listing([g.name for g in unmet], most=MOST_GOALS)
            text = f"hard goal{'' if len(unmet) == 1 else 's'} {names} {how}"
            why = "" if plan.stopped else _brief(COUNTS.sub("", unmet[0].explanation))
            of = f"{unmet[0].name}: " if len(unmet) > 1 else ""
            clauses.append(f"{text} ({of}{why})" if why and of else f"{text}: {why}" if why else text)
    return clauses


def _unchecked(plan: Plan) -> str:
    """Hard goals that nothing was known of, and those that were judged by some of the partitions only."""
    skipped = [g for g in plan.goals if g.hard and g.status == "skipped"]
    partly = [g for g in plan.goals if g.hard and g.status != "skipped" and g.unknown]
    clauses = []
    if skipped:
        names = listing([g.name for g in skipped], most=MOST_GOALS)
        why = _bare(skipped[0].explanation.removeprefix("skipped: "))
        of = f"{skipped[0].name}: " if len(skipped) > 1 else ""
        clauses.append(f"{count(len(skipped), 'hard goal')} {'is' if len(skipped) == 1 else 'are'} not checked: {names} ({of}{why})")
    if partly:
        names = listing([g.name for g in partly], most=MOST_GOALS)
        clauses.append(f"{names} judged without {count(max(g.unknown for g in partly), 'partition')} whose load is unknown")
    return "; ".join(clauses)


def _first_reason(plan: Plan, why: str, told: str) -> str:
    """The first reason of a broker's, each of which may start with the goals it is for, that `told` has not given already."""
    names = tuple(g.name for g in plan.goals)
    reasons: list[str] = []
    for clause in _bare(why).split("; "):
        if reasons and not clause.startswith(names):
            reasons[-1] += f"; {clause}"
        else:
            reasons.append(clause)
    fresh = [r for r in reasons if not told or r.partition("; ")[0].partition(": ")[2] not in told]
    text = _brief(fresh[0]) if fresh else ""
    return text + ("; …" if len(fresh) > 1 and not text.endswith("…") else "")


def _brief(why: str) -> str:
    """A reason as far as its clauses fit; of a first clause that is too long, what stands before its last colon."""
    text, *clauses = _bare(why).split("; ")
    if len(text) > LONGEST_REASON and ": " in text:
        return text.rpartition(": ")[0] + "; …"
    for clause in clauses:
        if len(text) + len(clause) > LONGEST_REASON:
            return text + "; …"
        text += f"; {clause}"
    return text


def _named(brokers: list[BrokerOutcome]) -> str:
    ids = [str(b.id) for b in brokers]
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {listing(ids)}"


def _bare(text: str) -> str:
    return text.strip().rstrip(".;")


def _stop(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else text + "."
