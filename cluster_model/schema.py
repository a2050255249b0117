"""The JSON Schema of a snapshot file. `cluster_model.build` refuses more: what no schema can say, such as a leader outside its replicas."""

from __future__ import annotations

from typing import Any

from cluster_model.directories import MOST
from cluster_model.resources import LARGEST_AMOUNT, MEASURED, RESOURCES

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def snapshot_schema() -> dict[str, Any]:
    """The schema, a new document at each call."""
    broker_id = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
    return {
        "$schema": DIALECT,
        "title": "Trimtab snapshot",
        "description": "One picture of a cluster: brokers, replicas, and what each partition costs. docs/snapshot-file.md explains it.",
        "type": "object",
        "required": ["version", "cluster_id", "taken_at", "storage", "brokers", "partitions"],
        "additionalProperties": False,
        "properties": {
            "version": {"const": 1},
            "cluster_id": {"type": "string"},
            "taken_at": {"type": "string", "format": "date-time", "description": "ISO-8601, best in UTC"},
            "storage": {"enum": ["local", "shared"], "description": "local: moving a replica copies its bytes; shared: it copies nothing"},
            "brokers": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/broker"}},
            "partitions": {"type": "array", "items": {"$ref": "#/$defs/partition"}},
            "notes": {"type": ["array", "null"], "items": {"type": "string"}, "description": "sentences for people"},
        },
        "$defs": {
            "broker": {
                "type": "object",
                "required": ["id"],
                "additionalProperties": False,
                "properties": {
                    "id": broker_id,
                    "rack": {"type": ["string", "null"], "description": "left out: a rack of its own"},
                    "state": {"enum": ["active", "draining", "dead", "excluded", None]},
                    "capacity": _amounts(RESOURCES, "what the broker can carry"),
                    "directories": {"type": ["array", "null"], "maxItems": MOST, "items": {"$ref": "#/$defs/directory"},
                                    "description": "log directories of a broker with several volumes"},
                },
            },
            "directory": {
                "type": "object",
                "required": ["path", "size", "used"],
                "additionalProperties": False,
                "properties": {
                    "path": {"type": "string"},
                    "size": {"type": "number", "exclusiveMinimum": 0, "maximum": LARGEST_AMOUNT, "description": "bytes of its volume"},
                    "used": {"type": "number", "minimum": 0, "maximum": LARGEST_AMOUNT, "description": "bytes in use on its volume"},
                    "volume": {"anyOf": [broker_id, {"type": "null"}], "description": "shared by the directories of one volume"},
                },
            },
            "partition": {
                "type": "object",
                "required": ["topic", "partition", "replicas"],
                "additionalProperties": False,
                "properties": {
                    "topic": {"type": "string", "minLength": 1},
                    "partition": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
                    "replicas": {
                        "type": "array", "minItems": 1, "uniqueItems": True, "items": broker_id, "description": "preferred leader first",
                    },
                    "leader": {"anyOf": [broker_id, {"type": "null"}]},
                    "leader_load": _amounts(MEASURED, "what the leader costs its broker"),
                    "follower_load": _amounts(MEASURED, "what each follower costs; left out: network_in and disk of the leader"),
                    "directories": {
                        "type": ["array", "null"], "items": {"type": ["integer", "null"], "minimum": 0, "maximum": MOST - 1},
                        "description": "of each replica, the position of its log directory in those of its broker",
                    },
                },
            },
        },
    }  # fmt: skip


def _amounts(resources: dict[str, str], description: str) -> dict[str, Any]:
    amount = {"type": ["number", "null"], "minimum": 0, "maximum": LARGEST_AMOUNT}
    return {
        "type": ["object", "null"], "additionalProperties": False, "description": description,
        "properties": {name: amount | {"description": unit} for name, unit in resources.items()},
    }  # fmt: skip
