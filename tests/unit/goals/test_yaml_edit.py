"""A goals file that is changed keeps everything else as its author wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from cluster_model.errors import ConfigurationError
from goals.yaml_edit import Edit, edited


def changed(text: str, *edits: tuple[int, str, str], added: Iterable[Mapping[str, object]] = ()) -> str:
    return edited(text, "goals.yaml", [Edit(*edit) for edit in edits], added)


def only(text: str, *edits: tuple[int, str, str]) -> str:
    """The one line that is another one after the edits."""
    before, after = text.splitlines(), changed(text, *edits).splitlines()
    (line,) = [new for new in after if new not in before]
    return line


FLOW = """# head
version: 1
goals:
  - {kind: usage_distribution, resource: network_in, bound: 0.10,  min_load: '1MiB' }   # traffic
  - { kind: rack_aware }

# tail
"""


def test_a_value_in_a_flow_goal_changes_and_nothing_else() -> None:
    assert only(FLOW, (0, "bound", "0.14")) == (
        "  - {kind: usage_distribution, resource: network_in, bound: 0.14,  min_load: '1MiB' }   # traffic"
    )


def test_a_size_keeps_its_quotes() -> None:
    assert only(FLOW, (0, "min_load", "2MiB")).endswith("min_load: '2MiB' }   # traffic")
    assert only(FLOW, (0, "min_load", "2000")).endswith("min_load: 2000 }   # traffic")


def test_new_keys_go_where_people_look_for_them() -> None:
    assert only(FLOW, (0, "weight", "2"), (0, "var", "0.56")) == (
        "  - {kind: usage_distribution, resource: network_in, weight: 2, bound: 0.10, var: 0.56,  min_load: '1MiB' }   # traffic"
    )
    assert only(FLOW, (1, "weight", "2")) == "  - { kind: rack_aware, weight: 2 }"


BLOCK = """version: 1
goals:
    -   kind: usage_distribution   # cpu
        resource: cpu

        # half of it
        var: 0.9    # wide
    -   {kind: rack_aware}
policy: {}"""


def test_keys_of_a_block_goal_get_lines_of_their_own() -> None:
    assert changed(BLOCK, (0, "min_load", "1"), (0, "bound", "0.3"), (0, "weight", "2")) == BLOCK.replace(
        "        resource: cpu\n", "        resource: cpu\n        weight: 2\n        bound: 0.3\n"
    ).replace("# wide\n", "# wide\n        min_load: 1\n")


def test_a_comment_behind_a_value_keeps_its_column() -> None:
    assert only(BLOCK, (0, "var", "0.75")) == "        var: 0.75   # wide"
    assert only(BLOCK, (0, "var", "0.7512345")) == "        var: 0.7512345 # wide"
    assert only(BLOCK.replace("0.9    #", "0.95    #"), (0, "var", "2")) == "        var: 2       # wide"


def test_goals_are_added_at_the_end_of_the_list() -> None:
    goal = {"kind": "usage_distribution", "resource": "disk", "var": "100 MiB", "bound": 0.14, "name": "on"}
    flow = '{kind: usage_distribution, resource: disk, var: "100 MiB", bound: 0.14, name: on}'
    assert changed(BLOCK, added=[goal]) == BLOCK.replace("{kind: rack_aware}\n", f"{{kind: rack_aware}}\n    - {flow}\n")
    assert changed(FLOW, added=[goal]) == FLOW.replace("{ kind: rack_aware }\n", f"{{ kind: rack_aware }}\n  - {flow}\n")


def test_a_goal_is_added_behind_a_key_that_the_last_goal_gets() -> None:
    """Both go to the end of one line: the file was refused as written in an unusual way."""
    text = "goals:\n  - kind: usage_distribution # last\n    resource: cpu # here\n\n# tail\n"
    assert changed(text, (0, "bound", "0.2"), added=[{"kind": "rack_aware"}]) == (
        "goals:\n  - kind: usage_distribution # last\n    resource: cpu # here\n    bound: 0.2\n  - {kind: rack_aware}\n\n# tail\n"
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("version: 1\npreset: default", "version: 1\npreset: default\ngoals:\n  - {kind: rack_aware}"),
        ("version: 1\npreset: default # x\n# end\n", "version: 1\npreset: default # x\ngoals:\n  - {kind: rack_aware}\n# end\n"),
        ("version: 1\npreset: default\ngoals: []  # none\n", "version: 1\npreset: default\ngoals: [{kind: rack_aware}]  # none\n"),
        ("{version: 1, preset: default}\n", "{version: 1, preset: default, goals: [{kind: rack_aware}]}\n"),
        ('{"version": 1, "preset": "default"}', '{"version": 1, "preset": "default", "goals": [{"kind": "rack_aware"}]}'),
        (
            '{"preset": "counts", "goals": [{"kind": "capacity"}]}',
            '{"preset": "counts", "goals": [{"kind": "capacity"}, {"kind": "rack_aware"}]}',
        ),
    ],
)
def test_a_list_is_started_where_there_is_none(text: str, wanted: str) -> None:
    assert changed(text, added=[{"kind": "rack_aware"}]) == wanted


def test_json_stays_json() -> None:
    text = '{"version": 1, "goals": [{"kind": "usage_distribution", "min_load": "1MB"}]}'
    assert changed(text, (0, "bound", "0.14"), (0, "min_load", "2MB"), (0, "weight", "2")) == (
        '{"version": 1, "goals": [{"kind": "usage_distribution", "weight": 2, "bound": 0.14, "min_load": "2MB"}]}'
    )
    sized = '{"version": 1, "goals": [{"kind": "usage_distribution"}]}'
    assert changed(sized, (0, "min_load", "2MB")).endswith('{"kind": "usage_distribution", "min_load": "2MB"}]}')


def test_line_ends_of_another_system_stay() -> None:
    text = BLOCK.replace("\n", "\r\n")
    found = changed(text, (0, "bound", "0.3"), added=[{"kind": "rack_aware", "name": "second"}])
    assert found.count("\r\n") == found.count("\n") == text.count("\n") + 2


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\ngoals:\n  - &one {kind: rack_aware, weight: 1}\n  - *one\n",
        "version: 1\nx: &w 1\ngoals:\n  - {kind: rack_aware, weight: *w}\n  - {kind: capacity}\n",
        "version: 1\ngoals:\n  - {kind: rack_aware, weight: &w 1}\n  - {kind: capacity, weight: *w}\n",
    ],
)
def test_shared_values_are_not_changed_behind_the_authors_back(text: str) -> None:
    with pytest.raises(ConfigurationError, match="goals: cannot change it without changing more: values are shared"):
        changed(text, (0, "weight", "2"))


def test_nothing_to_change_changes_nothing() -> None:
    assert changed(FLOW) == FLOW
