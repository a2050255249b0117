"""The digest of goals sees all that decides a plan, and not how a file is written."""

from __future__ import annotations

import pytest

from goals.document import parse_goals
from tests.unit.goals.documents import CONTRACT


def digest(text: str) -> str:
    return parse_goals(text, "goals.yaml").digest


def test_the_digest_does_not_see_how_a_file_is_written() -> None:
    same = """\
goals:   # keys in another order, defaults left out or written, other spellings of numbers and sizes
- kind: rack_aware
- {limit: 8.0e-1, resource: disk, kind: capacity}
- {kind: count_limit, resource: replicas, max: 4000.0, name: count_limit-replicas}
- kind: usage_distribution
  group: network
  name: network-in
  min_load: 1048576
  weight: 2
  resource: network_in
constraints: {exclude_topics: ["__*", "__*"]}
version: 1
"""
    assert digest(same) == digest(CONTRACT)
    assert digest(CONTRACT).startswith("sha256:")
    assert len(digest(CONTRACT)) == len("sha256:") + 64


def test_the_digest_is_the_same_in_every_release() -> None:
    """A plan carries it: were it to change, every approved plan would be refused after an upgrade."""
    assert digest(CONTRACT) == ("sha256:8ef5fe50bae6dc9b5e8b772894288a298517a1c33d790fc8d95ba290bb882b74")
    assert digest("version: 1\ngoals: [{kind: rack_aware, name: größe}]") == (
        "sha256:8a405fa6f3c20f2f1b2379035781e56c8827cdbc300fbefd75b2a0e2a621b77f"
    )


def test_constraints_are_sets_to_the_digest() -> None:
    one, two = (f"version: 1\npreset: counts\nconstraints: {{exclude_brokers: {b}, include_topics: {t}}}"
                for b, t in (("[1, 2]", "[a, b]"), ("[2, 1]", "[b, a]")))  # fmt: skip
    assert digest(one) == digest(two)


def test_frozen_topics_are_in_the_digest() -> None:
    """They decide the plan; a file without them keeps the digest that it had before there were any."""
    without = digest("version: 1\npreset: counts\n")
    assert digest("version: 1\npreset: counts\nconstraints: {freeze_topics: []}") == without
    assert digest("version: 1\npreset: counts\nconstraints: {freeze_topics: [a]}") != without


def test_zero_has_one_digest() -> None:
    both = [
        f"version: 1\ngoals: [{{kind: capacity, resource: cpu, limit: {zero}}}]" for zero in ("0", "-0.0")
    ]
    assert digest(both[0]) == digest(both[1])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hard: true}\n  - {kind: capacity", "hard: false}\n  - {kind: capacity"),
        ("limit: 0.8", "limit: 0.81"),
        ("resource: disk", "resource: cpu"),
        ("max: 4000", "max: 4001"),
        ("network-in ", "network_in "),
        ("weight: 2.0", "weight: 2.1"),
        ("bound: 0.10", "bound: 0.11"),
        ("var: 0.60 ", "var: 0.61 "),
        ("var: 0.60 ", "var: 1MiB "),
        ("tail: bound", "tail: absolute"),
        ("min_load: 1MiB", "min_load: 1MB"),
        ("trivial_change: 0.0", "trivial_change: 0.1"),
        ("group: network", "group: other"),
        ('exclude_topics: ["__*"]', "exclude_topics: []"),
        ("exclude_brokers: []", "exclude_brokers: [1]"),
        ("include_topics: []", "include_topics: [a]"),
    ],
)
def test_the_digest_sees_all_that_decides_a_plan(old: str, new: str) -> None:
    assert CONTRACT.count(old) >= 1
    assert digest(CONTRACT.replace(old, new)) != digest(CONTRACT)


def test_the_digest_does_not_see_when_the_service_acts() -> None:
    assert digest(CONTRACT.replace("kind: goal_band", "kind: cv")) == digest(CONTRACT)
