"""Runs the command line as a person would, in this process or in one of its own."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trimtab.cli import main

REPOSITORY = Path(__file__).parents[3]


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code, data, story."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class CommandLine:
    """`trimtab` in this process; calling it runs one command."""

    captured: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str | Path) -> Ended:
        self.captured.readouterr()
        with logging_kept():
            code = main([str(a) for a in arguments])
        out, err = self.captured.readouterr()
        return Ended(code, out, err)


@contextmanager
def logging_kept() -> Iterator[None]:
    """Puts the handlers of the root logger back, which the command line sets."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def process(*arguments: str | Path, before: str = "", keep: int | None = None) -> subprocess.Popen[bytes]:
    """`trimtab` as a process of its own, after the Python statements `before`, which may use the open file `keep`."""
    code = f"import sys\n{before}\nfrom trimtab.__main__ import run\nrun()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=() if keep is None else (keep,),
    )


def finished(started: subprocess.Popen[bytes]) -> Ended:
    """Waits for the end of `started`."""
    out, err = started.communicate(timeout=120)
    return Ended(started.returncode, out.decode(), err.decode())


def cluster(**changes: Any) -> dict[str, Any]:
    """A snapshot document: three brokers in three racks, six partitions, none on broker 3."""
    partitions = [
        partition("orders", 0, [1, 2]),
        partition("orders", 1, [1, 2]),
        partition("clicks", 0, [1, 2]),
        partition("users", 0, [2, 1]),
        partition("users", 1, [1, 2]),
        partition("users", 2, [2, 1]),
    ]
    brokers = [{"id": i, "rack": f"r{i}", "capacity": {"disk": 1e12}} for i in (1, 2, 3)]
    return {
        "version": 1,
        "cluster_id": "test",
        "taken_at": "2026-11-20T12:00:00Z",
        "storage": "local",
        "brokers": brokers,
        "partitions": partitions,
    } | changes


def partition(topic: str, number: int, replicas: list[int], disk: float = 1e9) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": number,
        "replicas": replicas,
        "leader": replicas[0],
        "leader_load": {"network_in": 1e6, "disk": disk},
    }


def snapshot_file(folder: Path, **changes: Any) -> Path:
    path = folder / "cluster.json"
    path.write_text(json.dumps(cluster(**changes)))
    return path


def plan_of(text: str) -> dict[str, Any]:
    """The plan file in `text`."""
    document: dict[str, Any] = json.loads(text)
    assert document["version"] == 1
    return document
