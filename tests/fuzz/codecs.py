"""Runs every decoder under atheris, one after the other, each in a process of its own with little memory.

    pip install atheris          # Linux, some releases of Python; nothing of ours needs it
    python -m tests.fuzz.codecs --seconds 300                     # for each decoder
    python -m tests.fuzz.codecs --seconds 3600 --only automq --corpus FOLDER

The properties are in `tests.fuzz.decoders` and `tests.fuzz.metadata`. Where numba is not installed, kernels run as Python and are seen
into. An input that takes more than 5 s or a GiB counts as a finding. Ends with 1 when there is one; its bytes are in the corpus folder,
and `--only DECODER --input FILE` replays it.
"""

from __future__ import annotations

import argparse
import importlib
import re
import resource
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

METRIC_TARGETS = {"own": 0, "own-signed": 1, "automq": 2, "cruise-control": 3}
METADATA_TARGETS = ("record", "control", "batch", "fold")
TARGETS = (*METRIC_TARGETS, *METADATA_TARGETS)
MAX_INPUT = 8192
SECONDS_FOR_ONE = 5
MEMORY = 1 << 30
ROOMS = ("metrics_reporter", "cluster_model")


def property_of(target: str) -> Callable[[bytes], None]:
    """What must hold for every input of a target."""
    if target in METADATA_TARGETS:
        found: Callable[[bytes], None] = getattr(importlib.import_module("tests.fuzz.metadata"), target)
        return found
    one_input: Callable[[bytes], None] = importlib.import_module("tests.fuzz.decoders").one_input
    kind = bytes([METRIC_TARGETS[target]])
    return lambda data: one_input(kind + data)


def seeds_of(target: str) -> list[bytes]:
    """Inputs that are in order, from which to start."""
    if target in METADATA_TARGETS:
        found: list[bytes] = importlib.import_module("tests.fuzz.metadata").seeds()[target]
        return found
    sample = importlib.import_module("metrics_reporter.sample")
    encode = importlib.import_module("metrics_reporter.codec").encode
    head = sample.BatchHeader(1, 2, 3, 4, 5)
    samples = (sample.Sample(sample.Scope.LEADER, "t", 0, "cpu", 1.0), sample.Sample(sample.Scope.BROKER, None, None, "cpu", 2.0))
    own = encode(sample.SampleBatch(head, samples))
    records = {
        "own": [own],
        "own-signed": [own[5:-4]],
        "automq": [
            struct.pack(">bbqiiibiibd", 0, 0, 5000, 1, 0, 1, ord("t"), 3, 1, 0, 1.5),
            struct.pack(">bbqiiibd", 1, 0, 5000, 1, 0, 1, 3, 1.5),
        ],
        "cruise-control": [
            struct.pack(">bbbqid", 0, 0, 0, 5000, 1, 2.0),
            struct.pack(">bbbqiibd", 1, 0, 2, 5000, 1, 1, ord("t"), 2.0),
            struct.pack(">bbbqiibid", 2, 0, 4, 5000, 1, 1, ord("t"), 1, 2.0),
        ],
    }[target]
    padded = [r + b"\x07" * (-len(r) % 4) for r in records]
    one_by_one = [bytes([len(r) // 4]) + r for r in padded]
    return [*one_by_one, b"".join(one_by_one)]


def fuzz(target: str, seconds: int, corpus: Path) -> None:
    """Run one target in this process; does not return."""
    atheris = importlib.import_module("atheris")
    resource.setrlimit(resource.RLIMIT_AS, (4 * MEMORY, 4 * MEMORY))
    with atheris.instrument_imports(include=list(ROOMS)):
        holds = property_of(target)
        for number, seed in enumerate(seeds_of(target)):
            (corpus / f"seed-{number}").write_bytes(seed)
    options = [
        f"-max_total_time={seconds}", f"-max_len={MAX_INPUT}", f"-timeout={SECONDS_FOR_ONE}", f"-rss_limit_mb={MEMORY >> 20}",
        f"-artifact_prefix={corpus.parent}/{target}-", "-print_final_stats=1", "-use_value_profile=1",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], holds)
    atheris.Fuzz()


def run(target: str, seconds: int, folder: Path) -> bool:
    """Fuzz one target in a process of its own, and print what came of it; whether nothing was found."""
    corpus = folder / target
    corpus.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.codecs", "--child", "--only", target, "--seconds", str(seconds), "--corpus", str(corpus)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    figures = dict(re.findall(r"stat::(\w+):\s+(\d+)", done.stderr))
    executed, rate = int(figures.get("number_of_executed_units", 0)), int(figures.get("average_exec_per_sec", 0))
    peak = figures.get("peak_rss_mb", "?")
    word = "nothing found" if done.returncode == 0 else "FOUND"
    sys.stdout.write(f"{target:15} {executed:>12,} inputs  {rate:>8,} a second  {peak:>5} MB at most  {word}\n")
    sys.stdout.flush()
    if done.returncode != 0:
        told = [line for line in done.stderr.splitlines() if not line.startswith(("#", "INFO", "stat::"))]
        sys.stderr.write("\n".join(told[-60:]) + "\n")
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description="fuzz the decoders with atheris")
    parser.add_argument("--seconds", type=int, default=60, help="for each decoder (default 60)")
    parser.add_argument("--only", choices=TARGETS, help="one decoder")
    parser.add_argument("--corpus", type=Path, help="folder that keeps inputs and findings (default: one of its own)")
    parser.add_argument("--input", type=Path, help="replay one input of the decoder that --only names")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.input is not None:
        if chosen.only is None:
            parser.error("--input needs --only")
        property_of(chosen.only)(chosen.input.read_bytes())
        return 0
    if find_spec("atheris") is None:
        parser.error("atheris is not installed here: pip install atheris (Linux, some releases of Python)")
    if chosen.child:
        fuzz(chosen.only, chosen.seconds, chosen.corpus)
    folder = (chosen.corpus or Path(tempfile.mkdtemp(prefix="trimtab-fuzz-"))).resolve()
    sys.stderr.write(f"inputs and findings are in {folder}\n")
    results = [run(target, chosen.seconds, folder) for target in ([chosen.only] if chosen.only else TARGETS)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
