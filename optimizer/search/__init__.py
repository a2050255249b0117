"""The search: compiled kernels on a `Problem` and one mutable `State`; `optimizer.planner` wires them."""
