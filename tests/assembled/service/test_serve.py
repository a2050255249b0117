"""The file is refused with everything that is wrong in it, and the service starts, waits and ends as asked, also without a cluster."""

from __future__ import annotations

import json
import logging
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from cluster_model.errors import ConfigurationError, ExternalError
from goals.document import parse_goals
from goals.registry import PRESETS
from tests.assembled.commands.command_line import REPOSITORY, CommandLine, finished, process
from tests.assembled.service.beside import World, _Reach, configured
from trimtab import Balancer
from trimtab.commands.serve import Teller
from trimtab.service.config import HistoryPart, load_config
from trimtab.service.goals import goals_text
from trimtab.service.keeping import SampleKeeper

SMALLEST = "version: 1\nkafka: {bootstrap_servers: '127.0.0.1:9092'}\nnode_id: 100\n"


def problems(folder: Path, text: str) -> list[str]:
    path = folder / "service.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        load_config(path)
    return [str(problem) for problem in refused.value.problems]


def test_the_shipped_example_and_the_smallest_file_are_valid(tmp_path: Path) -> None:
    example = load_config(REPOSITORY / "examples" / "service.yaml")
    assert (example.mode, example.node_id, example.interval) == ("dry-run", 100, 300.0)
    path = tmp_path / "service.yaml"
    path.write_text(SMALLEST)
    config = load_config(path)
    assert config.history.folder == str(tmp_path / "history"), "paths are relative to the file"
    assert (config.topic_name, config.preset_name, config.look_seconds) == ("__trimtab_metrics", "default", 2.0)
    assert (config.http.host, config.mode) == ("127.0.0.1", "dry-run")


def test_throttle_and_reserve_are_read_as_the_commands_read_them(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(SMALLEST + "execution: {throttle: auto, reserve: 0}\n")
    execution = load_config(tmp_path / "good.yaml").execution
    assert (execution.throttle, execution.reserve) == ("auto", 0)
    [problem] = problems(tmp_path, SMALLEST + "execution: {throttle: 50}\n")
    assert "write 50MB/s" in problem


def test_every_mistake_is_told_at_once_with_its_place_and_what_was_meant(tmp_path: Path) -> None:
    text = """
version: 1
kafka: {bootstrap_servers: broker1}
nodeid: 3
mode: dryrun
interval: 5 parsecs
budgets: {max_move: 3, max_bytes: -1}
limits: {cooldown: 0}
readiness: {covered: 2}
topic: {format: autoMQ}
model: {interval: 3s}
http: {prot: 3}
"""
    found = problems(tmp_path, text)
    for place, message in [
        ("kafka.bootstrap_servers", "expected HOST:PORT such as 127.0.0.1:9092, found 'broker1' (line 3)"),
        ("nodeid", "did you mean 'node_id'? (line 4)"),
        ("mode", "did you mean 'dry-run'?"),
        ("interval", "unknown unit 'parsecs'"),
        ("budgets.max_move", "did you mean 'max_moves'?"),
        ("budgets.max_bytes", "-1"),
        ("limits.cooldown", "expected more than 0"),
        ("readiness.covered", "expected a number of at most 1, found 2"),
        ("topic.format", "did you mean 'automq'?"),
        ("model.interval", "'interval' belongs"),
        ("http.prot", "did you mean 'port'?"),
    ]:
        assert any(line.startswith(f"{place}:") and message in line for line in found), (place, message, found)


def test_what_does_not_go_together_and_what_is_not_there(tmp_path: Path) -> None:
    text = (
        "version: 1\nkafka: {bootstrap_servers: '127.0.0.1:9092', command_config: no.properties}\ngoals: no.yaml\n"
        "preset: defaults\nkraft_log: nowhere\ncapacity: none.yaml\nmodel: {short: 1h}\n"
    )
    found = problems(tmp_path, text)
    assert len(found) == 7, found
    assert any(f.startswith("node_id: missing; expected the node.id of the controller") for f in found)
    assert any("unknown preset 'defaults'; did you mean 'default'" in f for f in found)
    assert any(f.startswith(f"kraft_log: there is no folder {tmp_path / 'nowhere'}") for f in found)


def test_what_is_not_there_is_told_with_the_misspelt_keys(tmp_path: Path) -> None:
    """All in one round, each with its place, the HTTP interface too."""
    (tmp_path / "history").write_text("")
    found = problems(
        tmp_path,
        "version: 1\nkafka: {bootstrap_servers: '127.0.0.1:9092', command_config: no.properties}\nmoode: auto\n"
        "goals: no.yaml\npreset: defaults\nkraft_log: nowhere\ncapacity: none.yaml\nmodel: {short: 1h, shortt: 2}\n"
        "http: {host: 0.0.0.0, token_file: token}\n",
    )
    for complaint in (
        "moode: unknown key; did you mean 'mode'? (line 3)",
        "node_id: missing; expected the node.id of the controller",
        f"kafka.command_config: there is no file {tmp_path / 'no.properties'} (line 2)",
        f"goals: there is no file {tmp_path / 'no.yaml'} (line 4)",
        "preset: unknown preset 'defaults'; did you mean 'default'? (line 5)",
        f"kraft_log: there is no folder {tmp_path / 'nowhere'} (line 6)",
        f"capacity: there is no file {tmp_path / 'none.yaml'} (line 7)",
        "model.short: expected at most model.long, 1800s, found 3600s (line 8)",
        "model.shortt: unknown key; did you mean 'short'? (line 8)",
        "http.host: 0.0.0.0 is beyond loopback",
        f"http.token_file: expected a readable ASCII file with the token at {tmp_path / 'token'}",
        f"history.folder: expected a folder, found a file at {tmp_path / 'history'}",
    ):
        assert any(line.startswith(complaint) for line in found), (complaint, found)


def test_a_node_that_is_not_the_one_of_the_metadata_log_is_refused(tmp_path: Path) -> None:
    """A copied file: it would decide while the node of the other one is the active controller."""
    log = tmp_path / "__cluster_metadata-0"
    log.mkdir()
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=101\n")
    (found,) = problems(tmp_path, SMALLEST + f"kraft_log: {log}\n")
    assert found.startswith("node_id: expected the controller that kraft_log belongs to, found 100; ")
    assert "by its meta.properties kraft_log is of node 101 (line 3)" in found
    (found,) = problems(tmp_path, SMALLEST.replace("node_id: 100\n", "") + f"kraft_log: {log}\n")
    assert "node_id: missing" in found
    assert "kraft_log is of node 101" in found
    path = tmp_path / "service.yaml"
    path.write_text(SMALLEST.replace("100", "101") + f"kraft_log: {log}\n")
    assert load_config(path).kraft_log == str(log)


def test_the_goals_in_force_read_back_as_the_same_goals() -> None:
    kinds = """
version: 1
goals:
  - {kind: usage_distribution, resource: network_in, var: 100MiB, min_load: 1MiB, tail: absolute, group: net}
  - {kind: usage_distribution, resource: disk, var: 5GB, hard: true}
  - {kind: count_limit, resource: replicas, max: 4000}
constraints: {exclude_topics: ["__*"], exclude_brokers: [3]}
policy: {detector: {kind: cv, threshold: 0.4}}
"""
    for goals in [parse_goals(kinds, "file"), *(parse_goals(f"version: 1\npreset: {p}\n", p) for p in PRESETS)]:
        again = parse_goals(goals_text(goals), "again")
        assert (again.digest, again.policy) == (goals.digest, goals.policy)


def test_serve_check_says_what_is_wrong_and_changes_nothing(tmp_path: Path, trimtab: CommandLine) -> None:
    path = tmp_path / "service.yaml"
    path.write_text(SMALLEST + "goals: goals.yaml\n")
    (tmp_path / "goals.yaml").write_text("version: 1\ngoals: [{kind: usage_distribution, resource: netwrk_in}]\n")
    ended = trimtab("serve", "--config", path, "--check")
    assert ended.code == 2
    assert "did you mean 'network_in'" in ended.err
    (tmp_path / "goals.yaml").write_text("version: 1\npreset: counts\n")
    assert trimtab("serve", "--config", path, "--check").code == 0
    assert not (tmp_path / "history").exists()


def test_serve_check_looks_at_the_interface_too(tmp_path: Path, trimtab: CommandLine) -> None:
    path = tmp_path / "service.yaml"
    path.write_text(SMALLEST + "preset: counts\nhttp: {host: 0.0.0.0}\n")
    ended = trimtab("serve", "--config", path, "--check")
    assert ended.code == 2
    assert "0.0.0.0 is beyond loopback" in ended.err


def test_two_services_do_not_share_a_history(tmp_path: Path) -> None:
    (tmp_path / "goals.yaml").write_text("version: 1\npreset: counts\n")
    config = configured(tmp_path)  # nothing answers at its address
    first, second = Balancer(config), Balancer(config)
    with first, pytest.raises(ExternalError, match="another process writes this history; stop it, or give this one another folder"):
        second.start()
    with second:
        pass


def test_a_history_that_cannot_be_written_is_told_once_at_the_start_with_what_to_do(tmp_path: Path) -> None:
    """Not as a bug, nor hours later when the first decision is due."""
    (tmp_path / "goals.yaml").write_text("version: 1\npreset: counts\n")
    (tmp_path / "file").write_text("")
    beyond = Balancer(configured(tmp_path, history={"folder": str(tmp_path / "file" / "history")}))
    with pytest.raises(ExternalError, match="file/history: the history cannot be written: Not a directory for user "):
        beyond.start()


@pytest.mark.parametrize("name", ["samples", "decisions.db"])
def test_a_part_of_the_history_that_belongs_to_another_user_is_told_at_the_start(name: str) -> None:
    """A service that was tried as root first: the folder is given away afterwards, and what is in it is forgotten."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        kept = Path(folder) / name
        if name == "samples":
            kept.mkdir()
        else:
            kept.touch()
        kept.chmod(0o500)
        code = (
            "import os\nfrom pathlib import Path\nfrom trimtab.history.lock import require_writable\n"
            "if os.geteuid() == 0: os.seteuid(65534)\n"
            f"require_writable(Path({folder!r}), [{name!r}])"
        )
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert f"{kept}: the history cannot be written: Permission denied for user" in ended.stderr
    assert "; give it to the user that runs this, or name another folder" in ended.stderr


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_service_whose_cluster_is_away_waits_and_ends_at_once_when_told_to(tmp_path: Path, sent: signal.Signals) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nothing listens there
        path = tmp_path / "service.yaml"
        port = taken.getsockname()[1]
        path.write_text(
            f"version: 1\nkafka: {{bootstrap_servers: '127.0.0.1:{port}'}}\nnode_id: 100\nhttp: {{enabled: false}}\n"
            "goals: goals.yaml\n"
        )
        (tmp_path / "goals.yaml").write_text("version: 1\npreset: counts\n")
        started = process("--log-format", "json", "serve", "--config", path)
        lines = _Lines(started)
        assert lines.until("metadata: expected a Kafka broker, found none")
        (tmp_path / "goals.yaml").write_text("version: 1\ngoals: [{kind: nonsense}]\n")
        started.send_signal(signal.SIGHUP)
        assert lines.until("the old goals stay in force")
        (tmp_path / "goals.yaml").write_text("version: 1\npreset: default\n")
        started.send_signal(signal.SIGHUP)
        assert lines.until("goals reloaded from")
        begun = time.monotonic()
        started.send_signal(sent)
        assert lines.until(f"stopping: {sent.name}")
        started.send_signal(sent)  # a terminal, a script and a supervisor: each sends one
        assert lines.until("stopped")
        started.send_signal(sent)
        assert started.wait(30) == 0, lines.seen
        assert time.monotonic() - begun < 8


def test_ended_while_the_planner_is_compiled_it_does_not_take_the_compiler_away_from_its_thread(tmp_path: Path) -> None:
    """Python's own way out did: now and then LLVM aborted the process, exit code -6, or it took seconds."""
    before = (
        "import atexit, os, threading\nimport trimtab.warmup\ntrimtab.warmup.warm_up = threading.Event().wait\n"
        "atexit.register(lambda: os.abort() if any(t.name == 'trimtab-planner' for t in threading.enumerate()) else None)"
    )
    (tmp_path / "service.yaml").write_text(SMALLEST + "http: {enabled: false}\npreset: counts\n")
    started = process("--log-format", "json", "serve", "--config", tmp_path / "service.yaml", before=before)
    lines = _Lines(started)
    assert lines.until("Starting, for")
    started.send_signal(signal.SIGTERM)
    assert lines.until("stopped"), lines.seen
    assert started.wait(30) == 0


@pytest.mark.parametrize("sent", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_while_it_still_loads_is_no_crash_and_leaves_nothing_behind(tmp_path: Path, sent: str) -> None:
    """A rollout that is taken back at once. SIGHUP is no wish to end."""
    (tmp_path / "service.yaml").write_text(SMALLEST + "preset: counts\nhttp: {host: 192.0.2.1, read: open, plain_beyond_loopback: true}\n")
    before = (
        "import signal\nclass Early:\n    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'trimtab.service.balancer': signal.raise_signal(signal.{sent})\n"
        "sys.meta_path.insert(0, Early())"
    )
    ended = finished(process("serve", "--config", tmp_path / "service.yaml", before=before))
    if sent == "SIGHUP":
        assert ended.code == 1
        assert "cannot listen on 192.0.2.1" in ended.err, "it went on, to an address that no machine has"
    else:
        assert (ended.code, ended.err.splitlines()[-1].endswith("stopped")) == (0, True), ended.err
        assert not (tmp_path / "history").exists()


class _Lines:
    """What a process says on stderr, as messages."""

    def __init__(self, started: subprocess.Popen[bytes]) -> None:
        assert started.stderr is not None
        self._stream, self.seen = started.stderr, list[str]()

    def until(self, text: str) -> bool:
        while line := self._stream.readline():
            self.seen.append(json.loads(line)["message"])
            if text in self.seen[-1]:
                return True
        return False


def test_a_program_can_embed_it_and_keeps_its_signals(tmp_path: Path) -> None:
    world = World(tmp_path)
    for _ in range(20):
        world.pass_time(5)
    (tmp_path / "goals.yaml").write_text("version: 1\npreset: counts\n")
    handlers = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    planned = threading.Event()
    with Balancer(configured(tmp_path), reach=_Reach(world), clock=world.clock) as balancer:
        balancer.watch(lambda: planned.set() if balancer.decisions(1) else None)
        assert planned.wait(120), balancer.state()
        assert {s: signal.getsignal(s) for s in handlers} == handlers
        assert all(w.alive for w in balancer.state().workers)
    assert not [t.name for t in threading.enumerate() if t.name.startswith("trimtab-")]


def test_a_second_service_on_the_same_history_says_so_and_plans_on(tmp_path: Path) -> None:
    """Two would write the same samples twice; the second one goes without a history of samples."""
    world = World(tmp_path)
    (tmp_path / "goals.yaml").write_text("version: 1\npreset: counts\n")
    one, two = (Balancer(configured(tmp_path), reach=_Reach(world), clock=world.clock) for _ in range(2))
    for balancer in (one, two):
        balancer.workers["metadata"].once()
    two.workers["history"].once()
    assert not two.state().healthy
    assert "another process writes this history" in two.state().why_unhealthy[0]
    one.stop()
    two.workers["history"].once()
    assert two.state().healthy
    two.stop()


def test_two_threads_that_open_the_history_of_samples_are_not_in_each_others_way(tmp_path: Path) -> None:
    """The one that came second took the folder for another process's, and the service said that it was ill."""
    keeper = SampleKeeper(HistoryPart(folder=str(tmp_path)), World(tmp_path).clock)
    both, opened, failed = threading.Barrier(8), list[bool](), list[Exception]()

    def opens() -> None:
        both.wait()
        try:
            opened.append(keeper.open("cluster"))
        except ExternalError as error:
            failed.append(error)

    threads = [threading.Thread(target=opens) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keeper.close()
    assert failed == []
    assert sorted(opened) == [*[False] * 7, True]


def test_it_ends_when_it_is_told_to_in_a_process_of_its_own_too(tmp_path: Path) -> None:
    ended = finished(process("serve", "--config", tmp_path / "absent.yaml"))
    assert ended.code == 2
    assert "absent.yaml" in ended.err


def test_the_log_tells_an_illness_once_and_again_after_five_minutes_however_it_comes_and_goes(caplog: pytest.LogCaptureFixture) -> None:
    """A stalled thread wrote 176 lines in three minutes."""
    caplog.set_level(logging.INFO)
    teller, stalled = Teller(), ("the thread samples has given no sign of life since 12:00:05 UTC",)
    for second in range(290):
        teller.tell(stalled if second % 2 else (), None, float(second))
    assert [r.message for r in caplog.records] == [f"unhealthy: {stalled[0]}", "healthy again"]
    teller.tell(stalled, None, 302.0)
    assert len(caplog.records) == 3
    for second in range(310, 500):
        teller.tell((), f"Starting, for {second} s so far.", float(second))
    assert sum("Starting" in r.message for r in caplog.records) == 1
