"""A parsed goals document with every default of docs/contract.md, sections 3 and 7 filled in.

Used by the oracle only; deliberately not the product's own reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]

UNITS = {
    "": 1, "B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4, "PB": 1000**5,
    "KIB": 1024, "MIB": 1024**2, "GIB": 1024**3, "TIB": 1024**4, "PIB": 1024**5,
}  # fmt: skip
HARD_BY_DEFAULT = {"rack_aware", "capacity", "count_limit"}
DISTRIBUTIONS = {"usage_distribution", "topic_distribution", "topic_minimum"}


def size(value: object) -> float:
    """Bytes of ``500MB`` or ``10GiB``; a plain number is itself."""
    if isinstance(value, int | float):
        return float(value)
    found = re.fullmatch(r"\s*([0-9.eE+-]+?)\s*([A-Za-z]*)(?:/s)?\s*", str(value))
    if found is None or found.group(2).upper() not in UNITS:
        raise ValueError(f"not a size: {value!r}")
    return float(found.group(1)) * UNITS[found.group(2).upper()]


def goals_of(document: Document) -> list[dict[str, Any]]:
    """The goals in the order of the file, each a dictionary with nothing left out."""
    result = []
    for entry in document.get("goals") or []:
        goal = dict(entry)
        kind = goal["kind"]
        named = kind if kind == "rack_aware" else f"{kind}-{goal.get('resource')}"
        goal["name"] = goal.get("name") or named
        goal["hard"] = bool(goal.get("hard", kind in HARD_BY_DEFAULT))
        goal["weight"] = float(goal.get("weight", 1.0))
        goal["group"] = goal.get("group")
        if kind in ("usage_distribution", "topic_distribution"):
            goal["bound"] = float(goal.get("bound", 0.10))
        if kind == "topic_distribution":
            goal["min_gap"] = int(goal.get("min_gap", 0))
        if kind == "usage_distribution":
            var = goal.get("var", 0.60)
            goal["var_is_share"] = isinstance(var, int | float)
            goal["var"] = size(var)
            goal["tail"] = goal.get("tail", "bound")
            goal["min_load"] = size(goal.get("min_load", 0.0))
        if kind == "capacity":
            goal["limit"] = float(goal.get("limit", 1.0))
        if kind == "count_limit":
            goal["max"] = float(goal["max"])
        result.append(goal)
    return result


def constraints_of(document: Document) -> dict[str, list[Any]]:
    """Excluded, frozen and included topics, excluded brokers, and broker sets (brokers and globs, None for all the rest); empty lists where
    the file is silent."""
    given = document.get("constraints") or {}
    found = {
        key: list(given.get(key) or [])
        for key in ("exclude_topics", "freeze_topics", "exclude_brokers", "include_topics")
    }
    found["broker_sets"] = [(set(one["brokers"]), one.get("topics")) for one in given.get("broker_sets") or []]
    return found
