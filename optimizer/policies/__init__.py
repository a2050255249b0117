"""Policies: other ways than the search to say what to move, how much of it and where to, as interchangeable parts.

`optimizer.policies.follow` is the way in: a pure function of snapshot, goals and options, as the planner is. A goals file asks for it by
the `policy` keys that name parts (`goals.policy`). Whatever parts choose goes through the same evaluator as the search's own actions.
"""
