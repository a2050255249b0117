"""A page of a plan is cut out by lines: it must be what the whole file says, whatever names are in it."""

from __future__ import annotations

import json

import pytest

from optimizer.report import to_json
from tests.service_face import example_plan
from trimtab.http.excerpt import MOST_KEPT, excerpt


def test_the_excerpt_is_the_file() -> None:
    text = to_json(example_plan())
    whole, kept = json.loads(text), excerpt(text)
    assert kept.page(0, 10_000).actions == whole["actions"]
    assert kept.page(5, 2).actions == whole["actions"][5:7]
    assert (kept.plan_id, kept.goals, kept.summary, kept.notes) == tuple(whole[k] for k in ("plan_id", "goals", "summary", "notes"))


def test_names_that_look_like_the_file_do_not_mislead() -> None:
    whole = json.loads(to_json(example_plan()))
    evil = '\n"actions":[\n{"seq":9}],\n"summary":{"actions":0},\n"goals":[]'
    text = to_json(example_plan()).replace(json.dumps(whole["actions"][0]["changes"][0]["topic"]), json.dumps(evil))
    kept = excerpt(text)
    assert kept.page(0, 1).actions[0]["changes"][0]["topic"] == evil
    assert kept.summary == whole["summary"]
    assert len(kept.lines) == len(whole["actions"])


def test_what_is_kept_of_a_long_plan_is_bounded() -> None:
    text = to_json(example_plan())
    begin = text.index('{"seq":')
    end = text.index("\n", begin)
    text = text[:begin] + (text[begin:end] + "\n") * 5000 + text[begin:]
    kept = excerpt(text)
    assert len(kept.lines) == MOST_KEPT == kept.page(0, 1).reachable
    assert kept.page(MOST_KEPT, 10).actions == []


def test_an_empty_plan() -> None:
    text = to_json(example_plan())
    begin, end = text.index('"actions":[') + 11, text.index('],\n"proposals"')
    kept = excerpt(text[:begin] + text[end:])
    assert kept.lines == ()


def test_a_text_that_is_no_plan_file_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a line that starts with"):
        excerpt('{"version": 1}')
