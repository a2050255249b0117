"""What a plan comes to, in one sentence and a few more.

Called by every report a person reads, so that all of them say the same. Conditional mood: a plan changes
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from optimizer.plan import BrokerOutcome, Plan
from optimizer.report.standing import Standing, standing, violations
from optimizer.report.units import count, listing, ratio, size

MOST_NAMED = 2  # limits with violations; of more, only the number is told
Tone = Literal["balanced", "good", "partial", "stuck", "infeasible", "unjudged"]


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
    if plan.infeasible:
        return "infeasible"
    if all(g.status == "skipped" for g in plan.goals) and not plan.summary.actions:
        return "unjudged"
    left = s.out_after or any(violations(g)[1] for g in s.limits)
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
    if not plan.summary.actions:
        if _tone(plan, s) in ("balanced", "unjudged"):
            return "the plan is empty and nothing would change"
        return f"{within}no acceptable action would bring the cluster closer, so the plan is empty"
    aims = []
    if s.out_before:
        aims.append(_aim_of_bands(s))
    aims += _aims_of_limits(s)
    emptied = [b for b in s.leaving if b.after.get("replicas", 0) == 0]
    if emptied:
        aims.append(f"empty {_named(emptied)}")
    return f"{within}{effort(plan)} would {listing(aims, most=len(aims)) or 'bring loads closer to their means'}"


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
    unmet = [g for g in plan.goals if g.hard and g.status in ("infeasible", "violated")]
    clauses = []
    for g in unmet:
        how = "cannot be met" if g.status == "infeasible" else "would stay violated"
        clauses.append(f"hard goal {g.name} {how}: {_bare(g.explanation)}" if g.explanation else f"hard goal {g.name} {how}")
    clauses += [
        f"{count(violations(g)[1], 'violation')} of {g.name} would stay" for g in s.limits if violations(g)[1] and not g.hard
    ]
    left = list(s.out_after)
    if left:
        explained = next((b for b in left if b.why), None)
        text = f"{_named(left)} would stay out"
        if explained is not None:
            why = _bare(explained.why or "")
            text += f": {why}" if len(left) == 1 else f" (broker {explained.id}: {why})"
        clauses.append(text)
    stuck = [b for b in s.leaving if b.after.get("replicas", 0) > 0]
    if stuck:
        clauses.append(f"{_named(stuck)} would still host replicas" + (f": {_bare(stuck[0].why)}" if stuck[0].why else ""))
    return "; ".join(clauses)


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
