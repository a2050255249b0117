"""Kafka's reassignment document: what all who read one ask of it.

Called by `optimizer.policies.comparison` and `trimtab.execution.directories`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster_model.errors import InputError, Problem
from cluster_model.json_source import json_document

Entry = Mapping[str, Any]


def reassignment_entries(text: str, name: str, remedy: str) -> list[tuple[str, Entry, str | None]]:
    """Place and entry of each partition, and what is wrong with it; where nothing is (None), it has a topic, a number and replicas.

    `name` is what messages call the text, and `remedy` says which file to give where it is none.

    Raises
    ------
    InputError
        Not such a document.
    """
    document = json_document(text, name, remedy)
    listed = document.get("partitions") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise InputError(name, [Problem("partitions", "expected a list of partitions, found none; give Kafka's reassignment file")])
    return [(f"partitions[{i}]", entry, _wrong(entry)) for i, entry in enumerate(listed)]


def _wrong(entry: Any) -> str | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("topic"), str) or not _is_whole(entry.get("partition")):
        return f"expected a topic and a partition number, found {str(entry)[:60]}; correct the entry"
    replicas = entry.get("replicas")
    if not isinstance(replicas, list) or not replicas or not all(map(_is_whole, replicas)):
        return f"expected a list of broker ids as replicas, found {str(replicas)[:60]}; correct the entry"
    return None


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
