"""Any goals file: right ones mean the same however written, wrong ones are refused without a crash."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from io import StringIO
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from cluster_model.errors import ConfigurationError
from cluster_model.resources import RESOURCES
from goals.document import parse_goals
from goals.model import UsageDistribution

shares = st.floats(1e-6, 10.0)
amounts = st.floats(0.0, 1e15)
names = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=20)
resources = st.sampled_from(sorted(RESOURCES))


def goal(kind: str, required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    soft = st.fixed_dictionaries(
        {"kind": st.just(kind), "hard": st.just(False), **required},
        optional={"weight": st.floats(1e-3, 1e3), "group": names, **optional},
    )
    hard = st.fixed_dictionaries(
        {"kind": st.just(kind), "hard": st.just(True), **required}, optional=optional
    )
    return soft | hard


usage = goal(
    "usage_distribution",
    {"resource": resources, "bound": shares},
    {"tail": st.sampled_from(["bound", "absolute"]), "min_load": amounts, "trivial_change": shares},
).flatmap(lambda found: st.floats(1.001, 100.0).map(lambda times: {**found, "var": found["bound"] * times}))
goals = (
    goal("rack_aware", {}, {})
    | goal("capacity", {"resource": resources, "limit": amounts}, {})
    | goal("count_limit", {"resource": resources, "max": amounts}, {})
    | goal("topic_distribution", {"resource": st.sampled_from(["replicas", "leaders"])}, {"bound": shares, "min_gap": st.integers(0, 5)})
    | goal(
        "topic_minimum", {"resource": st.sampled_from(["replicas", "leaders"]), "topics": st.lists(names, min_size=1, unique=True)},
        {"min": st.integers(1, 50)},
    )
    | usage
)
broker_sets = st.lists(st.tuples(names, st.sets(st.integers(0, 99), min_size=1), st.sets(names, min_size=1)), max_size=3).map(
    lambda found: [
        {"name": f"{i}-{name}", "brokers": [3 * b + i for b in sorted(brokers)], "topics": [f"{i}-{t}" for t in sorted(topics)]}
        for i, (name, brokers, topics) in enumerate(found)
    ]
)
documents = st.fixed_dictionaries(
    {"version": st.just(1), "goals": st.lists(goals, min_size=1, max_size=5)},
    optional={
        "constraints": st.fixed_dictionaries(
            {},
            optional={
                "exclude_topics": st.lists(names, max_size=3),
                "include_topics": st.lists(names, max_size=3),
                "exclude_brokers": st.lists(st.integers(0, 2**31 - 1), max_size=3),
                "broker_sets": broker_sets,
            },
        )
    },
)


def named(document: dict[str, Any]) -> dict[str, Any]:
    """With a name of its own for each goal."""
    return {**document, "goals": [{**g, "name": f"goal {i}"} for i, g in enumerate(document["goals"])]}


def as_yaml(document: object) -> str:
    stream, yaml = StringIO(), YAML(typ="safe", pure=True)
    yaml.default_flow_style = False  # within braces it writes {group: ?0}, which it cannot read
    yaml.dump(document, stream)
    return stream.getvalue()


@given(documents.map(named))
def test_every_key_arrives_and_block_yaml_and_json_mean_the_same(document: dict[str, Any]) -> None:
    found = parse_goals(json.dumps(document), "goals.json")
    assert parse_goals(as_yaml(document), "goals.yaml").digest == found.digest
    for given_goal, understood in zip(document["goals"], found.goals, strict=True):
        record = asdict(understood)
        assert {key: list(record[key]) if key == "topics" else record[key] for key in given_goal} == given_goal
        assert not isinstance(understood, UsageDistribution) or understood.var_is_share
    for key, value in document.get("constraints", {}).items():
        if key == "broker_sets":
            assert [(s.name, list(s.brokers), list(s.topics)) for s in found.constraints.broker_sets] == [tuple(v.values()) for v in value]
        else:
            assert list(asdict(found.constraints)[key]) == list(dict.fromkeys(value))


@given(documents.map(named), st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_nothing(document: dict[str, Any], random: Any) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, list):
            return [shuffled(item) for item in value]
        if isinstance(value, dict):
            items = list(value.items())
            random.shuffle(items)
            return {key: shuffled(item) for key, item in items}
        return value

    again = parse_goals(json.dumps(shuffled(document)), "b")
    assert again.digest == parse_goals(json.dumps(document), "a").digest


@given(documents.map(named), st.data())
def test_a_misspelt_key_is_refused_where_it_stands(document: dict[str, Any], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(document["goals"]) - 1))
    broken = document["goals"][index]
    key = data.draw(st.sampled_from(sorted(set(broken) - {"kind"})))
    broken[f"{key}x"] = broken.pop(key)
    try:
        parse_goals(json.dumps(document), "goals.yaml")
    except ConfigurationError as error:
        places = {problem.place for problem in error.problems}
        assert f"goals[{index}].{key}x" in places
    else:
        raise AssertionError(f"{key}x was accepted")


scalars = st.none() | st.booleans() | st.integers() | st.floats() | names
words = st.sampled_from(
    ["1MiB", "10%", "-5GB", "usage_distribution", "count_limit", "cv", "pairs", "fraction", "disk"]
)
keys = st.sampled_from(["version", "preset", "goals", "constraints", "policy"]) | st.sampled_from(
    [
        "kind",
        "resource",
        "hard",
        "weight",
        "name",
        "var",
        "bound",
        "max",
        "limit",
        "detector",
        "any_of",
        "amount",
    ]
)
anything = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys | names, inner, max_size=6),
    max_leaves=25,
)


def refused_or_understood(text: str) -> None:
    """Anything but a `ConfigurationError` is a crash."""
    with contextlib.suppress(ConfigurationError):
        assert parse_goals(text, "goals.yaml").digest


@given(anything)
def test_nonsense_is_refused_and_never_a_crash(document: object) -> None:
    refused_or_understood(as_yaml(document))


@given(anything)
def test_nonsense_in_its_parts_is_refused_and_never_a_crash(value: object) -> None:
    parts = {"goals": [value, {"kind": "rack_aware"}], "policy": value, "constraints": value}
    refused_or_understood(as_yaml({"version": 1, **parts}))


@given(st.text(max_size=60) | st.text("-:{}[]&*!|>'\"\\#%@`,? \n\tab1.~<", max_size=60))
def test_any_text_is_refused_or_understood(text: str) -> None:
    refused_or_understood(text)
