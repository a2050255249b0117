"""A misread size is a budget overrun or a throttle a thousand times too low."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_model.quantities import DURATION_UNITS, SIZE_UNITS, format_size, parse_duration, parse_rate, parse_size, parse_throttle


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("500MB", 500_000_000),
        ("10GiB", 10_737_418_240),
        ("1.5 KiB", 1536),
        ("0", 0),
        ("4096", 4096),
        ("1e9", 1_000_000_000),
        ("2.5e3 kB", 2_500_000),
        (" 1PB ", 10**15),
        (4096, 4096),
        (1e6, 1_000_000),
        ("1.9B", 1),
        ("0.3MB", 300_000),  # 299_999 if the number went through binary fractions
    ],
)
def test_sizes_mean_what_they_say(text: str | float, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("5m", 300.0),
        ("1h", 3600.0),
        ("7d", 604800.0),
        ("250ms", 0.25),
        ("12", 12.0),
        (0.5, 0.5),
    ],
)
def test_durations_mean_what_they_say(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_a_rate_may_name_its_second() -> None:
    assert parse_rate("50MB/s") == parse_rate("50MB") == parse_rate(50_000_000) == 50_000_000
    with pytest.raises(ValueError, match="expected a rate such as 50MB/s"):
        parse_rate("fast")


def test_a_throttle_without_its_unit_is_asked_about() -> None:
    """At 50 bytes a second a plan takes a thousand years; Kafka's own tool takes plain numbers, so large ones are meant."""
    assert [parse_throttle(x) for x in ("50MB/s", "50B/s", "1000000", 50_000_000)] == [50_000_000, 50, 1_000_000, 50_000_000]
    for forgotten in ("50", 50, "999999"):
        meant = "a unit as in 50MB/s" if forgotten == "999999" else f"{forgotten}MB/s"
        with pytest.raises(ValueError, match=f"write {meant}, or {forgotten}B/s for {forgotten} bytes a second"):
            parse_throttle(forgotten)
    with pytest.raises(ValueError, match="expected a rate above 0"):
        parse_throttle("0MB/s")


@pytest.mark.parametrize(
    "wrong", ["", "MB", "-1MB", "1,5GB", "ten GB", "1 2", "nan", "inf", "1MB/s", "0x10", "١MB"]
)
def test_what_is_no_size_is_refused_and_quoted(wrong: str) -> None:
    with pytest.raises(ValueError, match="size such as 500MB") as refusal:
        parse_size(wrong)
    assert repr(wrong) in str(refusal.value)


@pytest.mark.parametrize("wrong", [True, -1, -0.5, float("nan"), float("inf"), None, ["1MB"]])
def test_what_is_no_amount_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="expected a size"):
        parse_size(wrong)
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(wrong)


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        ("10G", "write 10GB or 10GiB"),
        ("10Gi", "write 10GiB"),
        ("5Mb", "write 5MB"),
        ("5mib", "write 5MiB"),
        ("5k", "write 5kB or 5KiB"),
        ("3 apples", "units are B, kB"),
    ],
)
def test_an_unknown_size_unit_is_never_guessed_but_suggested(wrong: str, remedy: str) -> None:
    with pytest.raises(ValueError, match="unknown unit") as refusal:
        parse_size(wrong)
    assert remedy in str(refusal.value)


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        ("5min", "write 5m"),
        ("5M", "write 5m"),
        ("10 sec", "write 10s"),
        ("9msec", "write 9ms"),
        ("2w", "units are ms, s"),
    ],
)
def test_an_unknown_duration_unit_is_suggested(wrong: str, remedy: str) -> None:
    with pytest.raises(ValueError, match="unknown unit") as refusal:
        parse_duration(wrong)
    assert remedy in str(refusal.value)


def test_a_size_no_column_can_hold_is_refused() -> None:
    assert parse_size(2**63 - 1) == 2**63 - 1
    with pytest.raises(ValueError, match="below 8EiB"):
        parse_size("9.3e3PB")


@given(
    number=st.decimals(min_value=0, max_value=8000, places=3, allow_nan=False, allow_infinity=False),
    unit=st.sampled_from(sorted(SIZE_UNITS)),
    space=st.sampled_from(["", " "]),
)
def test_a_size_is_exact_and_never_rounds_up(number: Decimal, unit: str, space: str) -> None:
    exact = Fraction(number) * SIZE_UNITS[unit]
    assert 0 <= exact - parse_size(f"{number}{space}{unit}") < 1


@given(number=st.integers(0, 10**6), unit=st.sampled_from(sorted(DURATION_UNITS)))
def test_durations_scale_with_their_unit(number: int, unit: str) -> None:
    assert parse_duration(f"{number}{unit}") == float(number * DURATION_UNITS[unit])


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_with_a_reason(text: str) -> None:
    for parse in (parse_size, parse_duration, parse_rate):
        try:
            answer = str(parse(text) >= 0)
        except ValueError as refusal:
            answer = str(refusal)
        assert answer == "True" or answer.startswith(("expected", "unknown unit"))


@given(st.integers(0, 2**62))
def test_a_size_shown_reads_back_within_what_three_digits_can_say(size: int) -> None:
    assert parse_size(format_size(size)) == pytest.approx(size, rel=0.005, abs=1)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1 kB"),
        (1_250_000, "1.25 MB"),
        (5e9, "5 GB"),
        (-300_000, "-300 kB"),
        (5e18, "5000 PB"),
    ],
)
def test_sizes_are_shown_short(size: float, shown: str) -> None:
    assert format_size(size) == shown
