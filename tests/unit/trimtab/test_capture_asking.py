"""One broker that does not answer costs a question once: it is asked last from then on, and a refusal is told at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import kafka.errors as kafka_errors
import pytest

from cluster_model.errors import ExternalError
from trimtab.capture.asking import Asker


@dataclass
class Brokers:
    """Stands for the admin client: what each broker answers or raises, and which ones were asked."""

    answers: dict[int, Any]
    asked: list[int] = field(default_factory=list)
    now: float = 0.0

    @property
    def _manager(self) -> Any:
        known = [SimpleNamespace(node_id=broker) for broker in self.answers]
        return SimpleNamespace(cluster=SimpleNamespace(brokers=lambda: known), send=None, run=self._run)

    def _run(self, _send: Callable[..., Any], request: Any, broker: int, _timeout_ms: int | None = None) -> Any:
        self.asked.append(broker)
        self.now += 2.0
        answer = self.answers[broker]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def get_broker_version_data(self, _broker: int) -> None:
        self.now += 100.0  # connecting

    def asker(self) -> Asker:
        return Asker(self, "b:9092", lambda: self.now)


def test_a_broker_that_does_not_answer_is_asked_last_from_then_on() -> None:
    brokers = Brokers({1: kafka_errors.RequestTimedOutError(), 2: SimpleNamespace(error_code=0, name="two")})
    ask = brokers.asker()
    assert [ask.anyone("describe", object).name for _ in range(3)] == ["two"] * 3
    assert brokers.asked == [1, 2, 2, 2]


def test_a_refusal_is_told_at_once_with_what_is_missing() -> None:
    brokers = Brokers({1: kafka_errors.ClusterAuthorizationFailedError(), 2: SimpleNamespace(error_code=0)})
    with pytest.raises(ExternalError, match="b:9092: the cluster refused to describe the cluster"):
        brokers.asker().anyone("describe the cluster", object)
    assert brokers.asked == [1]


def test_where_no_broker_answers_the_last_reason_is_told() -> None:
    brokers = Brokers({1: kafka_errors.RequestTimedOutError(), 2: kafka_errors.RequestTimedOutError()})
    with pytest.raises(ExternalError, match="none of 2 brokers could describe the topics") as told:
        brokers.asker().anyone("describe the topics", object)
    assert told.value.retriable


def test_the_time_of_an_answer_is_the_middle_of_its_request_without_connecting() -> None:
    brokers = Brokers({1: SimpleNamespace(error_code=0)})
    assert brokers.asker().timed(object, 1)[1] == 101.0
