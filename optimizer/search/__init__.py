"""The search: compiled kernels on a `Problem` and one mutable `State` (`optimizer.placement`); `optimizer.planner` wires them."""
