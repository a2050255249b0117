"""Methods: plain numpy kernels and column expressions, each one way to read a figure out of history. No jobs, no files."""
