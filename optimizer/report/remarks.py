"""The remarks under a verdict: lower bounds beside what the plan uses, and what the plan imagines.

Called by `verdict` and by the reports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from optimizer.plan import Plan, Skipped
from optimizer.report.effort import budgets
from optimizer.report.units import count, listing, percent, size

LEAST_TOLD = 0.0005  # of a lower bound: less above it is not told
NEAR = 1.15  # times a lower bound: a plan within it is near the fewest


def remarks_on(plan: Plan) -> list[str]:
    remarks = []
    if is_bounded(plan):
        remarks.append(bounds_sentence(plan))
    if plan.options.get("acceptance") == "potential":
        remarks.append(
            "Acceptance is by potential: every action would lower the global potential, but its own combined "
            "score may be 0.5 or below."
        )
    imagined = what_ifs(plan.options)
    if imagined:
        remarks.append("What-if: " + "; ".join(imagined) + ".")
    racks = [g.name for g in plan.goals if g.kind == "rack_aware" and g.status != "skipped"]
    if racks and len(plan.brokers) > 1 and all(b.rack is None for b in plan.brokers):
        remarks.append(f"No broker has a rack, so {racks[0]} only keeps the replicas of a partition on different brokers.")
    if plan.storage == "shared":
        remarks.append("Storage is shared: a reassignment moves no data.")
    return remarks


def is_bounded(plan: Plan) -> bool:
    """Whether lower bounds say something of the plan."""
    some = plan.summary.replica_moves or plan.lower_bounds.replica_moves
    return bool(plan.summary.actions and some) and not does_one_thing(plan)


def does_one_thing(plan: Plan) -> bool:
    """Whether it demotes brokers, restores preferred leaders, places some topics, or gives a part of them another replication factor,
    and no more: lower bounds of the whole say nothing of it."""
    if without_factor(plan):
        return True
    policy = plan.options.get("policy")
    return isinstance(policy, Mapping) and not policy.keys().isdisjoint({"demotes", "restores", "places"})


def without_factor(plan: Plan) -> list[Skipped]:
    """Of a plan of replication factors, the partitions that would not get the one asked for; some as ``4 partitions more``."""
    if not plan.options.get("replication_factor"):
        return []
    return [s for s in plan.skipped if s.what.startswith("partition ") or s.what.endswith(" more")]


def bounds_sentence(plan: Plan) -> str:
    """Lower bounds beside what the plan uses."""
    used, least = plan.summary, plan.lower_bounds
    sized = plan.storage != "shared" and not used.unsized_moves
    needs, uses = count(least.replica_moves, "move"), f"{used.replica_moves:,}"
    pairs = [(used.replica_moves, least.replica_moves)]
    if sized:
        pairs.append((used.bytes_to_move, least.bytes_to_move))
        needs += f" and {size(least.bytes_to_move)}"
    if any(x < y for x, y in pairs):
        uses += f" and {size(used.bytes_to_move)}" if sized else ""
        short = "not all of it can be done"
        if plan.stopped:
            short = "planning was stopped"
        elif plan.left:
            short = "the policy's batch leaves the rest for the next plan"
        elif budgets(plan.options):
            short = "the budget ends before"
        elif plan.by_policy:
            short = "the policy moves nothing more"
        whole = "To bring every broker that can be helped into its target range"
        return f"{whole} takes at least {needs}; this plan uses {uses}, since {short}."
    uses += _more(*pairs[0]) + (f" and {size(used.bytes_to_move)}{_more(*pairs[1])}" if sized else "")
    near = all(x <= NEAR * y for x, y in pairs)
    lead = "" if not near else "Optimal: " if all(x == y for x, y in pairs) else "Near-optimal: "
    text = f"any plan needs at least {needs}; this one needs {uses}."
    return lead + text if lead else upper(text)


def _more(used: float, least: float) -> str:
    """`` (+12%)`` above a bound."""
    if least <= 0 or used <= least:
        return ""
    share = used / least - 1
    return f" ({percent(share, signed=True)})" if share >= LEAST_TOLD else ""


def what_ifs(options: Mapping[str, object]) -> list[str]:
    """The what-ifs among the options, spelt out: ``add broker 13 (rack a)``."""
    words = []
    for key, phrase in (
        ("add_brokers", "with broker{s} {} added"),
        ("remove_brokers", "with broker{s} {} removed"),
        ("exclude_brokers", "with broker{s} {} excluded"),
        ("exclude_topics", "with topics {} excluded"),
        ("scale_load", "with load scaled {}"),
    ):
        value = options.get(key)
        if value:
            values = list(value) if isinstance(value, list | tuple) else [value]
            words.append(phrase.format(listing([spelled(v) for v in values], most=len(values)), s="" if len(values) == 1 else "s"))
    return words


def spelled(value: object) -> str:
    match value:
        case {"id": broker, "rack": rack}:
            return f"{broker} (rack {rack})" if rack is not None else f"{broker} (no rack)"
        case {**pairs}:
            return ", ".join(f"{k}={spelled(v)}" for k, v in pairs.items())
        case list() | tuple():
            return " x ".join(spelled(v) for v in value)
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def upper(text: str) -> str:
    """First letter in upper case, unless the sentence starts with a goal's name."""
    plain = re.match(r"[a-z]+( |:|$)", text)
    return text[:1].upper() + text[1:] if plain else text
