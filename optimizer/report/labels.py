"""Short names of goals for tables: the derived name without its kind, where that is unambiguous. Called by the reports."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from optimizer.plan import Plan


def goal_labels(plan: Plan) -> Mapping[str, str]:
    """`labels_of` the goals of a plan."""
    return labels_of(g.name for g in plan.goals)


def labels_of(names: Iterable[str]) -> Mapping[str, str]:
    """Goal name -> label: ``network_in`` for ``usage_distribution-network_in``, ``topic leaders`` for
    ``topic_distribution-leaders``; every other name stands for itself."""
    short = {name: _short(name) for name in names}
    taken = Counter(short.values())
    return {name: label if taken[label] == 1 else name for name, label in short.items()}


def _short(name: str) -> str:
    if name.startswith("topic_distribution-"):
        return "topic " + name.removeprefix("topic_distribution-")
    return name.removeprefix("usage_distribution-")


def plainly(text: str, labels: Mapping[str, str]) -> str:
    """A sentence of the plan with the names that the tables use, so that one goal has one name in a report."""
    longer = sorted((name for name, label in labels.items() if name != label), key=len, reverse=True)
    if not any(name in text for name in longer):
        return text
    pattern = rf"(?<![\w-])(?:{'|'.join(map(re.escape, longer))})(?![\w-])"
    return re.sub(pattern, lambda found: labels[found[0]], text)
