"""What hypotheses are ranked by: log P over a length penalty, plus a coverage penalty (Wu et al. 2016, eq. 14)."""

from __future__ import annotations

import numpy as np

from unrolled.search.settings import SearchSettings

_LEAST = float(np.finfo(np.float32).tiny)


def length_divisor(settings: SearchSettings, length: int) -> float:
    """By what log P of ``length`` predicted symbols (END counted) is divided; above 0, never falls with length.

    lp(n) = ((5 + n) / 6)^α for ``gnmt``, n for ``mean``. No symbol at all counts as one.
    """
    n = max(length, 1)
    return float(n) if settings.length_normalisation == "mean" else ((5 + n) / 6) ** settings.length_penalty


def coverage_score(covered: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """cp / β = Σ_j log(min(Σ_i α_ij, 1)) over the real positions j: [rows], at most 0.

    ``covered`` float64 [rows, source] holds Σ_i α_ij, ``mask`` [rows, source] True = real. A position that nothing
    looked at counts as the smallest float32, not as minus infinity. The sum is taken from left to right (``cumsum``),
    because the pairwise order of ``sum`` would let padding change the last bit.
    """
    if not covered.shape[1]:
        return np.zeros(len(covered))
    logs = np.log(np.clip(covered, _LEAST, 1.0))
    return np.cumsum(np.where(mask, logs, 0.0), axis=1)[:, -1]
