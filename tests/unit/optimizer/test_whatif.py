"""What-ifs that would do nothing are refused where a person asks for them, and tolerated where a plan is made again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from goals.document import parse_goals
from goals.model import GoalSet
from optimizer.options import AddedBroker, PlanOptions
from optimizer.planner import plan
from optimizer.whatif import apply_whatifs, check_whatifs
from tests.unit.optimizer.actions import Trial, partition, usage

BROKERS = [{"id": 1, "rack": "a"}, 2, {"id": 3, "state": "excluded"}, {"id": 4, "state": "dead"}]
TRIAL = Trial(BROKERS, [partition([1, 2], network_in=1e20), partition([2], topic="__offsets")], usage())  # type: ignore[arg-type]


def goals(**constraints: Any) -> GoalSet:
    return parse_goals(json.dumps({**TRIAL.goals, "constraints": constraints}), "goals.yaml")


def refusal(wanted: GoalSet, **options: Any) -> str:
    with pytest.raises(ConfigurationError) as refused:
        check_whatifs(TRIAL.snapshot, wanted, PlanOptions(**options))
    return str(refused.value)


@pytest.mark.parametrize(
    ("options", "constraints", "told"),
    [
        ({"exclude_topics": ("zzz*",)}, {}, "--exclude-topic: no topic matches 'zzz*'; give a topic's name, or a pattern such as 'logs-*'"),
        ({"exclude_topics": ("__ofsets",)}, {}, "no topic matches '__ofsets'; did you mean '__offsets'?"),
        ({"add_brokers": (AddedBroker(2),)}, {}, "--add-broker: broker 2 is in the snapshot already"),
        ({"add_brokers": (AddedBroker(1, "a"),)}, {}, "--add-broker: broker 1 is in the snapshot already"),
        ({"add_brokers": (AddedBroker(1),)}, {}, "--add-broker: broker 1 is in the snapshot already"),
        ({"remove_brokers": (3,)}, {}, "--remove-broker: broker 3 cannot be emptied: it is excluded in the snapshot"),
        ({"remove_brokers": (1,), "exclude_brokers": (1,)}, {}, "--exclude-broker says that it stays as it is"),
        ({"remove_brokers": (1,)}, {"exclude_brokers": [1]}, "constraints.exclude_brokers in goals.yaml says"),
        ({"remove_brokers": (1, 2)}, {}, "--remove-broker: expected fewer than all active brokers: none would be left to take their"),
        ({"remove_brokers": (1,), "exclude_brokers": (2,)}, {}, "expected fewer than all active brokers"),
        ({"remove_brokers": (1,)}, {"exclude_brokers": [2]}, "expected fewer than all active brokers"),
    ],
)
def test_a_what_if_that_would_do_nothing_is_refused(options: dict[str, Any], constraints: dict[str, Any], told: str) -> None:
    wanted = goals(**constraints)
    text = refusal(wanted, **options)
    assert text.startswith("options: 1 problem")
    assert told in text
    apply_whatifs(TRIAL.snapshot, wanted, PlanOptions(**options))  # as when planning again


def test_a_dead_broker_may_be_removed_and_a_new_one_too() -> None:
    check_whatifs(TRIAL.snapshot, goals(), PlanOptions(remove_brokers=(4, 9), add_brokers=(AddedBroker(9),)))


def test_all_brokers_may_be_removed_for_new_ones() -> None:
    check_whatifs(TRIAL.snapshot, goals(), PlanOptions(remove_brokers=(1, 2, 4), add_brokers=(AddedBroker(9),)))


def test_a_drain_is_refused_under_the_name_of_its_own_option() -> None:
    """`plan --remove-broker` of all brokers gave an empty plan, where `drain` refused."""
    for brokers, told in (((1, 2), "--broker: expected fewer than all"), ((99,), "--broker: no broker 99"), ((3,), "--broker: broker 3")):
        with pytest.raises(ConfigurationError, match=rf"^options: 1 problem\n  {told}"):
            check_whatifs(TRIAL.snapshot, goals(), PlanOptions(remove_brokers=brokers), "--broker")


def test_a_misspelt_topic_to_be_scaled_is_refused_with_the_one_meant() -> None:
    assert "--scale-load: no topic matches '__ofsets'; did you mean '__offsets'?" in refusal(goals(), scale_load=(("__ofsets", 2.0),))


def test_all_that_is_wrong_is_told_at_once() -> None:
    text = refusal(goals(), exclude_topics=("a", "b"), remove_brokers=(3, 99), scale_load=(("none", 2.0),))
    assert text.startswith("options: 5 problems")


def test_a_mistake_in_the_goals_file_is_told_under_its_name() -> None:
    wanted = goals(exclude_brokers=[77])
    for call in (check_whatifs, apply_whatifs):
        with pytest.raises(ConfigurationError, match=r"^goals\.yaml: 1 problem\n  constraints\.exclude_brokers: no broker 77"):
            call(TRIAL.snapshot, wanted, PlanOptions())
    both = refusal(wanted, remove_brokers=(99,))
    assert both.startswith("options and goals: 2 problems")
    assert "goals.yaml, constraints.exclude_brokers: no broker 77" in both


def test_a_broker_that_is_not_there_is_one_problem_for_each_place() -> None:
    """One typing error was told eight times, also as a broker that cannot be emptied."""
    text = refusal(goals(exclude_brokers=[77, 77]), remove_brokers=(99, 99, 3, 3), exclude_brokers=(99,), demote_brokers=(99,))
    assert text.startswith("options and goals: 5 problems")
    assert text.count("--remove-broker: no broker 99") == text.count("--exclude-broker: no broker 99") == 1
    assert text.count("--demote-broker: no broker 99") == text.count("constraints.exclude_brokers: no broker 77") == 1
    assert text.count("broker 3 cannot be emptied") == 1
    assert "broker 99 cannot be emptied" not in text


def test_patterns_of_a_goals_file_that_match_nothing_are_noted_except_internal_topics() -> None:
    """One goals file serves many clusters, so this is no mistake; a typing error should be seen all the same."""
    found = plan(TRIAL.snapshot, goals(exclude_topics=["__x*", "ordesr*", "t"], include_topics=["t", "__*", "nope"]))
    notes = [note for note in found.notes if "no topic" in note]
    assert notes == [
        "constraints.exclude_topics: no topic matches 'ordesr*'",
        "constraints.include_topics: no topic matches 'nope'",
    ]


def test_loads_cannot_be_scaled_beyond_all_measure() -> None:
    assert "expected loads of at most 1e+30, found 1e+31 for network_in" in refusal(goals(), scale_load=(("t", 1e11),))
    refusal(goals(), scale_load=(("t", 1e200), ("*", 1e200)))
    with pytest.raises(ConfigurationError):
        apply_whatifs(TRIAL.snapshot, goals(), PlanOptions(scale_load=(("t", 1e11),)))


def test_a_factor_that_is_given_twice_is_recorded_as_it_counts() -> None:
    """The plan named the last factor, so that a replay did not come to its loads."""
    made = plan(TRIAL.snapshot, goals(), PlanOptions(scale_load=(("t", 2.0), ("t", 3.0))))
    assert made.options["scale_load"] == {"t": 6.0}


def test_loads_scaled_to_next_to_nothing_are_nothing() -> None:
    tiny = apply_whatifs(TRIAL.snapshot, goals(), PlanOptions(scale_load=(("t", 1e-300), ("t", 1e-30))))
    assert tiny.leader_load["network_in"][1] == 0.0


def test_a_snapshot_of_thirty_brokers_is_not_listed_whole() -> None:
    many = build_snapshot({**TRIAL.document, "brokers": [{"id": b} for b in range(30)]})
    with pytest.raises(ConfigurationError, match=r"it has 0, 1, .*, 19 and 10 more$"):
        check_whatifs(many, goals(), PlanOptions(remove_brokers=(99,)))
