"""Moves between log directories: a few at a time, where there is room, seen through to the end, and after an interruption gone on with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from cluster_model.errors import ExternalError, InputError
from trimtab.commands.directories import to_the_end
from trimtab.execution.directories import ATTEMPTS, SILENT_TURNS, DirectoryMoves, Replica, SeenDirectories, read_moves
from trimtab.execution.port import Answers, Refusal
from trimtab.execution.state import Partition

Where = dict[Partition, tuple[str, float]]


def p(number: int) -> Partition:
    return Partition("t", number)


class Brokers:
    """Brokers that copy `rate` bytes at each look; 1,000 bytes a volume."""

    def __init__(self, held: Mapping[int, Mapping[int, tuple[str, float]]], paths: Sequence[str] = ("/a", "/b")) -> None:
        self.held: dict[int, Where] = {b: {p(n): at for n, at in of.items()} for b, of in held.items()}
        self.coming: dict[int, Where] = {b: {} for b in held}
        self.rate, self.paths = 100.0, paths
        self.silent: set[int] = set()
        self.refusals: list[Refusal] = []
        self.asked: list[tuple[int, dict[Partition, str]]] = []
        self.most = 0
        self.forgets = False

    def directories(self, broker: int, names: Sequence[Partition]) -> SeenDirectories | None:
        if broker in self.silent:
            return None
        for name, (path, there) in list(self.coming[broker].items()):
            size = self.held[broker][name][1]
            self.coming[broker][name] = path, min(there + self.rate, size)
            if there + self.rate >= size:
                del self.coming[broker][name]
                self.held[broker][name] = path, size
        use = dict.fromkeys(self.paths, 0.0)
        for table in (self.held[broker], self.coming[broker]):
            for path, size in table.values():
                use[path] += size
        return SeenDirectories({path: 1000.0 - u for path, u in use.items()}, dict(self.held[broker]), dict(self.coming[broker]))

    def move(self, broker: int, targets: Mapping[Partition, str]) -> Answers:
        self.asked.append((broker, dict(targets)))
        if self.refusals:
            return dict.fromkeys(targets, self.refusals.pop(0))
        if not self.forgets:
            self.coming[broker] |= {name: (path, 0.0) for name, path in targets.items()}
        self.most = max(self.most, len(self.coming[broker]))
        return dict.fromkeys(targets)


def moves(brokers: Brokers, wanted: Mapping[tuple[int, int], str], at_once: int = 1, reserve: float = 0.0) -> DirectoryMoves:
    return DirectoryMoves(brokers, {Replica(b, p(n)): path for (b, n), path in wanted.items()}, at_once, reserve)


def end(doing: DirectoryMoves, turns: int = 200) -> int:
    left = iter(range(turns))
    return to_the_end(doing, lambda seconds: next(left, None) is None)


@pytest.mark.parametrize("at_once", [1, 2])
def test_all_are_moved_and_never_more_at_a_time_than_asked_for(at_once: int) -> None:
    brokers = Brokers({1: dict.fromkeys(range(5), ("/a", 150.0)), 2: {0: ("/a", 50.0)}})
    doing = moves(brokers, {(1, 0): "/b", (1, 1): "/b", (2, 0): "/b", (1, 2): "/b"}, at_once)
    assert end(doing) == 0
    assert brokers.most == at_once
    assert [brokers.held[1][p(n)][0] for n in range(5)] == ["/b", "/b", "/b", "/a", "/a"]
    assert brokers.held[2][p(0)][0] == "/b"


def test_what_was_cut_short_goes_on_and_what_is_there_is_not_asked_for_again() -> None:
    brokers = Brokers({1: {0: ("/a", 100.0), 1: ("/a", 300.0), 2: ("/a", 100.0)}})
    wanted = {(1, n): "/b" for n in range(3)}
    assert end(moves(brokers, wanted), turns=2) == 130
    assert len(brokers.asked) == 2
    assert end(moves(brokers, wanted)) == 0
    assert [list(targets) for _, targets in brokers.asked] == [[p(0)], [p(1)], [p(2)]]


def test_one_that_finds_no_room_lets_others_go_first_and_moves_once_there_is_some() -> None:
    brokers = Brokers({1: {0: ("/a", 600.0), 1: ("/b", 500.0)}}, paths=("/a", "/b", "/c"))
    doing = moves(brokers, {(1, 0): "/b", (1, 1): "/c"}, reserve=100.0)
    assert end(doing) == 0
    assert [list(targets) for _, targets in brokers.asked] == [[p(1)], [p(0)]]


def test_where_no_turn_brings_room_it_ends_and_says_how_much_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    brokers = Brokers({1: {0: ("/a", 600.0), 1: ("/b", 500.0)}})
    assert end(moves(brokers, {(1, 0): "/b"})) == 1
    assert not brokers.asked
    assert "t-0 on broker 1 was not moved to /b: no room in /b: 500 B free, the replica has 600 B" in caplog.text


def test_replicas_that_are_gone_and_directories_that_are_not_there_are_named(caplog: pytest.LogCaptureFixture) -> None:
    brokers = Brokers({1: {0: ("/a", 10.0)}})
    assert end(moves(brokers, {(1, 0): "/gone", (1, 7): "/b"})) == 1
    assert "t-0 on broker 1 was not moved to /gone: the broker has no log directory /gone that is online" in caplog.text
    assert "t-7 on broker 1 was not moved to /b: the broker holds no replica of it" in caplog.text


def test_a_refusal_for_a_moment_is_tried_again_and_one_for_good_is_told(caplog: pytest.LogCaptureFixture) -> None:
    brokers = Brokers({1: {0: ("/a", 10.0)}})
    brokers.refusals = [Refusal("REPLICA_NOT_AVAILABLE", retriable=True)] * 2
    assert end(moves(brokers, {(1, 0): "/b"})) == 0
    assert len(brokers.asked) == 3
    brokers.refusals = [Refusal("CLUSTER_AUTHORIZATION_FAILED")]
    assert end(moves(brokers, {(1, 0): "/a"})) == 1
    assert "CLUSTER_AUTHORIZATION_FAILED" in caplog.text


def test_a_broker_that_takes_requests_and_does_nothing_is_not_asked_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    brokers = Brokers({1: {0: ("/a", 10.0)}})
    brokers.forgets = True
    assert end(moves(brokers, {(1, 0): "/b"})) == 1
    assert len(brokers.asked) == ATTEMPTS
    assert f"the broker took the request {ATTEMPTS} times, and the replica is in /a all the same" in caplog.text


def test_a_silent_broker_is_waited_for_and_given_up_in_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    brokers = Brokers({1: {0: ("/a", 10.0)}, 2: {0: ("/a", 10.0)}})
    brokers.silent = {1}
    doing = moves(brokers, {(1, 0): "/b", (2, 0): "/b"})
    for _ in range(SILENT_TURNS - 1):
        doing.turn()
    assert (doing.count("done"), doing.over) == (1, False)
    brokers.silent = set()
    assert end(doing) == 0
    brokers.silent = {1}
    assert end(moves(brokers, {(1, 0): "/a"})) == 1
    assert "waiting for an answer of broker 1" in caplog.text
    assert "the broker does not say what its log directories hold" in caplog.text


def test_a_cluster_that_says_no_ends_it() -> None:
    class Refusing(Brokers):
        def move(self, broker: int, targets: Mapping[Partition, str]) -> Answers:
            raise ExternalError("the cluster refused")

    with pytest.raises(ExternalError, match="refused"):
        end(moves(Refusing({1: {0: ("/a", 10.0)}}), {(1, 0): "/b"}))


def test_kafkas_file_is_read_and_a_wrong_one_refused_with_all_its_problems() -> None:
    good = {"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/b"]}
    assert read_moves(json.dumps({"version": 1, "partitions": [good]}), "f") == {Replica(2, p(0)): "/b"}
    without = {key: good[key] for key in good if key != "log_dirs"}
    bad = [good, good, {**good, "log_dirs": ["/b"]}, {**good, "replicas": ["1", 2]}, {"topic": "t"}, without]
    with pytest.raises(InputError) as caught:
        read_moves(json.dumps({"partitions": bad}), "f")
    assert [problem.place for problem in caught.value.problems] == [f"partitions[{i}]" for i in range(1, 6)]
    for text in ("{", "[]", '{"partitions": 5}'):
        with pytest.raises(InputError):
            read_moves(text, "f")
