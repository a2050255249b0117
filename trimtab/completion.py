"""What a shell may complete: presets, clusters, and brokers, topics and partitions of the snapshot on the same line.

Called by the command line while it completes. Asks no cluster, and says nothing where a file cannot be read: a half written line is no
mistake.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cluster_model.errors import TrimtabError


def presets() -> list[str]:
    """Shipped goal sets."""
    from goals.registry import PRESETS

    return sorted(PRESETS)


def policy_presets() -> list[str]:
    """Shipped policies."""
    from optimizer.policies.registry import PRESET_WORDS

    return sorted(PRESET_WORDS)


def clusters() -> list[str]:
    """Clusters that `trimtab.toml` describes."""
    from trimtab.defaults import cluster_names

    return cluster_names(os.environ, Path.cwd())


def tuned_keys() -> list[str]:
    """Keys of a goal that `tune` may change."""
    from goals.calibration.advice import KEYS

    return list(KEYS)


def brokers(context: Any) -> list[str]:
    """Brokers of the snapshot that the line names."""
    snapshot = _snapshot(context)
    return [] if snapshot is None else [str(broker) for broker in snapshot.broker_ids.tolist()]


def topics(context: Any) -> list[str]:
    """Topics of the snapshot that the line names."""
    snapshot = _snapshot(context)
    return [] if snapshot is None else sorted(snapshot.topics)


def partitions(context: Any) -> list[str]:
    """Topic-partitions of the snapshot that the line names, as ``TOPIC-N``."""
    snapshot = _snapshot(context)
    if snapshot is None:
        return []
    names = (snapshot.topics[topic] for topic in snapshot.partition_topic.tolist())
    return [f"{topic}-{number}" for topic, number in zip(names, snapshot.partition_number.tolist(), strict=True)]


def _snapshot(context: Any) -> Any:
    path = context.params.get("snapshot")
    if path is None or str(path) == "-":
        return None
    from cluster_model.files import read_snapshot

    return read_snapshot(path)


BROKERS = ("remove_broker", "exclude_broker", "broker")
AFTER_COMMA = {*BROKERS, "only"}
BY_PARAMETER: dict[str, Callable[..., Iterable[str]]] = {
    "preset": presets, "cluster": clusters, "only": tuned_keys, "partition": partitions, "like": topics, "exclude_topic": topics,
    **dict.fromkeys(BROKERS, brokers),
}  # fmt: skip
BY_COMMAND: dict[tuple[str, str], Callable[..., Iterable[str]]] = {("policies show", "name"): policy_presets}


def completer(command: str, parameter: str) -> Callable[[Any, Any, str], list[str]] | None:
    """What completes a parameter of a command such as ``goals check``, in the form that the parsing library takes."""
    asked = BY_COMMAND.get((command, parameter)) or BY_PARAMETER.get(parameter)
    if asked is None:
        return None
    takes_context = asked.__code__.co_argcount == 1

    def complete(context: Any, _: Any, started: str) -> list[str]:
        try:
            known = asked(context) if takes_context else asked()
        except (TrimtabError, OSError):
            return []
        before, comma, word = started.rpartition(",") if parameter in AFTER_COMMA else ("", "", started)
        return [f"{before}{comma}{name}" for name in known if name.startswith(word)]

    return complete
