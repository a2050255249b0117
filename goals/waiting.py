"""The part `wait` of a policy: while which conditions nothing is moved for balance. Repairs of lost brokers are not held back.

Validated with the goals file; read by `trimtab.service.unwell`. No clock: the time comes in by parameter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from cluster_model.quantities import parse_duration

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EXAMPLE = "08:00-18:00, or mon-fri 22:00-06:00 Europe/Berlin"
_HOURS = re.compile(
    r"(?:(?P<first>[a-z]{3})(?:-(?P<last>[a-z]{3}))? +)?(?P<from>\d\d):(?P<m>\d\d) *- *(?P<to>\d\d):(?P<n>\d\d)(?: +(?P<zone>\S+))?"
)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Hours of some days in which nothing is moved for balance.

    Attributes
    ----------
    days
        On which they start, 0 is Monday.
    start, end
        Minutes of the day; an end that is not after the start is on the next day.
    """

    days: frozenset[int]
    start: int
    end: int
    zone: tzinfo

    def until(self, now_ms: int) -> int | None:
        """When the quiet hours that are now end, Unix ms; None where it is not quiet now."""
        now = datetime.fromtimestamp(now_ms / 1000, self.zone)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        for day in (midnight - timedelta(days=1), midnight):
            if day.weekday() not in self.days:
                continue
            start = day.replace(hour=self.start // 60, minute=self.start % 60)
            last = day if self.end > self.start else day + timedelta(days=1)
            end = last.replace(hour=self.end // 60, minute=self.end % 60)
            if start.timestamp() <= now_ms / 1000 < end.timestamp():
                return round(1000 * end.timestamp())
        return None


def quiet_hours(text: str) -> QuietHours:
    """What ``mon-fri 22:00-06:00 Europe/Berlin`` means; every day and UTC where those are left out.

    Raises
    ------
    ValueError
        It is no such text; says what is wrong.
    """
    found = _HOURS.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"expected quiet hours such as {EXAMPLE}, found {text!r}")
    first, last = found["first"], found["last"] or found["first"]
    for day in (first, last):
        if day is not None and day not in DAYS:
            raise ValueError(f"expected a day of {', '.join(DAYS)}, found {day!r}")
    start, end = (60 * int(found[h]) + int(found[m]) for h, m in (("from", "m"), ("to", "n")))
    if int(found["m"]) > 59 or int(found["n"]) > 59 or start >= 24 * 60 or end > 24 * 60:
        raise ValueError(f"expected times of day from 00:00 to 24:00, found {text!r}")
    if first is None:
        days = frozenset(range(7))
    else:
        begin, count = DAYS.index(first), (DAYS.index(last) - DAYS.index(first)) % 7 + 1
        days = frozenset((begin + n) % 7 for n in range(count))
    return QuietHours(days, start, end % (24 * 60), _zone(found["zone"]))


def _zone(name: str | None) -> tzinfo:
    if name is None or name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ValueError(f"expected the name of a time zone such as Europe/Berlin, found {name!r}") from None


def _is_quiet_hours(text: str) -> str:
    quiet_hours(text)
    return text


Seconds = Annotated[
    float, BeforeValidator(parse_duration), WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]})
]


class Wait(BaseModel):
    """Conditions under which nothing is moved for balance."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    fenced: bool = Field(default=True, description="wait while a broker is fenced or shutting down, and not dead yet")
    under_replicated: Annotated[int, Field(ge=0)] | None = Field(
        default=0, description="wait while more partitions than this lack an in-sync replica (reassignments do not count); null: never"
    )
    settle: Seconds = Field(default=300.0, description="how long to wait after a broker came back and caught up")
    foreign: bool = Field(default=True, description="wait while reassignments are in progress that this service did not start")
    leaders: Seconds = Field(
        default=600.0, description="how long Kafka may take to restore preferred leaders; then they are planned first"
    )
    elect: bool = Field(
        default=True, description="in mode auto, elect preferred leaders at once instead of waiting for Kafka"
    )
    quiet_hours: list[Annotated[str, AfterValidator(_is_quiet_hours)]] = Field(
        default_factory=list, description=f"hours such as {EXAMPLE}"
    )
