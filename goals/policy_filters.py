"""The part `filters` of a policy: what is passed over, which brokers topics are kept to, and which topics are kept apart."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from goals.policy_part import NotNegative, PolicyPart, Size

Globs = Annotated[list[str], Field(min_length=1)]
Brokers = list[int | str]


class Isolation(PolicyPart):
    """Topics that only some brokers take. The first of several rules that matches a topic holds; a broker that is primary in any rule takes
    no topic that no rule matches."""

    topics: Globs = Field(description="globs")
    primary: Annotated[Brokers, Field(min_length=1)] = Field(
        description="brokers that take them: ids, globs of ids such as '1*', or of racks such as 'rack:a*'"
    )
    secondary: Brokers = Field(default=[], description="brokers that take them, too, while too few primary ones are active")
    min_primary: Annotated[int, Field(ge=1)] = Field(default=1, description="primary brokers that are enough")


class AntiAffinity(PolicyPart):
    """Topics that stand apart, as far as possible: on racks with the fewest other topics of the group, there on brokers with the fewest."""

    topics: Globs = Field(description="globs of the topics of one group; a topic is in the first group that it matches")


class Filters(PolicyPart):
    """Topics, partitions and brokers that the policy leaves out."""

    exclude: list[str] = Field(default=[], description="globs of topics that this policy leaves alone")
    include: list[str] = Field(default=[], description="globs; only these topics; empty: all")
    min_rate: NotNegative = Field(default=0.0, description="requests/s: a smaller amount is not worth moving")
    min_throughput: Size = Field(default=0.0, description="bytes/s: a smaller amount is not worth moving")
    keep: Annotated[int, Field(ge=0)] = Field(default=0, description="units that always stay on a source broker")
    max_units: Annotated[int, Field(ge=1)] | None = Field(default=None, description="replicas on a broker from which on it gets no more")
    once: bool = Field(default=True, description="each partition changes at most once in a plan")
    isolation: list[Isolation] = Field(default=[], description="topics that only some brokers take")
    anti_affinity: list[AntiAffinity] = Field(default=[], description="groups of topics that stand on different racks and brokers")
