"""The plan file: its shape as docs/contract.md, section 4 states it, and the same bytes every time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from optimizer.plan import GoalScore, Plan
from optimizer.report import iter_json, to_json
from tests.unit.optimizer import plans

K = TypeVar("K")
V = TypeVar("V")
Builder = Callable[[], Plan]
BUILDERS: list[Builder] = [
    plans.example_plan,
    plans.empty_plan,
    plans.stuck_plan,
    plans.budgeted_plan,
    plans.infeasible_plan,
    plans.draining_plan,
    plans.unjudged_plan,
    plans.hostile_plan,
]
NUMBER = (int, float)
LOADS = {str: NUMBER}
CHANGE = {
    "topic": str,
    "partition": int,
    "replicas_before": [int],
    "replicas_after": [int],
    "leader_before": (int, None),
    "leader_after": (int, None),
}
STATE = {
    "violations": int,
    "mean": (*NUMBER, None),
    "max_deviation": (*NUMBER, None),
    "cv": (*NUMBER, None),
    "in_band": NUMBER,
}
SCHEMA: dict[str, Any] = {
    "version": int,
    "plan_id": str,
    "snapshot": {"cluster_id": str, "taken_at": str, "digest": str},
    "goals_digest": str,
    "options": {"seed": int, "acceptance": str},
    "actions": [
        {
            "seq": int,
            "type": str,
            "score": NUMBER,
            "repairs": [str],
            "reason": str,
            "bytes_to_move": int,
            "changes": [CHANGE],
            "goal_scores": {str: {"score": NUMBER, "before": LOADS, "after": LOADS}},
        }
    ],
    "proposals": [CHANGE],
    "goals": [
        {
            "name": str,
            "kind": str,
            "hard": bool,
            "weight": NUMBER,
            "status": str,
            "before": (STATE, None),
            "after": (STATE, None),
            "explanation": str,
        }
    ],
    "summary": dict.fromkeys(("actions", "replica_moves", "leadership_changes", "partitions", "bytes_to_move"), int),
    "lower_bounds": {"replica_moves": int, "bytes_to_move": int},
    "brokers": [{"id": int, "before": LOADS, "after": LOADS, "violates": [str], "why": (str, None)}],
    "skipped": [{"what": str, "reason": str}],
}


def misfits(value: object, schema: Any, place: str = "plan") -> list[str]:
    """Where `value` does not have the shape of `schema`; additional fields are welcome."""
    match schema:
        case None:
            return [] if value is None else [f"{place}: not null"]
        case tuple():
            found = [misfits(value, one, place) for one in schema]
            return [] if [] in found else found[0]
        case type():
            right = isinstance(value, schema) and (schema is bool or not isinstance(value, bool))
            return [] if right else [f"{place}: {value!r} is not {schema.__name__}"]
        case [item]:
            if not isinstance(value, list):
                return [f"{place}: not a list"]
            return [m for i, v in enumerate(value) for m in misfits(v, item, f"{place}[{i}]")]
        case {**fields} if str in fields:
            if not isinstance(value, dict):
                return [f"{place}: not an object"]
            return [m for k, v in value.items() for m in misfits(v, schema[str], f"{place}.{k}")]
        case {**fields}:
            if not isinstance(value, dict):
                return [f"{place}: not an object"]
            absent = [f"{place}.{k}: absent" for k in fields if k not in value]
            return absent + [m for k, s in fields.items() if k in value for m in misfits(value[k], s, f"{place}.{k}")]
    raise AssertionError(schema)


def backwards(of: Mapping[K, V]) -> dict[K, V]:
    return dict(reversed(list(of.items())))


def named(build: Builder) -> str:
    return build.__name__


@pytest.mark.parametrize("build", BUILDERS, ids=named)
def test_has_the_shape_that_other_tools_read(build: Builder) -> None:
    document = json.loads(to_json(build()))
    assert misfits(document, SCHEMA) == []
    assert document["version"] == 1


def test_the_schema_of_this_test_tells_misfits() -> None:
    document = json.loads(to_json(plans.example_plan()))
    del document["brokers"][0]["why"]
    document["summary"]["bytes_to_move"] = 1.5
    document["actions"][0]["goal_scores"]["disk"]["before"]["1"] = "high"
    assert len(misfits(document, SCHEMA)) == 3


def test_every_field_of_the_plan_arrives() -> None:
    plan = plans.infeasible_plan()
    document = json.loads(to_json(plan))
    action, written = plan.actions[7], document["actions"][7]
    assert written["changes"][1]["replicas_after"] == list(action.changes[1].replicas_after)
    assert written["goal_scores"]["disk"]["score"] == pytest.approx(action.goal_scores["disk"].score, rel=1e-8)
    assert written["goal_scores"]["disk"]["before"] == {
        str(b): pytest.approx(s, rel=1e-8) for b, s in action.goal_scores["disk"].before.items()
    }
    assert [c["partition"] for c in document["proposals"]] == [c.partition for c in plan.proposals]
    assert [g["name"] for g in document["goals"]] == [g.name for g in plan.goals]
    assert document["goals"][0]["status"] == "infeasible"
    assert document["goals"][1]["before"]["violations"] == plan.goals[1].before.violations  # type: ignore[union-attr]
    assert document["summary"]["bytes_to_move"] == plan.summary.bytes_to_move
    assert document["lower_bounds"]["replica_moves"] == plan.lower_bounds.replica_moves
    assert document["brokers"][11]["why"] == plan.brokers[11].why
    assert document["brokers"][11]["violates"] == ["network-in"]
    assert document["skipped"][0] == {
        "what": "goal fetch-rate",
        "reason": "no fetch_rate load in the snapshot",
    }
    assert document["snapshot"]["storage"] == "local"
    assert document["notes"] == list(plan.notes)
    assert document["bands"]["disk"]["1"]["low"] == pytest.approx(plan.bands["disk"][1].low)


@pytest.mark.parametrize("build", BUILDERS, ids=named)
def test_equal_plans_give_equal_bytes(build: Builder) -> None:
    text = to_json(build())
    assert text == to_json(build())
    assert text.isascii()
    assert text.endswith("}\n")


def test_order_in_which_a_plan_was_filled_does_not_show() -> None:
    plan = plans.example_plan()
    turned = tuple(
        replace(
            a,
            goal_scores={
                name: GoalScore(s.score, backwards(s.before), backwards(s.after))
                for name, s in backwards(a.goal_scores).items()
            },
        )
        for a in plan.actions
    )
    bands = {name: backwards(of) for name, of in plan.bands.items()}
    options = backwards(plan.options)
    again = replace(plan, actions=turned, brokers=tuple(reversed(plan.brokers)), bands=bands, options=options)
    assert to_json(again) == to_json(plan)


def test_goals_that_leave_out_a_broker_keep_their_own_brokers() -> None:
    plan = plans.example_plan()
    action = plan.actions[1]
    scores = dict(action.goal_scores)
    broker = min(scores["disk"].before)
    scores["disk"] = GoalScore(0.6, {broker: 0.25}, {broker: 0.45})
    text = to_json(replace(plan, actions=(replace(action, goal_scores=scores),)))
    written = json.loads(text)["actions"][0]["goal_scores"]
    assert written["disk"] == {"score": 0.6, "before": {str(broker): 0.25}, "after": {str(broker): 0.45}}
    assert len(written["cpu"]["before"]) == 2


def test_broker_keys_ascend_as_numbers() -> None:
    document = json.loads(to_json(plans.example_plan()))
    for action in document["actions"]:
        for scores in action["goal_scores"].values():
            assert list(map(int, scores["before"])) == sorted(map(int, scores["before"]))
    assert list(map(int, document["bands"]["disk"])) == list(range(1, 13))
    assert [b["id"] for b in document["brokers"]] == list(range(1, 13))


def test_numbers_have_nine_significant_digits_and_whole_numbers_all_of_theirs() -> None:
    plan = plans.example_plan()
    action = replace(plan.actions[0], score=0.61234567890123, bytes_to_move=12345678901234567)
    text = to_json(replace(plan, actions=(action,)))
    assert '"score":0.612345679,' in text
    assert '"bytes_to_move":12345678901234567,' in text
    digits = [len(re.sub(r"e.*|[.-]|^-?0\.0*", "", n)) for n in re.findall(r"-?\d+\.\d+(?:e[+-]\d+)?", text)]
    assert max(digits) <= 9


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused_rather_than_written(bad: float) -> None:
    plan = plans.example_plan()
    first = plan.actions[0]
    scores = {**first.goal_scores, "disk": GoalScore(bad, {1: 0.5}, {1: 0.5})}
    with pytest.raises(ValueError, match="finite"):
        to_json(replace(plan, actions=(replace(first, goal_scores=scores),)))
    with pytest.raises(ValueError, match="finite"):
        to_json(replace(plan, actions=(replace(first, score=bad),)))


def test_names_and_reasons_of_any_text_survive() -> None:
    plan = plans.hostile_plan()
    document = json.loads(to_json(plan))
    assert document["snapshot"]["cluster_id"] == plans.HOSTILE
    assert document["actions"][0]["reason"] == plan.actions[0].reason
    assert plans.HOSTILE in document["actions"][0]["goal_scores"]
    assert "50% nan" in document["actions"][0]["goal_scores"]


def test_one_action_a_line_so_that_a_difference_of_plans_can_be_read() -> None:
    plan = plans.example_plan()
    lines = to_json(plan).splitlines()
    assert sum(line.startswith('{"seq":') for line in lines) == len(plan.actions)
    assert json.loads(lines[7].rstrip(","))["seq"] == 2


def test_long_plans_are_built_once_and_written_in_pieces() -> None:
    plan = plans.big_plan(40, 3000)
    actions = plan.actions
    assert isinstance(actions, plans.LazyActions)
    pieces = list(iter_json(plan))
    assert actions.built == 3000
    assert max(map(len, pieces)) < len(to_json(plan)) / 4
    document = json.loads("".join(pieces))
    assert [a["seq"] for a in document["actions"]] == list(range(1, 3001))
