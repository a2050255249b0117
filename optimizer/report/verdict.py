"""What a plan comes to, in one sentence and a few more.

Called by every report a person reads, so that all of them say the same. Conditional mood: a plan changes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from optimizer.plan import BrokerOutcome, Plan
from optimizer.report.standing import Standing, standing, violations
from optimizer.report.units import count, listing, ratio, size

MOST_NAMED = 2  # limits with violations; of more, only the number is told
MOST_GOALS = 3  # named in a row
LONGEST_REASON = 160  # characters of a reason in the verdict, as far as its clauses allow
COUNTS = re.compile(r"^[\d,]+ would be left out, [\d,]+ before \(.*?\): ")
Tone = Literal["balanced", "good", "partial", "stuck", "stopped", "infeasible", "unjudged"]


@dataclass(frozen=True)
class Verdict:
    """`situation` and `remedy` (with what would remain) make the sentence; `remarks` follow it."""

    tone: Tone
    situation: str
    remedy: str
    remainder: str
    remarks: tuple[str, ...]

    @property
    def sentence(self) -> str:
        parts = [self.situation, self.remedy, self.remainder]
        return _stop("; ".join(_bare(p) for p in parts if p))


def verdict(plan: Plan) -> Verdict:
    """See the module."""
    s = standing(plan)
    return Verdict(_tone(plan, s), _situation(plan, s), _remedy(plan, s), _remainder(plan, s), tuple(_remarks(plan)))


def budgets(options: Mapping[str, object]) -> list[str]:
    """The budgets that were set: ``50 replica moves``."""
    words = []
    for key, noun in (("max_moves", "replica move"), ("max_partitions", "partition")):
        limit = options.get(key)
        if isinstance(limit, int):
            words.append(count(limit, noun))
    limit = options.get("max_bytes")
    if isinstance(limit, int):
        words.append(size(limit))
    return words


def effort(plan: Plan) -> str:
    """``118 replica moves (41.2 GB) and 12 leadership changes``."""
    s = plan.summary
    words = []
    if s.replica_moves:
        cost = "shared storage: moves no data" if plan.storage == "shared" else size(s.bytes_to_move)
        words.append(f"{count(s.replica_moves, 'replica move')} ({cost})")
    if s.leadership_changes:
        words.append(count(s.leadership_changes, "leadership change"))
    return " and ".join(words) or count(s.actions, "action")


def _tone(plan: Plan, s: Standing) -> Tone:
    left = s.out_after or s.stuck or any(violations(g)[1] for g in s.limits)
    if plan.stopped and left:
        return "stopped"
    if plan.infeasible:
        return "infeasible"
    if all(g.status == "skipped" for g in plan.goals) and not plan.summary.actions:
        return "unjudged"
    if not plan.summary.actions:
        return "stuck" if left else "balanced"
    return "partial" if left else "good"


def _situation(plan: Plan, s: Standing) -> str:
    counted = [g for g in plan.goals if g.status != "skipped"]
    if not counted:
        return "No goal could be judged: " + (
            f"all {count(len(plan.goals), 'goal')} are skipped" if plan.goals else "there are no goals"
        )
    clauses = []
    if s.out_before:
        where = s.goals_out[0] if len(s.goals_out) == 1 else count(len(s.goals_out), "goal")
        clauses.append(f"{_part(len(s.out_before), len(s.judged))} out of band in {where}")
    broken = [g for g in s.limits if violations(g)[0]]
    if len(broken) > MOST_NAMED:
        total = sum(violations(g)[0] for g in broken)
        clauses.append(f"{count(len(broken), 'further goal')} have {count(total, 'violation')}")
    else:
        clauses += [f"{g.name} has {count(violations(g)[0], 'violation')}" for g in broken]
    for state in ("dead", "draining"):
        brokers = [b for b in s.leaving if b.state == state]
        if brokers:
            replicas = count(round(sum(b.before["replicas"] for b in brokers)), "replica")
            clauses.append(f"{_named(brokers)} {'is' if len(brokers) == 1 else 'are'} {state} with {replicas}")
    if clauses:
        return _capital(listing(clauses, most=len(clauses)))
    if not s.judged:
        return "No broker is active"
    goals = "the only goal" if len(counted) == 1 else f"all {count(len(counted), 'goal')}"
    return f"{_part(len(s.judged), len(s.judged))} in band in {goals}"


def _remedy(plan: Plan, s: Standing) -> str:
    limits = budgets(plan.options)
    within = f"within the budget of at most {listing(limits)}, " if limits else ""
    within = "planning was stopped before it was done: " + within if plan.stopped else within
    if not plan.summary.actions:
        if _tone(plan, s) in ("balanced", "unjudged"):
            return "the plan is empty and nothing would change"
        if plan.stopped:
            return "planning was stopped before anything was found, so the plan is empty"
        return f"{within}nothing acceptable would bring the cluster clearly closer, so the plan is empty"
    aims = []
    if s.out_before:
        aims.append(_aim_of_bands(s))
    aims += _aims_of_limits(s)
    emptied = [b for b in s.leaving if b not in s.stuck]
    if emptied:
        aims.append(f"empty {_named(emptied)}")
    lighter = [b for b in s.stuck if b.after["replicas"] < b.before["replicas"]]
    if lighter:
        taken = round(sum(b.before["replicas"] - b.after["replicas"] for b in lighter))
        aims.append(f"take {count(taken, 'replica')} off {_named(lighter)}")
    led = _leaders_given(plan)
    if led:
        aims.append(f"give {count(led, 'partition')} a leader")
    return f"{within}{effort(plan)} would {listing(aims, most=len(aims)) or 'bring loads closer to their means'}"


def _leaders_given(plan: Plan) -> int:
    """Partitions that have no leader and would get one."""
    before = sum(b.before.get("leaders", 0) for b in plan.brokers)
    after = sum(b.after.get("leaders", 0) for b in plan.brokers)
    if after <= before:  # as nearly always; spares a walk over perhaps 100,000 proposals
        return 0
    return sum(c.leader_before is None and c.leader_after is not None for c in plan.proposals)


def _aims_of_limits(s: Standing) -> list[str]:
    broken = [g for g in s.limits if violations(g)[0]]
    if len(broken) > MOST_NAMED:
        total = sum(violations(g)[0] for g in broken)
        ended = total - sum(violations(g)[1] for g in broken)
        return [f"end {'all' if ended == total else f'{ended:,} of the'} {total:,} violations"] if ended > 0 else []
    aims = []
    for g in broken:
        before, after = violations(g)
        if after < before:
            aims.append(f"end {f'{before - after:,} of the violations' if after else 'every violation'} of {g.name}")
    return aims


def _aim_of_bands(s: Standing) -> str:
    it = "it" if len(s.out_before) == 1 else "them"
    if not s.out_after:
        return "bring it into band" if it == "it" else "bring all of them into band"
    if not s.mended:
        return f"bring {it} closer"
    total = (
        f" ({len(s.judged) - len(s.out_after):,} of {len(s.judged):,} in all)" if len(s.out_before) < len(s.judged) else ""
    )
    return f"bring {s.mended:,} of them into band{total}"


def _part(some: int, every: int) -> str:
    """``All 12 brokers are``, ``3 of 12 brokers are``, ``The only broker is``."""
    if some == every:
        return "The only broker is" if every == 1 else f"All {count(every, 'broker')} are"
    return f"{some:,} of {count(every, 'broker')} {'is' if some == 1 else 'are'}"


def _remainder(plan: Plan, s: Standing) -> str:
    clauses = _unmet_goals(plan)
    clauses += [
        f"{count(violations(g)[1], 'violation')} of {g.name} would stay" for g in s.limits if violations(g)[1] and not g.hard
    ]
    told = " ".join(clauses)
    left = list(s.out_after)
    if left:
        text = f"{_named(left)} would stay out"
        explained = next((b for b in left if b.why and not plan.stopped), None)
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


def _first_reason(plan: Plan, why: str, told: str) -> str:
    """The first reason of a broker's, each of which may begin with the goals it is for, that `told` has not given already."""
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
    """A reason as far as its clauses fit."""
    text, *clauses = _bare(why).split("; ")
    for clause in clauses:
        if len(text) + len(clause) > LONGEST_REASON:
            return text + "; …"
        text += f"; {clause}"
    return text


def _remarks(plan: Plan) -> list[str]:
    remarks = []
    if plan.summary.actions:
        remarks.append(bounds_sentence(plan))
    if plan.options.get("acceptance") == "potential":
        remarks.append(
            "Acceptance is by potential: every action would lower the global potential, but its own combined "
            "score may be 0.5 or below."
        )
    imagined = what_ifs(plan.options)
    if imagined:
        remarks.append("What-if: " + "; ".join(imagined) + ".")
    if plan.storage == "shared":
        remarks.append("Storage is shared: a reassignment moves no data.")
    return remarks


def bounds_sentence(plan: Plan) -> str:
    """Lower bounds beside what the plan uses."""
    used, least = plan.summary, plan.lower_bounds
    bound, use = count(least.replica_moves, "replica move"), f"{used.replica_moves:,}"
    use += _times(used.replica_moves, least.replica_moves)
    if plan.storage != "shared":
        bound += f" or {size(least.bytes_to_move)}"
        use += f" and {size(used.bytes_to_move)}{_times(used.bytes_to_move, least.bytes_to_move)}"
    if used.replica_moves < least.replica_moves or used.bytes_to_move < least.bytes_to_move:
        short = (
            "planning was stopped" if plan.stopped else "the budget ends before" if budgets(plan.options) else "not all of it can be done"
        )
        return f"Lower bound: to bring every reducible broker into band would take {bound}; this plan would use {use}, since {short}."
    least_words = f"no plan that brings every reducible broker into band could use fewer than {bound}"
    return f"Lower bound: {least_words}; this one would use {use}."


def what_ifs(options: Mapping[str, object]) -> list[str]:
    """The what-ifs among the options, spelt out: ``add broker 13 (rack a)``."""
    words = []
    for key, phrase in (
        ("add_brokers", "with broker {} added"),
        ("remove_brokers", "with broker {} removed"),
        ("exclude_brokers", "with broker {} excluded"),
        ("exclude_topics", "with topics {} excluded"),
        ("scale_load", "with load scaled {}"),
    ):
        value = options.get(key)
        if value:
            words += [phrase.format(_spell(v)) for v in (value if isinstance(value, list | tuple) else [value])]
    return words


def _spell(value: object) -> str:
    match value:
        case {"id": broker, "rack": rack}:
            return f"{broker} (rack {rack})" if rack is not None else f"{broker} (no rack)"
        case {**pairs}:
            return ", ".join(f"{k}={_spell(v)}" for k, v in pairs.items())
        case list() | tuple():
            return " x ".join(_spell(v) for v in value)
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _named(brokers: list[BrokerOutcome]) -> str:
    ids = [str(b.id) for b in brokers]
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {listing(ids)}"


def _times(used: float, least: float) -> str:
    times = ratio(used, least)
    return f" ({times})" if times and used >= least else ""


def _capital(text: str) -> str:
    """First letter in upper case, unless the sentence starts with a goal's name."""
    return text[:1].upper() + text[1:] if text.startswith("broker") else text


def _bare(text: str) -> str:
    return text.strip().rstrip(".;")


def _stop(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."
