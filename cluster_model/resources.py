"""Resources: what a replica costs the broker that hosts it, with units.

`MEASURED` resources stand in snapshot files; `DERIVED` ones are computed from placement and the
measured ones. Everything else names resources through these two tables.
"""

from __future__ import annotations

MEASURED: dict[str, str] = {
    "network_in": "bytes/s",
    "network_out": "bytes/s",
    "cpu": "cores",
    "disk": "bytes",
    "produce_rate": "requests/s",
    "fetch_rate": "requests/s",
}

DERIVED: dict[str, str] = {
    "replicas": "count",
    "leaders": "count",
    "leader_network_in": "bytes/s",
    "potential_network_out": "bytes/s",
}

RESOURCES: dict[str, str] = {**MEASURED, **DERIVED}

# Loads and capacities beyond these are mistakes, or so small that they are none; sums and squares of those between stay numbers.
LARGEST_AMOUNT = 1e30
LEAST_AMOUNT = 1e-300

# A follower costs these as much as its leader does where a snapshot gives no follower load.
FOLLOWER_COPIES_LEADER: frozenset[str] = frozenset({"network_in", "disk"})

# The measured resource a derived one is made of; counts are made of none.
DERIVED_FROM: dict[str, str] = {
    "leader_network_in": "network_in",
    "potential_network_out": "network_out",
}
