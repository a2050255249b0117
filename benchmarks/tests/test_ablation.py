"""An operator that is said to be left out is, and all are back afterwards: else its row of the table says nothing."""

from __future__ import annotations

import pytest

from benchmarks.ablation import OPERATORS, main, nothing, without
from optimizer.search import reduce, search


def now() -> list[object]:
    """What the search calls by these names."""
    return [getattr(module, name) for module, name in ((reduce, "send_home"), (reduce, "sideways"), (search, "swap_out"))]


def test_several_are_left_out_at_once_and_come_back() -> None:
    before = now()
    with without("send_home+sideways"):
        assert now() == [nothing, nothing, before[2]]
    assert now() == before


@pytest.mark.parametrize("name", list(OPERATORS))
def test_every_name_is_that_of_something_in_the_search(name: str) -> None:
    with without(name):
        pass


def test_an_unknown_operator_is_named_before_anything_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--without", "send_home+sidewise"])
    assert "found sidewise" in capsys.readouterr().err
