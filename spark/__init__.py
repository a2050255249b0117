"""Months of metric history into goal constants, weights and capacities: datasets, methods, backtest, jobs."""
