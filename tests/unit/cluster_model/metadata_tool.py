"""What Kafka's `DumpLogSegments` prints of a metadata log, beside what we read of it.

Used by the tests on the recorded log and on real Kafka.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from cluster_model.metadata.batches import TornError, decoded, read_batches
from cluster_model.metadata.wire import uuid_text


def read_records(path: Path) -> dict[int, tuple[str, dict[str, Any]]]:
    """Offset -> name and fields, ids as text, of every record in a file."""
    found: dict[int, tuple[str, dict[str, Any]]] = {}
    first = int(path.stem) if path.suffix == ".log" else 0
    with path.open("rb") as file, suppress(TornError):
        for data, placed in read_batches(file.fileno(), 0, first):
            for at, batch in placed:
                for offset, record in decoded(data, at, batch):
                    assert record.name is not None
                    found[offset] = (record.name, plain(record.fields))
    return found


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return uuid_text(value)
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    return [plain(x) for x in value] if isinstance(value, list) else value


def dumped(text: str) -> dict[str, dict[int, tuple[str, dict[str, Any]]]]:
    """What `DumpLogSegments` printed: file -> offset -> type and fields."""
    files: dict[str, dict[int, tuple[str, dict[str, Any]]]] = {}
    current: dict[int, tuple[str, dict[str, Any]]] = {}
    for line in text.splitlines():
        if line.startswith("Dumping "):
            current = files[line.removeprefix("Dumping ")] = {}
        elif match := re.match(r"\| offset: (\d+) .*?payload: (\{.*\})$", line):
            record = json.loads(match[2])
            current[int(match[1])] = (record["type"], record["data"])
        elif match := re.match(r"\| offset: (\d+) (?:.* )?(\w+):? (\{.*\})$", line):
            current[int(match[1])] = (match[2], json.loads(match[3]))
    return files


def tool_name(name: str) -> str:
    """`PartitionRecord` as the tool writes it; names of control records are the same."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).upper() if name.endswith("Record") else name


DEFAULTS: tuple[Any, ...] = (None, [], -2, -1, 0, False, uuid_text(bytes(16)))


def filled(ours: Any, theirs: Any) -> Any:
    """What the tool says, with the defaults that it leaves out and we have."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        missing = {key: value for key, value in ours.items() if key not in theirs and value in DEFAULTS}
        return {**missing, **{key: filled(ours.get(key), value) for key, value in theirs.items()}}
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [filled(a, b) for a, b in zip(ours, theirs, strict=True)]
    return theirs
