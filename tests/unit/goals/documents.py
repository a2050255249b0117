"""Goal files in tests: the contract's, a file of one goal, and what is said about a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_model.errors import ConfigurationError
from goals.document import load_goals, parse_goals
from goals.model import Goal

CONTRACT = """\
version: 1
goals:
  - {kind: rack_aware, hard: true}
  - {kind: capacity, resource: disk, limit: 0.8, hard: true}          # share of the broker's capacity
  - {kind: count_limit, resource: replicas, max: 4000, hard: true}
  - kind: usage_distribution
    name: network-in            # default: derived from kind and resource
    resource: network_in
    weight: 2.0                 # soft goals only; default 1
    bound: 0.10                 # share of the mean (AutoMQ: avg deviation)
    var: 0.60                   # share of the mean, or a size above the bound such as 100MiB
    tail: bound                 # or absolute
    min_load: 1MiB              # broker and mean below this: satisfied
    trivial_change: 0.0         # share of the mean; a broker's net change below it is dropped
    group: network              # optional; scores are averaged within a group
constraints:
  exclude_topics: ["__*"]       # never moved, their load still counts
  exclude_brokers: []
  include_topics: []            # empty: all
policy:
  detector: {kind: goal_band}
"""


def one(text: str) -> Goal:
    """The only goal of a file that has this goal."""
    (goal,) = parse_goals(f"version: 1\ngoals:\n  - {{{text}}}\n", "goals.yaml").goals
    return goal


def problems(text: str, preset: str | None = None) -> list[str]:
    """What is said about a text that is refused."""
    with pytest.raises(ConfigurationError) as refused:
        parse_goals(text, "goals.yaml", preset)
    return [str(problem) for problem in refused.value.problems]


def problem(goal: str) -> str:
    """The only problem of a file that has only this goal; its place loses the goal's."""
    (found,) = problems(f"version: 1\ngoals:\n  - {{{goal}}}\n")
    assert found.endswith(" (line 3)")
    return found.removeprefix("goals[0].").removesuffix(" (line 3)")


def refused(path: Path) -> str:
    with pytest.raises(ConfigurationError) as error:
        load_goals(path)
    assert str(error.value).startswith(f"{path}: 1 problem\n  ")
    return str(error.value.problems[0])
