"""One output of a search, with everything known about how it was found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Hypothesis(NamedTuple):
    """An output symbol by symbol; ``scored`` below is ``len(ids)``, and one more if finished: END is predicted too."""

    ids: list[int]
    """The symbols, a forced prefix included; without BEGIN and END."""
    score: float
    """What hypotheses are ranked by: ``log_prob`` after length normalisation, plus the coverage penalty."""
    log_prob: float
    """Natural-log probability of the whole under the model, whatever rules or temperature were in force."""
    token_log_probs: list[float]
    """[scored] its terms, one a predicted symbol."""
    weights: np.ndarray | None
    """float32 [scored, source] attention over the real source positions (END included); None without attention."""
    finished: bool
    """The model said END itself. False: cut at the maximum length, or no allowed continuation was left."""
