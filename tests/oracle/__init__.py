"""A second opinion on plans, in plain Python, written from docs/contract.md, sections 2, 3, 4 and 7 alone."""
