"""Answers of Prometheus to range queries (``/api/v1/query_range``), read one file after the other into points of series.

Called by `spark.history.prometheus_form`. Points go to files of one day each, so that only a file and a day are in memory at a time.
Plain Python and numpy: JSON is parsed faster here than Spark starts.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cluster_model.errors import InputError, Problem
from spark.history.mapping import PrometheusMapping, Source
from spark.history.refused import Refused

NOT_AN_ANSWER = "file is no answer to a range query"
NOT_MAPPED = "series is not in the mapping"
NO_BROKER = "broker is not in the labels"
NO_PARTITION = "partition is no number"
NO_NUMBER = "value is no number"
DAY_US = 86_400_000_000
LARGEST_INT = 2**31 - 1
POINT = np.dtype([("time", np.int64), ("series", np.int32), ("value", np.float64)])
"""Time in microseconds since 1970, place in the list of series, value as it was read."""
Points = npt.NDArray[Any]
Read = Callable[[int, int], None]
"""Hears how many files were read, and of how many."""


class Series(NamedTuple):
    """One series of the answers: where it belongs, `origin` (place in the mapping's sources), its labels as text, a file it is in."""

    origin: int
    cluster_id: str | None
    broker: int
    topic: str | None
    partition: int | None
    labels: str
    file: str

    @property
    def source(self) -> str:
        return f"{self.file} {self.labels}"


@dataclass
class Answers:
    """What was read: the series, and per day (since 1970) the files with its points."""

    folder: Path
    series: list[Series] = field(default_factory=list)
    days: dict[int, list[Path]] = field(default_factory=dict)
    points: int = 0

    def points_of(self, day: int) -> Points:
        """All points of a day, in any order."""
        return np.concatenate([np.load(path) for path in self.days[day]])

    def keep(self, points: Points) -> None:
        """Put points aside by their days."""
        day = points["time"] // DAY_US
        for one in np.unique(day).tolist():
            files = self.days.setdefault(one, [])
            files.append(self.folder / f"{one}-{len(files)}.npy")
            np.save(files[-1], points[day == one])
        self.points += len(points)


def files_of(paths: Sequence[str]) -> list[Path]:
    """Files of paths, folders and patterns, each once, in order; names that start with a point or ``_`` are passed over in folders.

    Raises
    ------
    InputError
        There is nothing at one of them, or it is a URI.
    """
    found: dict[Path, None] = {}
    problems = []
    for path in paths:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path):
            problems.append(Problem(path, "expected files of this machine, found a URI; copy the answers here, or ask the server (--url)"))
            continue
        named = [Path(path)] if Path(path).exists() else [Path(one) for one in sorted(glob(path))]
        inside = [file for one in named for file in (_inside(one) if one.is_dir() else [one])]
        if not inside:
            problems.append(Problem(path, "expected answers of Prometheus, found no file"))
        found.update(dict.fromkeys(inside))
    if problems:
        raise InputError("--from", problems)
    return list(found)


def _inside(folder: Path) -> list[Path]:
    return sorted(one for one in folder.rglob("*") if one.is_file() and not one.name.startswith((".", "_")))


def read_answers(
    files: Sequence[Path], mapping: PrometheusMapping, cluster_id: str | None, folder: Path, refused: Refused, read: Read | None = None
) -> Answers:
    """Every point that belongs somewhere; the others are told to `refused`. Points are kept in files below `folder`."""
    answers = Answers(folder)
    sorter = _Sorter(mapping, cluster_id)
    known: dict[tuple[int, str], int] = {}
    for number, file in enumerate(files):
        parts = [
            part
            for labels, values in _series_in(file, refused)
            if (part := _points(sorter.series(labels, file), labels, values, answers.series, known, refused)) is not None
        ]
        if parts:
            answers.keep(np.concatenate(parts))
        if read is not None:
            read(number + 1, len(files))
    return answers


def _series_in(file: Path, refused: Refused) -> Iterator[tuple[dict[str, str], list[Any]]]:
    """Labels and values of each series in a file; a file that is no answer is refused."""
    try:
        raw = file.read_bytes()
        answer = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except (OSError, EOFError, ValueError, RecursionError) as error:
        refused.add(NOT_AN_ANSWER, f"{file} {error}")
        return
    data = answer.get("data") if isinstance(answer, dict) else None
    result = data.get("result") if isinstance(data, dict) and data.get("resultType") == "matrix" else None
    if not isinstance(result, list) or answer.get("status") != "success":
        said = answer.get("error") if isinstance(answer, dict) else None
        refused.add(NOT_AN_ANSWER, f"{file} {said or ''}".strip())
        return
    for one in result:
        labels, values = (one.get("metric"), one.get("values")) if isinstance(one, dict) else (None, None)
        if isinstance(labels, dict) and isinstance(values, list):
            yield {str(key): str(value) for key, value in labels.items()}, values


class _Sorter:
    """Which source of the mapping a series is, and where it belongs."""

    def __init__(self, mapping: PrometheusMapping, cluster_id: str | None) -> None:
        self._mapping, self._cluster_id = mapping, cluster_id
        self._broker = re.compile(mapping.broker_id.pattern)
        self._sources = [(source, _file_pattern(source)) for source in mapping.sources()]

    def series(self, labels: dict[str, str], file: Path) -> Series | str:
        """The series, or the reason why it is none."""
        mapping = self._mapping
        origin = self._origin(labels, file.name)
        if origin is None:
            return NOT_MAPPED
        broker = self._broker_of(labels.get(mapping.broker_id.label))
        if broker is None:
            return NO_BROKER
        number = labels.get(mapping.partition_label)
        partition = _int(number)
        if number is not None and partition is None:
            return NO_PARTITION
        cluster_id = labels.get(mapping.cluster_label, self._cluster_id) if mapping.cluster_label else self._cluster_id
        return Series(origin, cluster_id, broker, labels.get(mapping.topic_label), partition, text_of(labels), str(file))

    def _origin(self, labels: dict[str, str], file: str) -> int | None:
        topic, partition = self._mapping.topic_label in labels, self._mapping.partition_label in labels
        shape = "broker" if not topic and not partition else "topic" if topic and not partition else "partition" if topic else ""
        name = labels.get("__name__", "").lower()
        for place, (source, pattern) in enumerate(self._sources):
            wanted = source.series
            about = source.about if source.about in ("broker", "topic") else "partition"
            if (
                about == shape and (wanted.name is None or wanted.name.lower() == name)
                and (pattern is None or pattern.fullmatch(file)) and all(labels.get(k) == v for k, v in wanted.labels.items())
            ):  # fmt: skip
                return place
        return None

    def _broker_of(self, label: str | None) -> int | None:
        """Id by the list, else by the pattern; None where neither says."""
        if label is None:
            return None
        known = self._mapping.broker_id.ids.get(label)
        if known is not None:
            return known
        found = self._broker.search(label)
        return _int(found[1]) if found is not None else None


def _file_pattern(source: Source) -> re.Pattern[str] | None:
    wanted = source.series.file
    return None if wanted is None else re.compile(".*".join(map(re.escape, wanted.split("*"))), re.DOTALL)


def _int(text: str | None) -> int | None:
    try:
        number = int(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and abs(number) <= LARGEST_INT else None


def text_of(labels: dict[str, str]) -> str:
    return json.dumps(labels, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def _points(
    found: Series | str, labels: dict[str, str], values: list[Any], series: list[Series], known: dict[tuple[int, str], int],
    refused: Refused,
) -> Points | None:  # fmt: skip
    """The points of a series; None where it has none that count."""
    try:
        times = np.array([point[0] for point in values], np.float64)
        numbers = np.array([point[1] for point in values], np.float64)
    except (TypeError, ValueError, IndexError, KeyError):
        return _points_singly(found, labels, values, series, known, refused)
    if isinstance(found, str):
        name = labels.get("__name__", "").lower()
        refused.add(found, _source(found, labels, refused), len(values), lambda: {"time": _micros(times), "value": numbers, "metric": name})
        return None
    place = known.setdefault((found.origin, found.labels), len(series))
    if place == len(series):
        series.append(found)
    points = np.empty(len(times), POINT)
    points["time"], points["series"], points["value"] = _micros(times), place, numbers
    return points


def _points_singly(
    found: Series | str, labels: dict[str, str], values: list[Any], series: list[Series], known: dict[tuple[int, str], int],
    refused: Refused,
) -> Points | None:  # fmt: skip
    """The same, value by value: what is no number is refused by itself."""
    good = []
    for point in values:
        try:
            good.append([float(point[0]), float(point[1])])
        except (TypeError, ValueError, IndexError, KeyError):
            source = _source(found, labels, refused) if isinstance(found, str) else found.source
            refused.add(found if isinstance(found, str) else NO_NUMBER, source)
    return _points(found, labels, good, series, known, refused) if good else None


def _source(found: str, labels: dict[str, str], refused: Refused) -> str:
    """Text of a series that is refused; of unmapped ones only where it is needed, since most series of a server may be such."""
    return refused.example(found) or text_of(labels)


def _micros(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.asarray(np.round(seconds * 1e6), np.int64)
