"""`trimtab reporter`: a file with mistakes is refused with all of them, and a stop is a stop whatever is away."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cluster_model.errors import ConfigurationError
from tests.assembled.commands.command_line import REPOSITORY, CommandLine, finished, process
from tests.unit.metrics_reporter.agents import DATA, agent, says
from trimtab.reporter import topic_settings
from trimtab.reporter.config import load_config

SMALLEST = "version: 1\nbroker: 1\nkafka: {bootstrap_servers: '127.0.0.1:9092'}\ncollectors: {kafka: }\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "reporter.yaml"
    path.write_text(text)
    return path


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as refused:
        load_config(written(folder, text))
    return [str(problem) for problem in refused.value.problems]


def test_the_shipped_example_is_valid() -> None:
    config = load_config(REPOSITORY / "examples" / "reporter.yaml")
    assert (config.broker, config.interval, config.spool) == (1, 10.0, 64_000_000)
    assert config.collectors.prometheus is not None
    assert config.collectors.prometheus.url == "http://127.0.0.1:7071/metrics"
    assert config.collectors.kafka is not None
    assert config.collectors.host is not None
    assert config.collectors.jolokia is None
    assert config.capacity.network_in == 125_000_000
    assert topic_settings(config).configs["retention.ms"] == "3600000"


def test_every_mistake_is_told_at_once_with_its_place_and_what_was_meant(tmp_path: Path) -> None:
    text = """
version: 2
broker: -1
intervall: 10s
kafka: {bootstrap_server: "broker1"}
collectors:
  prometheus: {url: 127.0.0.1:7071, timeout: 0s}
  jolokia: {timeout: 5 parsecs}
  host: {log_dir: /data}
topic: {partitions: 0, grow: "yes", compression: gzipp, name: "a b", spool: 1MB}
spool: 64Mb
capacity: {disk: -1, cpu: 0, memory: 5GB}
"""
    found = problems(tmp_path, text)
    for place, message in [
        ("version", "expected 1, found 2 (line 2)"),
        ("broker", "expected a number of at least 0, found -1 (line 3)"),
        ("intervall", "unknown key; did you mean 'interval'? (line 4)"),
        ("kafka.bootstrap_servers", "missing; expected HOST:PORT of the broker (line 5)"),
        ("kafka.bootstrap_server", "unknown key; did you mean 'bootstrap_servers'? (line 5)"),
        ("collectors.prometheus.url", "expected a URL such as http://127.0.0.1:7071/metrics, found '127.0.0.1:7071'"),
        ("collectors.prometheus.timeout", "expected more than 0"),
        ("collectors.jolokia.url", "missing; expected URL of the agent"),
        ("collectors.jolokia.timeout", "unknown unit 'parsecs'"),
        ("collectors.host.log_dir", "did you mean 'log_dirs'?"),
        ("topic.partitions", "expected a number of at least 1, found 0"),
        ("topic.grow", "expected true or false, found 'yes'"),
        ("topic.compression", "did you mean 'gzip'?"),
        ("topic.name", "expected letters, digits, dots, dashes and underscores, at most 249, found 'a b'"),
        ("topic.spool", "'spool' belongs at the top"),
        ("spool", "unknown unit 'Mb'"),
        ("capacity.disk", "not negative"),
        ("capacity.cpu", "expected a number above 0, found 0"),
        ("capacity.memory", "unknown key; expected one of network_in"),
        ("collectors.jolokia", "prometheus reads the same counters; keep one of the two"),
    ]:
        assert any(line.startswith(f"{place}: ") and message in line for line in found), (place, message, found)
    assert len(found) == 20


def test_what_is_not_there_is_told_with_the_misspelt_keys(tmp_path: Path) -> None:
    """Not in a second round, after the first is mended and the reporter is rolled out again."""
    found = problems(
        tmp_path,
        "version: 1\nbroker: x\nkafka: {bootstrap_servers: '127.0.0.1:9092', command_config: no.properties}\n"
        "collectors: {host: {log_dirs: [data]}, jolokia: {url: nowhere, password_file: secret}}\ntopic: {compression: zstd, nam: x}\n",
    )
    for complaint in (
        f"kafka.command_config: there is no file {tmp_path / 'no.properties'} (line 3)",
        f"collectors.host.log_dirs[0]: there is no folder {tmp_path / 'data'} (line 4)",
        f"collectors.jolokia.password_file: there is no file {tmp_path / 'secret'} (line 4)",
        "collectors.jolokia.password_file: goes with user, which is missing (line 4)",
        "topic.nam: unknown key; did you mean 'name'? (line 5)",
    ):
        assert complaint in found
    assert [line.partition(":")[0] for line in found].count("topic.compression") == 1
    assert any(line.startswith("broker: expected a whole number") for line in found)


@pytest.mark.parametrize(
    ("collectors", "complaint"),
    [
        ("{}", "collectors: expected at least one of prometheus, jolokia, kafka, host, found none"),
        ("{prometheus: {url: 'http://a/'}, jolokia: {url: 'http://a/'}}", "collectors.jolokia: prometheus reads the same"),
        ("{prometheus: {url: 'http://a/', password_file: secret}}", "password_file: goes with user, which is missing"),
        ("{prometheus: {url: 'http://a/', user: u, password_file: secret}}", "there is no file "),
        ("{host: {log_dirs: [data]}}", "collectors.host.log_dirs[0]: there is no folder "),
    ],
)
def test_parts_that_do_not_go_together(tmp_path: Path, collectors: str, complaint: str) -> None:
    text = SMALLEST.replace("{kafka: }", collectors)
    assert any(complaint in line for line in problems(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected a mapping with version: 1"),
        ("[1]", "found list"),
        ("version: 1\nversion: 1\n", "key written twice"),
        ("version: [", "not YAML"),
        (SMALLEST.replace("127.0.0.1:9092", "127.0.0.1"), "expected HOST:PORT such as 127.0.0.1:9092, found '127.0.0.1'"),
        (SMALLEST + "topic: {compression: zstd}\n", "zstd needs a Python library that is not installed"),
        (SMALLEST.replace("9092'", "9092', command_config: missing.properties"), "there is no file"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, complaint: str) -> None:
    assert any(complaint in line for line in problems(tmp_path, text))


def test_paths_are_relative_to_the_file_and_not_to_where_the_command_is_run(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "secret").write_text("x")
    (tmp_path / "client.properties").write_text("")
    text = SMALLEST.replace("{kafka: }", "{host: {log_dirs: [data]}, jolokia: {url: 'http://a/', user: u, password_file: secret}}")
    config = load_config(written(tmp_path, text.replace("9092'", "9092', command_config: client.properties")))
    assert config.collectors.host is not None
    assert config.collectors.host.log_dirs == [str(tmp_path / "data")]
    assert config.collectors.jolokia is not None
    assert config.collectors.jolokia.password_file == str(tmp_path / "secret")
    assert config.kafka.command_config == str(tmp_path / "client.properties")


def test_a_wrong_file_is_a_usage_error_without_a_traceback(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("reporter", "--config", written(tmp_path, "version: 1\n"))
    assert ended.code == 2
    assert "broker: missing" in ended.err
    assert "Traceback" not in ended.err


def test_once_runs_without_numpy_and_says_which_collector_failed(tmp_path: Path) -> None:
    """A broker's host has no planner on it."""
    with agent(says((DATA / "jmx-exporter-rules.txt").read_bytes())) as url:
        config = written(
            tmp_path,
            "version: 1\nbroker: 7\ninterval: 200ms\nkafka: {bootstrap_servers: '127.0.0.1:1'}\n"
            f"collectors: {{prometheus: {{url: '{url}'}}, host: {{log_dirs: ['{tmp_path}']}}}}\n",
        )
        blocked = "for name in ('numpy', 'numba', 'scipy', 'pyarrow'): sys.modules[name] = None"
        ended = finished(process("reporter", "--config", config, "--once", before=blocked))
        assert ended.code == 0, ended.err
        document = json.loads(ended.out)
        samples = {(s["scope"], s["topic"], s["partition"], s["metric"]): s["value"]
                   for batch in document["batches"] for s in batch["samples"]}  # fmt: skip
        assert samples["leader", "my.topic_x-1", 0, "disk"] == 101022
        assert samples["leader", "my.topic_x-1", 0, "network_in"] == 0
        assert samples["capacity", None, None, "disk"] > 0
        assert document["failures"] == {}

        config.write_text(config.read_text().replace("host:", "kafka: , host:"))
        ended = finished(process("reporter", "--config", config, "--once"))
        assert ended.code == 1
        assert "Connection refused" in json.loads(ended.out)["failures"]["kafka"]


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_while_the_cluster_hangs_takes_seconds_and_says_what_was_not_sent(tmp_path: Path, sent: signal.Signals) -> None:
    """A listener that takes connections and never answers is what holds clients up the longest."""
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        config = written(
            tmp_path,
            "version: 1\nbroker: 7\ninterval: 100ms\ncollectors: {kafka: , host: }\n"
            f"kafka: {{bootstrap_servers: '127.0.0.1:{hanging.getsockname()[1]}'}}\ntopic: {{compression: none}}\n",
        )
        running = subprocess.Popen(
            [sys.executable, "-m", "trimtab", "reporter", "--config", str(config)],
            cwd=REPOSITORY, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert running.stderr is not None
        assert "reporting broker 7" in running.stderr.readline()
        hanging.accept()[0].close()
        begun = time.monotonic()
        running.send_signal(sent)
        _, err = running.communicate(timeout=60)
        assert time.monotonic() - begun < 8, err
        assert running.returncode in (0, 1), err
        assert "stopped: 0 records sent" in err
        assert "Traceback" not in err
