"""Plans random clusters until something is wrong, and shows the smallest cluster that still shows it.

``python -m tests.oracle.stress --count N --seed S``; failing seeds go to stdout with what the oracle says,
exit code 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.oracle.clusters import Case, case_of, with_sets
from tests.oracle.runs import complaints

Trial = Callable[[Case], list[str]]


def tried(case: Case) -> list[str]:
    """Complaints about a case; an exception of the planner is one."""
    try:
        return complaints(case)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return [f"raised {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"]


def kind_of(complaint: str) -> str:
    """A complaint without its numbers, so that shrinking does not slide to another defect."""
    words = [w for w in complaint.split() if not any(c.isdigit() for c in w)]
    return " ".join(words[:4])


def smaller(case: Case, trial: Trial, budget: int = 150) -> Case:
    """A case that still draws the first complaint, with partitions, goals, brokers and options dropped."""
    wanted = kind_of(trial(case)[0])
    tries = 0

    def still(candidate: Case) -> bool:
        nonlocal tries
        tries += 1
        return tries <= budget and any(kind_of(text) == wanted for text in trial(candidate))

    for part, holder in (("partitions", "snapshot"), ("goals", "goals"), ("brokers", "snapshot")):
        items = list(getattr(case, holder)[part])
        size = max(1, len(items) // 2)
        while size >= 1 and tries < budget:
            start = 0
            while start < len(items):
                kept = items[:start] + items[start + size :]
                candidate = case.without(**{holder: {**getattr(case, holder), part: kept}})
                if kept and references_hold(candidate) and still(candidate):
                    items, case = kept, candidate
                else:
                    start += size
            size //= 2
    for name in list(case.options):
        candidate = case.without(options={k: v for k, v in case.options.items() if k != name})
        if still(candidate):
            case = candidate
    return case


def references_hold(case: Case) -> bool:
    ids = {b["id"] for b in case.snapshot["brokers"]}
    named = [b for p in case.snapshot["partitions"] for b in p["replicas"]]
    named += case.goals.get("constraints", {}).get("exclude_brokers", [])
    named += [b for one in case.goals.get("constraints", {}).get("broker_sets", []) for b in one["brokers"]]
    named += [*case.options.get("remove_brokers", []), *case.options.get("exclude_brokers", [])]
    return ids.issuperset(named)


def show(case: Case) -> str:
    parts: dict[str, Any] = {
        "acceptance": case.acceptance, "options": case.options, "goals": case.goals["goals"],
        "constraints": case.goals.get("constraints"), "brokers": case.snapshot["brokers"],
    }  # fmt: skip
    lines = [f"    {name}: {json.dumps(value)}" for name, value in parts.items() if value]
    lines += [f"    {json.dumps(p)}" for p in case.snapshot["partitions"][:12]]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-brokers", type=int, default=60)
    parser.add_argument("--per-broker", type=int, default=30)
    parser.add_argument("--sets", action="store_true", help="every cluster has broker sets")
    parser.add_argument("--shrink", action="store_true", help="look for the smallest cluster that shows it")
    parser.add_argument("--stop-after", type=int, default=10, help="failing seeds")
    chosen = parser.parse_args(arguments)
    failed = 0
    for seed in range(chosen.seed, chosen.seed + chosen.count):
        case = case_of(seed, most_brokers=chosen.most_brokers, per_broker=chosen.per_broker)
        case = with_sets(case) if chosen.sets else case
        found = tried(case)
        if not found:
            continue
        failed += 1
        sys.stdout.write(f"seed {seed} ({case.acceptance}): {len(found)} deviations\n")
        sys.stdout.writelines(f"  {text}\n" for text in found[:5])
        if chosen.shrink:
            case = smaller(case, tried)
            count = len(case.snapshot["partitions"])
            sys.stdout.write(f"  smallest, {count} partitions: {tried(case)[:1]}\n{show(case)}\n")
        sys.stdout.flush()
        if failed >= chosen.stop_after:
            break
    sys.stderr.write(f"{seed - chosen.seed + 1} clusters, {failed} with deviations\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
