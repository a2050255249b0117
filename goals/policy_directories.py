"""The part `directories` of a policy: how full the volumes of a broker's log directories may be, and how level."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from goals.policy_part import PolicyPart


class Directories(PolicyPart):
    """Limits for `trimtab directories`, on each broker with several volumes. null turns one off."""

    limit: Annotated[float, Field(gt=0, le=1)] | None = Field(default=0.8, description="largest share of a volume that may be in use")
    bound: Annotated[float, Field(gt=0)] | None = Field(
        default=0.10, description="half width of the target range: share of what is in use of the broker's volumes together"
    )
