"""The JSON Schema of a plan file, as `optimizer.report.json_form` writes it. Tests check plans against it."""

from __future__ import annotations

from typing import Any, get_args

from optimizer.options import Acceptance
from optimizer.plan import ActionType, Status

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
NUMBER: dict[str, Any] = {"type": "number"}
BROKER: dict[str, Any] = {"type": "integer", "minimum": 0}
SHARE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}


def plan_schema() -> dict[str, Any]:
    """The schema, a new document at each call."""
    top = _record(
        {
            "version": {"const": 1},
            "plan_id": _said(TEXT, "hash of everything that decides the execution"),
            "snapshot": _record({"cluster_id": TEXT, "taken_at": TEXT, "digest": TEXT, "storage": {"enum": ["local", "shared"]}}),
            "goals_digest": TEXT,
            "options": {
                "type": "object",
                "description": "seed, acceptance, budgets and what-ifs that were given",
                "properties": {"seed": {"type": "integer"}, "acceptance": {"enum": list(get_args(Acceptance))}},
            },
            "actions": _said(_list({"$ref": "#/$defs/action"}), "in an order in which each is acceptable at its turn"),
            "proposals": _said(_list({"$ref": "#/$defs/change"}), "the net change of each partition"),
            "goals": _list({"$ref": "#/$defs/goal"}),
            "summary": _record(
                {"actions": COUNT, "replica_moves": COUNT, "leadership_changes": COUNT, "partitions": COUNT, "bytes_to_move": COUNT,
                 "unsized_moves": _said(COUNT, "moves of partitions whose size is unknown, not in bytes_to_move")},
                optional=("unsized_moves",),
            ),
            "lower_bounds": _said(_record({"replica_moves": COUNT, "bytes_to_move": COUNT}), "what no plan can do with less of"),
            "brokers": _list({"$ref": "#/$defs/broker"}),
            "skipped": _list(_record({"what": TEXT, "reason": TEXT})),
            "notes": _list(TEXT),
            "bands": _said(_by(_by({"$ref": "#/$defs/band"})), "target range by goal and broker"),
            "hard_violations_left": COUNT,
            "cannot_be_emptied": _said(_list(BROKER), "dead or draining brokers that no plan can empty"),
            "batches": _said(
                _record({"count": COUNT, "pause": NUMBER, "left": COUNT, "of": _list(COUNT)}),
                "parts in which it is carried out: `of` is the batch of each proposal, `pause` seconds, `left` actions for the next plan",
            ),
            "stopped": {"const": True, "description": "the search was stopped before its end"},
        },
        optional=("cannot_be_emptied", "batches", "stopped"),
    )  # fmt: skip
    return {"$schema": DIALECT, "title": "Trimtab plan", "description": "docs/report.md explains it.", **top, "$defs": _definitions()}


def _definitions() -> dict[str, Any]:
    leader = {"anyOf": [BROKER, {"type": "null"}]}
    replicas = {"type": "array", "items": BROKER, "minItems": 1, "description": "preferred leader first"}
    loads = _by(NUMBER)
    state = _record(
        {"violations": COUNT, "mean": _or_null(NUMBER), "max_deviation": _or_null(NUMBER), "cv": _or_null(NUMBER),
         "in_band": _or_null(SHARE),
         "misplaced": COUNT},
        optional=("misplaced",),
    )  # fmt: skip
    return {
        "change": _record(
            {"topic": TEXT, "partition": COUNT, "replicas_before": replicas, "replicas_after": replicas, "leader_before": leader,
             "leader_after": leader}
        ),
        "action": _record(
            {
                "seq": {"type": "integer", "minimum": 1},
                "type": {"enum": list(get_args(ActionType))},
                "score": _said(SHARE, "weighted mean over the goals; above 0.5 is better than before"),
                "repairs": _list(TEXT),
                "reason": TEXT,
                "bytes_to_move": COUNT,
                "changes": _list({"$ref": "#/$defs/change"}),
                "goal_scores": _by(_record({"score": SHARE, "before": _by(SHARE), "after": _by(SHARE)})),
            }
        ),
        "goal": _record(
            {
                "name": TEXT, "kind": TEXT, "resource": _or_null(TEXT), "hard": {"type": "boolean"}, "weight": NUMBER,
                "status": {"enum": list(get_args(Status))}, "before": _or_null(state), "after": _or_null(state), "explanation": TEXT,
                "from_calibration": {"type": "object"}, "unknown": COUNT,
            },
            optional=("from_calibration", "unknown"),
        ),
        "broker": _record(
            {
                "id": BROKER, "rack": _or_null(TEXT), "state": {"enum": ["active", "draining", "dead", "excluded"]}, "before": loads,
                "after": loads, "scores_before": loads, "scores_after": loads, "violates": _list(TEXT), "why": _or_null(TEXT),
            }
        ),
        "band": _record({"mean": NUMBER, "low": NUMBER, "high": NUMBER, "var_low": NUMBER, "var_high": NUMBER}),
    }  # fmt: skip


def _record(keys: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": [k for k in keys if k not in optional], "properties": keys}


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _by(of: dict[str, Any]) -> dict[str, Any]:
    """By broker id or name."""
    return {"type": "object", "additionalProperties": of}


def _or_null(of: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [of, {"type": "null"}]}


def _said(of: dict[str, Any], description: str) -> dict[str, Any]:
    return {**of, "description": description}
