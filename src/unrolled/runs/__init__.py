"""One training run: from the user's file to a model that is scored, explained and saved."""

from unrolled.runs.run import Run, default_name, train

__all__ = ["Run", "default_name", "train"]
