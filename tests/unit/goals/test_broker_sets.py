"""Broker sets in a goals file: what they say, and what is refused with its place."""

from __future__ import annotations

import pytest

from cluster_model.errors import ConfigurationError
from goals.document import parse_goals
from goals.model import BrokerSet
from trimtab.service.goals import goals_text

HEAD = "version: 1\npreset: counts\nconstraints:\n  broker_sets:\n"
TWO = "    - {name: a, brokers: [1, 2], topics: ['x*']}\n    - {name: rest, brokers: [3]}\n"


def test_a_set_has_brokers_and_topics_and_one_takes_the_rest() -> None:
    found = parse_goals(HEAD + TWO, "goals.yaml").constraints.broker_sets
    assert found == (BrokerSet("a", (1, 2), ("x*",)), BrokerSet("rest", (3,), ()))


def test_the_goals_in_force_read_back_with_their_sets() -> None:
    goals = parse_goals(HEAD + TWO, "goals.yaml")
    assert parse_goals(goals_text(goals), "again").digest == goals.digest


def test_files_without_sets_keep_their_digest_and_the_order_of_sets_is_part_of_it() -> None:
    plain = parse_goals("version: 1\npreset: counts\n", "a").digest
    assert parse_goals("version: 1\npreset: counts\nconstraints: {broker_sets: []}\n", "a").digest == plain
    one, two = TWO.splitlines(keepends=True)
    digests = {parse_goals(HEAD + text, "a").digest for text in (TWO, two + one, TWO.replace("x*", "y*"), TWO.replace("2]", "4]"))}
    assert len(digests | {plain}) == 5


@pytest.mark.parametrize(
    ("sets", "place", "text"),
    [
        ("- {name: a, brokers: [1]}\n    - {name: b, brokers: [2, 1], topics: [x]}", "broker_sets[1].brokers[1]", "broker 1 is in"),
        ("- {name: a, brokers: [1]}\n    - {name: a, brokers: [2], topics: [x]}", "broker_sets[1].name", "a name of its own"),
        ("- {name: a, brokers: [1], topics: [x]}\n    - {name: b, brokers: [2], topics: [x]}", "broker_sets[1].topics[0]", "'x' is in"),
        ("- {name: a, brokers: [1]}\n    - {name: b, brokers: [2]}", "broker_sets[1]", "has no topics either"),
        ("- {name: a, brokers: []}", "broker_sets[0].brokers", "at least one"),
        ("- {name: a, brokers: [1], topics: []}", "broker_sets[0].topics", "at least one"),
        ("- {name: a, topics: [x]}", "broker_sets[0].brokers", "missing"),
        ("- {name: a, brokers: [1], topic: [x]}", "broker_sets[0].topic", "did you mean 'topics'"),
        ("- {name: a, brokers: ['1'], topics: [x]}", "broker_sets[0].brokers[0]", "whole number"),
    ],
)
def test_a_set_that_cannot_be_meant_is_refused_where_it_stands(sets: str, place: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as found:
        parse_goals(f"{HEAD}    {sets}\n", "goals.yaml")
    assert any(problem.place == f"constraints.{place}" and text in problem.message for problem in found.value.problems)
