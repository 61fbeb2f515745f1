"""Vectors of many numbers on a plane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unrolled.base.errors import UsageError, known


class Plane(NamedTuple):
    """Where vectors come to lie."""

    places: np.ndarray  # float64 [vectors, 2]
    method: str
    kept: float | None  # share of the variance


def plane(vectors: np.ndarray, method: str) -> Plane:
    """``vectors`` [n, size], n ≥ 2, on a plane: ``pca``, the two directions of most variance, each turned so that its
    largest number is positive; or ``tsne`` (van der Maaten & Hinton 2008, by scikit-learn, seed 0)."""
    if method not in ("pca", "tsne"):
        raise UsageError(f"map: no method is called '{method}'. {known(method, ('pca', 'tsne'))}")
    centred = np.asarray(vectors, np.float64) - np.mean(vectors, axis=0, dtype=np.float64)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((len(vectors), 2))
    width = min(2, len(sizes))
    places[:, :width] = left[:, :width] * sizes[:width]
    most = np.abs(places).argmax(axis=0)
    places *= np.where(places[most, [0, 1]] < 0, -1.0, 1.0)
    if method == "pca":
        return Plane(places, "principal components", float((sizes[:2] ** 2).sum() / max((sizes**2).sum(), 1e-30)))
    from sklearn.manifold import TSNE

    perplexity = max(1.0, min(30.0, (len(vectors) - 1) / 3))
    start = places / max(float(places[:, 0].std()), 1e-12) * 1e-4
    found = TSNE(2, perplexity=perplexity, init=start, random_state=0, metric="euclidean").fit_transform(centred)
    return Plane(np.asarray(found, np.float64), f"t-SNE of perplexity {perplexity:.0f}", None)
