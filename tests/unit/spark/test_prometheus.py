"""Answers of Prometheus, saved or asked for, become a history without Spark, and no row is lost without a word."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyarrow.dataset as ds
import pytest

from cluster_model.errors import ConfigurationError, ExternalError, InputError
from goals.yaml_source import read_yaml
from spark.history import mapping as mappings
from spark.history.answers import files_of
from spark.history.ask import Server, ask, questions, selectors
from spark.history.importing import Imported, import_answers
from spark.history.mapping import PrometheusMapping
from spark.history.write import COMPLETE, STAGING
from trimtab.cli import main

Read = set[tuple[str, int, str | None, int | None, str, float]]
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def read(folder: Path) -> Read:
    """What is in a history: time to the second, broker, topic, partition, metric, value."""
    found = ds.dataset(folder, partitioning="hive").to_table().to_pylist()
    rows = {
        (f"{r['time'].astimezone(UTC):%d %H:%M:%S}", r["broker"], r["topic"], r["partition"], r["metric"], round(r["value"], 6))
        for r in found
    }
    assert len(rows) == len(found)
    return rows


def imported(
    paths: Sequence[Path], tmp_path: Path, mapping: PrometheusMapping | None = None, cluster_id: str | None = "c",
    rejected: Path | None = None,
) -> Imported:  # fmt: skip
    files = files_of([str(path) for path in paths])
    kept = None if rejected is None else str(rejected)
    return import_answers(files, mapping or shipped(), str(tmp_path / "out"), NOW, cluster_id, kept)


def shipped() -> PrometheusMapping:
    path = Path(mappings.__file__).parent / "mappings" / "prometheus.yaml"
    source = read_yaml(path.read_text(), str(path))
    assert not source.problems
    return PrometheusMapping.model_validate(source.value)


# -- Prometheus ------------------------------------------------------------------------------------------------

AT = int(datetime(2026, 11, 20, tzinfo=UTC).timestamp())
KAFKA = "kafka_server_brokertopicmetrics"


def answer(path: Path, *series: tuple[dict[str, str], Sequence[float | str]], at: int = AT, **keys: object) -> str:
    """A file as curl saves it; values a minute apart."""
    result = [
        {"metric": labels, "values": [[at + 60 * i, str(v)] for i, v in enumerate(values)]} for labels, values in series
    ]
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}} | keys))
    return str(path)


def of(name: str, broker: int = 1, **labels: str | int) -> dict[str, str]:
    return {"__name__": name, "instance": f"kafka-{broker}:7071", "job": "kafka"} | {k: str(v) for k, v in labels.items()}


def test_the_shipped_rules_of_the_exporter_need_no_mapping(tmp_path: Path) -> None:
    """Two counters make the broker's traffic; a topic's is split by how the logs of the partitions that it leads grew."""
    folder = tmp_path / "answers"
    folder.mkdir()
    answer(
        folder / "brokers.json",
        (of(f"{KAFKA}_bytesin_total"), [0, 600, 1200]),
        (of(f"{KAFKA}_replicationbytesin_total"), [0, 60, 30]),  # restarted, it seems
        (of("process_cpu_seconds_total"), [0, 30, 90]),
    )
    answer(
        folder / "topics.json",
        (of(f"{KAFKA}_bytesin_total", topic="t"), [0, 600, 1200]),
        (of(f"{KAFKA}_bytesin_total", topic="gone"), [50, 50, 50]),
        (of("kafka_cluster_partition_replicascount", topic="t", partition=0), [2, 2, 2]),
        (of("kafka_cluster_partition_replicascount", topic="t", partition=1), [2, 2, 2]),
        (of("kafka_cluster_partition_replicascount", topic="t", partition=2), [0, 0, 0]),
        (of("kafka_log_log_logendoffset", topic="t", partition=0), [0, 10, 10]),
        (of("kafka_log_log_logendoffset", topic="t", partition=1), [0, 30, 30]),
        (of("kafka_log_log_logendoffset", topic="t", partition=2), [0, 99, 99]),
        (of("kafka_log_log_size", topic="t", partition=0), [7, 8, 9]),
        (of("kafka_log_log_size", topic="t", partition=2), [1, 2, 3]),
    )
    done = imported([folder], tmp_path)
    assert done.rejected == {}
    assert read(tmp_path / "out") == {
        ("20 00:01:00", 1, None, None, "network_in", 11.0), ("20 00:02:00", 1, None, None, "network_in", 10.5),
        ("20 00:01:00", 1, None, None, "cpu", 0.5), ("20 00:02:00", 1, None, None, "cpu", 1.0),
        ("20 00:01:00", 1, "t", 0, "network_in", 2.5), ("20 00:01:00", 1, "t", 1, "network_in", 7.5),
        ("20 00:02:00", 1, "t", 0, "network_in", 5.0), ("20 00:02:00", 1, "t", 1, "network_in", 5.0),
        *((f"20 00:0{m}:00", 1, "t", 0, "disk", 7.0 + m) for m in range(3)),
        *((f"20 00:0{m}:00", 1, "t", 2, "follower.disk", 1.0 + m) for m in range(3)),
    }  # fmt: skip


def test_files_and_series_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    cpu = of("process_cpu_seconds_total")
    answer(folder / "a.json", (cpu, [0, 60]), (of("up"), [1, 1]), (cpu | {"instance": "old-kafka:7071"}, [0, 60]))
    answer(
        folder / "b.json",
        (of(f"{KAFKA}_bytesin_total", topic="t"), [0, 600]), (of("kafka_log_log_size", topic="t", partition="?"), [1]),
    )  # fmt: skip
    answer(folder / "c.json", status="error", error="query timed out")
    (folder / "d.json").write_text('{"status": "success", "data": {"resul')
    answer(folder / "e.json", (of("kafka_log_log_size", topic="t", partition=0), [float("nan")]))
    done = imported([folder], tmp_path)
    assert done.rows == 1
    assert done.rejected == {
        "file is no answer to a range query": 2, "series is not in the mapping": 2, "broker is not in the labels": 2,
        "partition is no number": 1, "topic cannot be split among partitions": 1, "not a number": 1,
    }  # fmt: skip
    assert "c.json query timed out" in done.examples["file is no answer to a range query"]
    assert '"instance":"old-kafka:7071"' in done.examples["broker is not in the labels"]


def test_answers_to_rates_have_no_name_so_that_files_say_what_they_are(tmp_path: Path) -> None:
    nameless = {"node": "west-a", "topic": "t", "partition": "0", "cluster": "x"}
    answer(tmp_path / "in_rate.json", (nameless, [1, 2]))
    answer(tmp_path / "out_rate.json", (nameless, [30, 40]))
    mapping = PrometheusMapping.model_validate({
        "version": 1, "broker_id": {"label": "node", "ids": {"west-a": 7}}, "cluster_label": "cluster",
        "partition": {"network_in": {"file": "in_*.json"}, "consumer_out": {"file": "out_*.json", "scale": 0.1}},
    })  # fmt: skip
    done = imported([tmp_path / "*.json"], tmp_path, mapping, None)
    assert done.rejected == {}
    assert read(tmp_path / "out") == {
        ("20 00:00:00", 7, "t", 0, "replica.network_in", 1.0), ("20 00:01:00", 7, "t", 0, "replica.network_in", 2.0),
        ("20 00:00:00", 7, "t", 0, "replica.consumer_out", 3.0), ("20 00:01:00", 7, "t", 0, "replica.consumer_out", 4.0),
    }  # fmt: skip


def test_nothing_that_counts_is_no_history(tmp_path: Path) -> None:
    answer(tmp_path / "a.json", (of("up"), [1, 1]))
    with pytest.raises(InputError, match="found none that counts; 2 rows: series is not in the mapping"):
        imported([tmp_path / "a.json"], tmp_path)
    assert not list((tmp_path / "out").glob("date=*"))


def test_counters_go_on_over_midnight_and_from_file_to_file(tmp_path: Path) -> None:
    """Days are worked on one by one; else the first sample of each would be lost."""
    late, early = tmp_path / "late.json", tmp_path / "early.json"
    for path, begin, values in ((late, AT, [600, 660]), (early, AT - 120, [0, 120])):
        answer(path, (of("process_cpu_seconds_total"), values), at=begin)
    done = imported([late, early], tmp_path)
    assert done.days == ["2026-11-19", "2026-11-20"]
    assert {row[0]: row[5] for row in read(tmp_path / "out")} == {"19 23:59:00": 2.0, "20 00:00:00": 8.0, "20 00:01:00": 1.0}


def test_a_silence_says_nothing_and_what_is_there_twice_counts_once(tmp_path: Path) -> None:
    cpu, size = of("process_cpu_seconds_total"), of("kafka_log_log_size", topic="t", partition=0)
    answer(tmp_path / "a.json", (cpu, [0, 60, 120]), (size, [1, 2]))
    answer(tmp_path / "b.json", (cpu, [600, 660]), at=AT + 600)
    answer(tmp_path / "c.json", (size | {"replica": "b"}, [5, 2]))
    done = imported([tmp_path], tmp_path, rejected=tmp_path / "rejected")
    assert {row[0] for row in read(tmp_path / "out") if row[4] == "cpu"} == {"20 00:01:00", "20 00:02:00", "20 00:11:00"}
    assert {row[5] for row in read(tmp_path / "out") if row[4] == "replica.disk"} == {5.0, 2.0}
    assert done.rejected == {"repeated": 2}
    kept = ds.dataset(tmp_path / "rejected").to_table().to_pylist()
    assert [(r["reason"], r["metric"], r["topic"], r["partition"], r["value"]) for r in kept] == [
        ("repeated", "replica.disk", "t", 0, 1.0), ("repeated", "replica.disk", "t", 0, 2.0),
    ]  # fmt: skip


def test_values_that_are_no_numbers_and_clocks_that_are_wrong_are_set_apart(tmp_path: Path) -> None:
    size = of("kafka_log_log_size", topic="t", partition=0)
    answer(tmp_path / "a.json", (size, ["x", "-1", "+Inf", "5"]))
    answer(tmp_path / "b.json", (size, [1]), at=int(NOW.timestamp()) + 7200)
    answer(tmp_path / "c.json", (of("up"), [1, 1, 1]))
    done = imported([tmp_path], tmp_path, rejected=tmp_path / "rejected")
    assert done.rows == 1
    assert done.rejected == {
        "value is no number": 1, "negative": 1, "infinite": 1, "time in the future": 1, "series is not in the mapping": 3,
    }  # fmt: skip
    reasons = [r["reason"] for r in ds.dataset(tmp_path / "rejected").to_table().to_pylist()]
    assert {one: reasons.count(one) for one in reasons} == done.rejected


def test_a_day_that_is_there_is_refused_and_what_was_interrupted_is_finished(tmp_path: Path) -> None:
    answer(tmp_path / "a.json", (of("process_cpu_seconds_total"), [0, 60]))
    imported([tmp_path / "a.json"], tmp_path)
    before = read(tmp_path / "out")
    with pytest.raises(InputError, match="1 of these days already, 2026-11-20"):
        imported([tmp_path / "a.json"], tmp_path)
    left = tmp_path / "out" / f"{STAGING}12"
    left.mkdir()
    (tmp_path / "out" / "date=2026-11-20").rename(left / "date=2026-11-20")
    (left / COMPLETE).touch()
    with pytest.raises(InputError, match="1 of these days already, 2026-11-20"):
        imported([tmp_path / "a.json"], tmp_path)
    assert read(tmp_path / "out") == before
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["date=2026-11-20"]


def test_paths_without_a_file_and_uris_are_told_together(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        files_of([str(tmp_path / "*.json"), "s3a://bucket/answers"])
    assert "*.json: expected answers of Prometheus, found no file" in str(error.value)
    assert "found a URI; copy the answers here, or ask the server (--url)" in str(error.value)


# -- asking a server ---------------------------------------------------------------------------------------------


class Prometheus(ThreadingHTTPServer):
    """Answers range queries about one counter that grows by 1 each second; refuses more than `most` points."""

    def __init__(self, most: int = 11_000, failures: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.most, self.failures, self.asked = most, failures, 0
        self.headers: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Prometheus

    def do_GET(self) -> None:
        wanted = {key: one[0] for key, one in parse_qs(urlsplit(self.path).query).items()}
        begin, end, step = (int(wanted[key]) for key in ("start", "end", "step"))
        self.server.asked += 1
        self.server.headers.append(self.headers["Authorization"])
        if self.server.failures > 0:
            self.server.failures -= 1
            return self.say(502, {"status": "error", "error": "bad gateway"})
        if (end - begin) // step + 1 > self.server.most:
            return self.say(422, {"status": "error", "error": "query processing would load too many samples into memory"})
        values = [[at, str(at - AT)] for at in range(begin, end + 1, step)]
        result = [{"metric": of("process_cpu_seconds_total"), "values": values}] if "process_cpu" in wanted["query"] else []
        return self.say(200, {"status": "success", "data": {"resultType": "matrix", "result": result}})

    def say(self, code: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(server: Prometheus) -> Iterator[Prometheus]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def cpu_only() -> PrometheusMapping:
    return PrometheusMapping.model_validate({"version": 1, "broker": {"cpu": "process_cpu_seconds_total"}})


def test_a_server_is_asked_in_pieces_and_what_it_answered_is_not_asked_again(tmp_path: Path) -> None:
    with serving(Prometheus()) as server:
        asked = questions(selectors(cpu_only(), 'job="kafka"'), AT, AT + 86_400, 60)
        assert asked[0].selector == '{__name__=~"(?i:process_cpu_seconds_total)",job="kafka"}'
        files = ask(Server(server.url.replace("//", "//me:secret@")), asked, tmp_path / "answers")
        assert (len(files), server.asked) == (4, 4)
        assert set(server.headers) == {"Basic bWU6c2VjcmV0"}
        files[2].unlink()
        assert ask(Server(server.url, "token"), asked, tmp_path / "answers") == files
        assert (server.asked, server.headers[-1]) == (5, "Bearer token")
    done = imported([tmp_path / "answers"], tmp_path, cpu_only())
    assert (done.rows, done.days) == (1439, ["2026-11-20"])
    assert {row[5] for row in read(tmp_path / "out")} == {1.0}


def test_a_question_that_is_too_much_is_asked_in_halves_and_a_weak_moment_is_waited_for(tmp_path: Path) -> None:
    waited: list[float] = []
    with serving(Prometheus(most=200, failures=2)) as server:
        asked = questions(selectors(cpu_only()), AT, AT + 6 * 3600, 60)
        files = ask(Server(server.url), asked, tmp_path / "answers", pause=waited.append)
        assert len(files) == 2
        before = server.asked
        assert ask(Server(server.url), asked, tmp_path / "answers", pause=waited.append) == files
        assert server.asked == before
    assert waited == [1.0, 2.0]
    assert imported([tmp_path / "answers"], tmp_path, cpu_only()).rows == 359


def test_a_server_that_says_no_is_quoted_without_the_password(tmp_path: Path) -> None:
    with serving(Prometheus(most=0)) as server:
        asked = questions(selectors(cpu_only()), AT, AT + 60, 60)
        with pytest.raises(ExternalError, match=rf"{server.url}: 422: query processing would load too many samples"):
            ask(Server(server.url.replace("//", "//me:secret@")), asked, tmp_path / "answers")
    with pytest.raises(ExternalError, match=r"no answer after 4 tries: .*refused"):
        ask(Server(server.url), asked, tmp_path / "answers", pause=lambda seconds: None)
    assert not list((tmp_path / "answers").iterdir())


def test_a_mapping_that_goes_by_file_names_cannot_be_asked_for() -> None:
    mapping = PrometheusMapping.model_validate({"version": 1, "broker": {"cpu": {"file": "cpu*.json"}}})
    with pytest.raises(ConfigurationError, match=r"broker\.cpu: expected a named series"):
        selectors(mapping)


def test_the_command_asks_day_by_day_and_goes_on_where_the_history_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same line in a crontab each night; answers that were imported are not kept."""
    out = tmp_path / "out"
    with serving(Prometheus()) as server:
        words = ["history", "import", "--form", "prometheus", "--url", server.url, "--cluster-id", "c", "--out", str(out)]
        assert main([*words, "--end", "2026-11-21"]) == 2
        said = capsys.readouterr().err
        assert "--begin: expected the first day to ask for" in said
        assert re.search(r"; add --begin 20\d\d-\d\d-\d\d, or another day$", said, re.MULTILINE), "what to type"
        assert main([*words, "--begin", "2026-11-20", "--end", "2026-11-21"]) == 0
        assert main([*words, "--end", "2026-11-22"]) == 0
        assert main([*words, "--end", "2026-11-22"]) == 2
        assert "there is no finished day to ask for: from 2026-11-22 on, and before 2026-11-22" in capsys.readouterr().err
    assert sorted(one.name for one in out.iterdir() if not one.name.startswith(".")) == ["date=2026-11-20", "date=2026-11-21"]
    assert len(read(out)) == 2 * 1439


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--form", "prometheus"], "--from: expected either files (--from) or a server to ask (--url)"),
        (["--form", "csv", "--url", "http://h"], "--url: expected --form prometheus and an address"),
        (["--form", "prometheus", "--url", "h:9090"], "--url: expected --form prometheus and an address"),
        (["--form", "prometheus", "--url", "http://h", "--begin", "yesterday"], "--begin: expected a day such as 2026-11-01"),
        (["--form", "prometheus", "--url", "http://h", "--step", "7s"], "--step: expected whole seconds that divide a day evenly"),
        (["--form", "prometheus", "--from", "a", "--out", "s3a://b/h"], "--out: expected a folder of this machine"),
    ],
)
def test_options_that_do_not_go_together_are_told_before_anything_is_asked(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = [] if "--out" in words else ["--out", str(tmp_path / "out")]
    assert main(["history", "import", *words, *out, "--cluster-id", "c"]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
