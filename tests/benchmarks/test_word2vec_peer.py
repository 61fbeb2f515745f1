"""The benchmark beside gensim: skipped with a reason where there is none, and what it times reads the whole text."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import word2vec
from benchmarks.peers import environments


def test_without_gensim_there_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    assert "make bench-peers" in word2vec.measure(1, None)["skipped"]
    assert "gensim" in environments.PACKAGES


def test_ours_reads_a_text_of_that_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word2vec, "WORDS", 4000)
    monkeypatch.setattr(word2vec, "KINDS", 50)
    word2vec.write(tmp_path / "text.txt")
    words = (tmp_path / "text.txt").read_text().split()
    assert len(words) == 4000 and words.count("w0") > words.count("w9") > 0
    assert word2vec.ours(tmp_path / "text.txt", "cbow", 1) > 1000
