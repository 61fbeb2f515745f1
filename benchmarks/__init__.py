"""Ratios of speed and memory, each taken in one run: `python -m benchmarks.NAME --json`."""
