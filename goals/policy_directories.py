"""The part `directories` of a policy: how full the volumes of a broker's log directories may be, and how level."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from goals.policy_part import PolicyPart


class Directories(PolicyPart):
    """What `trimtab directories` brings about on every broker with several volumes. Each of both may be null: then it is not asked for."""

    limit: Annotated[float, Field(gt=0, le=1)] | None = Field(default=0.8, description="share of each volume that is in use at most")
    bound: Annotated[float, Field(gt=0)] | None = Field(
        default=0.10, description="half width of the target range: share of what is in use of the broker's volumes together"
    )
