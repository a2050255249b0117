"""Evidence stays small whatever it is made from, and nothing falls out of a histogram."""

from __future__ import annotations

import pytest

from spark.report.evidence import Histogram, histogram, thinned


def test_values_beyond_the_ends_are_counted_in_the_outer_bins_and_nan_is_not() -> None:
    found = histogram([-9.0, -1.0, 0.0, 0.99, 1.0, 9.0, float("nan")], -1.0, 1.0, bins=4)
    assert found.counts == (2, 0, 1, 3)
    assert found.width == 0.5


def test_a_histogram_without_bins_or_width_is_refused() -> None:
    with pytest.raises(ValueError, match="0 bins"):
        Histogram(0.0, 1.0, ())
    with pytest.raises(ValueError, match="ascending"):
        Histogram(1.0, 1.0, (1,))


def test_thinning_keeps_both_ends_and_the_order() -> None:
    points = [(float(i), 0.0) for i in range(1000)]
    kept = thinned(points, 7)
    assert len(kept) == 7
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert list(kept) == sorted(kept)
    assert thinned(points[:5], 7) == tuple(points[:5])
